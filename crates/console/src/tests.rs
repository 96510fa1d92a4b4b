//! Tests of the whole console against an API that a test makes up.

mod answers;
mod cloning;
mod fake_api;
mod forgery;
mod frame;
mod hostile;
mod issuer;
mod readings;
mod sessions;
mod usage;
mod waking;

pub(crate) use fake_api::{diagnosis, job, summary};

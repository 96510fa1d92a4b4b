//! The calls of the API, one file each.

pub(crate) mod clusters;
pub(crate) mod dead_letters;
pub(crate) mod event_id;
pub(crate) mod events;
pub(crate) mod health;
pub(crate) mod jobs;
pub(crate) mod tao;

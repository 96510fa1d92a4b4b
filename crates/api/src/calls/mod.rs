//! The calls of the API.

pub(crate) mod callers;
pub(crate) mod clusters;
pub(crate) mod event_id;
pub(crate) mod events;
pub(crate) mod health;
pub(crate) mod jobs;
pub(crate) mod pipelines;
pub(crate) mod stats;
pub(crate) mod tao;
pub(crate) mod webhooks;

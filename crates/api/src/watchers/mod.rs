//! Callers that wait for a change: woken by the database's notifications.

pub(crate) mod feed;
pub(crate) mod watcher;

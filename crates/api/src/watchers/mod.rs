//! Callers that wait for changes, woken by the database's notifications.

pub(crate) mod feed;
pub(crate) mod watcher;

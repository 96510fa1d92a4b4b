//! The limit of open files: each connection, such as that of a watcher, is one.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the soft limit to the hard limit. The usual soft limit of 1024 exists for programs that use `select`.
pub(crate) fn raise_limit() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current == maximum {
        return;
    }
    match setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }) {
        Ok(()) => tracing::debug!(?current, ?maximum, "raised the limit of open files"),
        Err(error) => tracing::warn!(%error, ?current, "cannot raise the limit of open files"),
    }
}

//! How many files the process may have open: each connection of somebody who watches is one.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Takes as many as the system lets us have. The usual soft limit of 1024 is for programs that cannot count further.
pub(crate) fn raise_limit() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current == maximum {
        return;
    }
    match setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }) {
        Ok(()) => tracing::debug!(?current, ?maximum, "the limit of open files was raised"),
        Err(error) => tracing::warn!(%error, ?current, "the limit of open files cannot be raised"),
    }
}

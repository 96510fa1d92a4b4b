//! Several sessions of one cluster: threads, a queue, and the health of each login host.

pub(crate) mod backoff;
pub(crate) mod handle;
pub(crate) mod health;
pub(crate) mod hosts;
pub(crate) mod queue;
pub(crate) mod thread;

//! One SSH session: connecting, running a command, and reading its framed answer.

pub(crate) mod connect;
pub(crate) mod exchange;
pub(crate) mod exec;
pub(crate) mod framing;
pub(crate) mod link;
pub(crate) mod readiness;
pub(crate) mod shell_line;

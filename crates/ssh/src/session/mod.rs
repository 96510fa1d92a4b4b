//! One SSH session: connects, runs commands, and reads their framed answers.

pub(crate) mod connect;
pub(crate) mod exec;
pub(crate) mod framing;
pub(crate) mod link;
pub(crate) mod readiness;
pub(crate) mod shell_line;

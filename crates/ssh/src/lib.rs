//! Bytes over SSH: sessions, hosts, keys, framing.
//!
//! One [`SshPool`] serves one cluster. It runs a [`Command`] on a login host and answers with the
//! exact bytes the program wrote and the code it ended with, or with an [`SshError`] that says
//! whether anything may have happened over there ([`SshError::effect`]).
//!
//! What it refuses to know: Slurm, jobs, and what the bytes mean.
//!
//! Where to read on: [`pool`](SshPool) for the way of a command, `framing` for why an answer can be
//! believed, `hosts` for failover, `host_key` for whom we talk to.

mod advice;
mod command;
mod config;
mod error;
#[cfg(fuzzing)]
pub mod fuzzing;
mod host_port;
mod keys;
mod pool;
mod session;

pub use command::{Command, Output};
pub use config::SshConfig;
pub use error::{Doubt, Effect, HostFailure, SshError};
pub use host_port::{HostPort, HostPortError};
pub use keys::{key_file::inspect_key, known_hosts::check_host_key_line};
pub use pool::{
    handle::SshPool,
    health::{HostHealth, HostState, PoolHealth},
};

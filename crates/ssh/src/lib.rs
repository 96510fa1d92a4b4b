//! Runs commands over SSH: sessions, login hosts, keys, framing.
//!
//! One [`SshPool`] serves one cluster. It runs a [`Command`] on a login host and returns the exact bytes
//! that the program wrote and its exit code, or an [`SshError`] that says whether anything may have
//! happened on the cluster ([`SshError::effect`]).
//!
//! This crate knows nothing about Slurm, jobs, or what the bytes mean.
//!
//! Where to read on: `pool` for the path of a command, `session::framing` for why an answer can be
//! trusted, `pool::hosts` for failover, `keys::host_key` for the verification of login hosts.

mod command;
mod config;
mod error;
#[cfg(feature = "fuzzing")]
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
    PoolHealth, SshPool,
    hosts::{HostHealth, HostState},
};

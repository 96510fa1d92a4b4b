//! What a pool says about itself.

use std::time::Instant;

use crate::HostPort;

/// A snapshot of a pool.
#[derive(Debug, Clone)]
pub struct PoolHealth {
    /// One entry per login host, in the configured order.
    pub hosts: Vec<HostHealth>,
    /// Sessions that are connected now.
    pub sessions_open: usize,
    /// Attempts to connect since the start, whether they worked or not.
    pub connects_total: u64,
    /// Commands that got an answer or an error, since the start.
    pub commands_total: u64,
    /// Commands that got an error, since the start.
    pub failures_total: u64,
}

/// What is known about one login host.
#[derive(Debug, Clone)]
pub struct HostHealth {
    /// The host.
    pub host: HostPort,
    /// Its state at the last attempt.
    pub state: HostState,
    /// The last error, kept after a recovery.
    pub last_error: Option<String>,
    /// When it is tried again; `None` when it may be tried at once.
    pub next_try: Option<Instant>,
}

/// The state of a login host at the last attempt to use it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostState {
    /// Never tried.
    Untried,
    /// The last connect worked.
    Up,
    /// The last connect failed for a reason that may pass by itself.
    Down {
        /// When the first of the failures in a row happened.
        since: Instant,
        /// The last of them.
        error: String,
    },
    /// It accepted none of our keys.
    AuthRefused {
        /// When the first of the refusals in a row happened.
        since: Instant,
        /// The last of them.
        error: String,
    },
    /// We refused its host key.
    HostKeyRefused {
        /// When the first of the refusals in a row happened.
        since: Instant,
        /// The last of them.
        error: String,
    },
}

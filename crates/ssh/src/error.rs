//! What can go wrong, and whether anything may have happened remotely.

use std::fmt;
use std::path::PathBuf;

use crate::HostPort;

/// What a failed command may have done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// The program did not run.
    None,
    /// The program may have run, wholly or in part, and may still be running until its deadline.
    Unknown,
}

/// Why the outcome of a command is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doubt {
    /// The program was still running at its deadline. The remote side ends it.
    Deadline,
    /// The link was lost, or the stream ended, before the end mark came.
    LinkLost,
    /// The pool was closed while the program was running.
    Closing,
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Deadline => "the deadline passed",
            Self::LinkLost => "the link was lost",
            Self::Closing => "the pool was closed",
        })
    }
}

/// The last failure of one login host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostFailure {
    /// The login host.
    pub host: HostPort,
    /// What happened there.
    pub reason: String,
    /// What a person can do about it.
    pub advice: String,
}

/// Why a command has no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SshError {
    /// No login host could be used; the failures are in the configured order of the hosts.
    #[error("no login host can be used: {}", list(.failures))]
    Unreachable {
        /// The last failure of each host.
        failures: Vec<HostFailure>,
    },
    /// No key of the host is known.
    #[error("the host key of {host} is not known ({fingerprint})")]
    HostKeyUnknown {
        /// The login host.
        host: HostPort,
        /// The line that makes the presented key known.
        line_to_add: String,
        /// SHA-256 of the presented key, as `ssh-keygen -l` shows it.
        fingerprint: String,
    },
    /// The host presented a key other than the known ones, or one marked as revoked.
    #[error("the host key of {host} is {} ({fingerprint})", if *.revoked { "revoked" } else { "not one of the known ones" })]
    HostKeyChanged {
        /// The login host.
        host: HostPort,
        /// The line that makes the presented key known.
        line_to_add: String,
        /// SHA-256 of the presented key, as `ssh-keygen -l` shows it.
        fingerprint: String,
        /// Where the other keys of this host are written: `path:line`, or `pinned key n`.
        known_at: Vec<String>,
        /// Whether a line marks this very key as revoked.
        revoked: bool,
    },
    /// The host accepted none of our keys.
    #[error("{host} refused to log in {user}: {reason}; tried {}", .tried.join(", "))]
    AuthRefused {
        /// The login host.
        host: HostPort,
        /// The account.
        user: String,
        /// The keys that were offered, in order.
        tried: Vec<String>,
        /// What the library said last.
        reason: String,
    },
    /// The configured key file cannot be used. Nothing was sent to any host.
    #[error("the key file {path:?} cannot be used: {reason}")]
    KeyUnreadable {
        /// The configured path.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
    /// Neither a key file nor an agent with a key is configured.
    #[error("there is no key to log in with")]
    NoKey,
    /// Surely nothing ran.
    #[error("the command was not sent: {reason}")]
    NotSent {
        /// Why not.
        reason: String,
    },
    /// The program may have run.
    #[error("the outcome on {host} is unknown: {doubt}{}", detail_of(.detail))]
    OutcomeUnknown {
        /// The login host.
        host: HostPort,
        /// The kind of doubt.
        doubt: Doubt,
        /// What the library said, empty when there is nothing to add.
        detail: String,
    },
    /// The program wrote more than the command accepts.
    #[error("the program wrote more than {limit} bytes on {host}")]
    OutputTooLarge {
        /// The login host.
        host: HostPort,
        /// The limit, in bytes.
        limit: usize,
    },
    /// The pool is closed.
    #[error("the SSH pool is closed")]
    Closed,
}

impl SshError {
    /// What the command may have done.
    pub fn effect(&self) -> Effect {
        match self {
            Self::OutcomeUnknown { .. } | Self::OutputTooLarge { .. } => Effect::Unknown,
            Self::Unreachable { .. }
            | Self::HostKeyUnknown { .. }
            | Self::HostKeyChanged { .. }
            | Self::AuthRefused { .. }
            | Self::KeyUnreadable { .. }
            | Self::NoKey
            | Self::NotSent { .. }
            | Self::Closed => Effect::None,
        }
    }

    /// Whether the cluster wants a login that we do not have: our keys are refused, unreadable, or there are none.
    pub fn wants_a_login(&self) -> bool {
        matches!(self, Self::AuthRefused { .. } | Self::KeyUnreadable { .. } | Self::NoKey)
    }

    /// Whether only a person can mend it: keys and host keys, as opposed to the network.
    pub(crate) fn needs_operator(&self) -> bool {
        matches!(
            self,
            Self::HostKeyUnknown { .. }
                | Self::HostKeyChanged { .. }
                | Self::AuthRefused { .. }
                | Self::KeyUnreadable { .. }
                | Self::NoKey
        )
    }
}

fn list(failures: &[HostFailure]) -> String {
    if failures.is_empty() {
        return "none is configured".to_owned();
    }
    failures.iter().map(|failure| failure.reason.as_str()).collect::<Vec<_>>().join("; ")
}

fn detail_of(detail: &str) -> String {
    if detail.is_empty() { String::new() } else { format!(" ({detail})") }
}

//! What can go wrong, whether anything may have happened on the cluster, and what a person can do about it.

use std::path::PathBuf;

use crate::HostPort;

/// What a failed command may have done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// The program did not run.
    None,
    /// The program may have run, completely or in part. It may still be running until its deadline.
    Unknown,
}

/// Why the outcome of a command is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Doubt {
    /// The program was still running at its deadline. The login host stops it.
    #[error("the deadline passed")]
    Deadline,
    /// The connection was lost, or the stream ended, before the end mark arrived.
    #[error("the connection was lost")]
    LinkLost,
    /// The pool was closed while the program was running.
    #[error("the SSH pool was closed")]
    Closing,
}

/// The last failure of one login host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostFailure {
    /// The login host.
    pub host: HostPort,
    /// What went wrong.
    pub reason: String,
    /// What a person can do about it.
    pub advice: String,
}

/// Why a command has no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SshError {
    /// No login host is usable. The failures are in the configured order of the hosts.
    #[error("no login host is usable: {}", list(.failures))]
    Unreachable {
        /// The last failure of each host.
        failures: Vec<HostFailure>,
    },
    /// No key is known for the host.
    #[error("the host key of {host} is unknown ({fingerprint})")]
    HostKeyUnknown {
        /// The login host.
        host: HostPort,
        /// The `known_hosts` line that makes the presented key known.
        line_to_add: String,
        /// SHA-256 of the presented key, as `ssh-keygen -l` prints it.
        fingerprint: String,
    },
    /// The host presented a key that differs from the known ones, or a revoked key.
    #[error("the host key of {host} {} ({fingerprint})", if *.revoked { "is revoked" } else { "does not match its known keys" })]
    HostKeyChanged {
        /// The login host.
        host: HostPort,
        /// The `known_hosts` line that makes the presented key known.
        line_to_add: String,
        /// SHA-256 of the presented key, as `ssh-keygen -l` prints it.
        fingerprint: String,
        /// Where the known keys of this host are listed: `path:line`, or `pinned key n`.
        known_at: Vec<String>,
        /// Whether a line revokes the presented key.
        revoked: bool,
    },
    /// The host accepted none of our keys.
    #[error("{host} refused the login of {user}: {reason}; tried {}", .tried.join(", "))]
    AuthRefused {
        /// The login host.
        host: HostPort,
        /// The account.
        user: String,
        /// The keys that were offered, in order.
        tried: Vec<String>,
        /// The last reason that libssh2 gave.
        reason: String,
    },
    /// The configured key file is unusable. No host was contacted with it.
    #[error("the key file {path:?} is unusable: {reason}")]
    KeyUnreadable {
        /// The configured path.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
    /// Neither a key file nor an agent is configured.
    #[error("no SSH key is configured")]
    NoKey,
    /// The command certainly did not run.
    #[error("the command did not run: {reason}")]
    NotSent {
        /// Why not.
        reason: String,
    },
    /// The command may have run.
    #[error("the outcome of the command on {host} is unknown: {doubt}{}", in_brackets(.detail))]
    OutcomeUnknown {
        /// The login host.
        host: HostPort,
        /// The kind of doubt.
        doubt: Doubt,
        /// The reason that libssh2 gave; empty if there is nothing to add.
        detail: String,
    },
    /// The program wrote more than the command accepts.
    #[error("the program on {host} wrote more than {limit} bytes")]
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

    /// Whether the login failed: the host refused our keys, a key is unreadable, or no key is configured.
    pub fn is_login_failure(&self) -> bool {
        matches!(self, Self::AuthRefused { .. } | Self::KeyUnreadable { .. } | Self::NoKey)
    }

    /// Whether only a person can fix it: user keys and host keys, unlike the network.
    pub(crate) fn needs_operator(&self) -> bool {
        self.is_login_failure() || matches!(self, Self::HostKeyUnknown { .. } | Self::HostKeyChanged { .. })
    }

    /// The error for one host that cannot be reached.
    pub(crate) fn cannot_connect(host: &HostPort, reason: &str) -> Self {
        let failure = HostFailure {
            host: host.clone(),
            reason: format!("cannot connect to {host}: {reason}"),
            advice: format!(
                "Check the configured name and port, that {host} is up, and that no firewall blocks the connection."
            ),
        };
        Self::Unreachable { failures: vec![failure] }
    }

    /// What to do, in a sentence or two, with the exact line, path or host.
    pub fn advice(&self) -> String {
        match self {
            Self::Unreachable { failures } if failures.is_empty() => {
                "Configure at least one login host for this cluster.".to_owned()
            }
            Self::Unreachable { failures } => {
                failures.iter().map(|failure| failure.advice.as_str()).collect::<Vec<_>>().join(" ")
            }
            Self::HostKeyUnknown { host, line_to_add, fingerprint } => format!(
                "Compare {fingerprint} with the fingerprint that the site publishes for {host}. If they match, add \
                 this line to the known_hosts file: {line_to_add}"
            ),
            Self::HostKeyChanged { host, revoked: true, .. } => format!(
                "The known_hosts file revokes the key that {host} presented. Ask the site first: another machine may \
                 be posing as {host}."
            ),
            Self::HostKeyChanged { host, line_to_add, fingerprint, known_at, .. } => format!(
                "Ask the site whether {host} has a new host key: another machine may be posing as {host}. If \
                 {fingerprint} is correct, add this line to the known_hosts file: {line_to_add} (known keys of this \
                 host: {})",
                known_at.join(", ")
            ),
            Self::AuthRefused { host, user, tried, .. } => format!(
                "Check that the authorized_keys of {user} on {host} lists one of these keys, and that the account is \
                 active and requires no second factor: {}",
                tried.join(", ")
            ),
            Self::KeyUnreadable { path, .. } => format!(
                "Make {} a private key without a passphrase that the service can read (mode 0600), or load the key \
                 into an agent.",
                path.display()
            ),
            Self::NoKey => {
                "Configure a private key file, or the socket of an agent that holds a key.".to_owned()
            }
            Self::NotSent { .. } => "Nothing ran; it is safe to repeat the command.".to_owned(),
            Self::OutcomeUnknown { host, doubt: Doubt::Deadline, .. } => format!(
                "Check what the program did before you repeat it: it was stopped at its deadline. Check whether \
                 {host} or its file system is slow."
            ),
            Self::OutcomeUnknown { host, .. } => {
                format!("Check what the program did on {host} before you repeat it.")
            }
            Self::OutputTooLarge { limit, .. } => {
                format!("Request less than {limit} bytes at a time; the program may have run to its end.")
            }
            Self::Closed => "The service is shutting down; repeat the command after its restart.".to_owned(),
        }
    }
}

fn list(failures: &[HostFailure]) -> String {
    if failures.is_empty() {
        return "none is configured".to_owned();
    }
    failures.iter().map(|failure| failure.reason.as_str()).collect::<Vec<_>>().join("; ")
}

fn in_brackets(detail: &str) -> String {
    if detail.is_empty() { String::new() } else { format!(" ({detail})") }
}

//! What a person can do about each failure.

use crate::{Doubt, SshError};

impl SshError {
    /// What to do, in a sentence or two, with the exact line, path or host concerned.
    pub fn advice(&self) -> String {
        match self {
            Self::Unreachable { failures } if failures.is_empty() => {
                "Configure at least one login host for this cluster.".to_owned()
            }
            Self::Unreachable { failures } => {
                failures.iter().map(|failure| failure.advice.as_str()).collect::<Vec<_>>().join(" ")
            }
            Self::HostKeyUnknown { host, line_to_add, fingerprint } => format!(
                "Compare {fingerprint} with the fingerprint the site publishes for {host}; if they agree, add this \
                 line to the known_hosts file: {line_to_add}"
            ),
            Self::HostKeyChanged { host, revoked: true, .. } => format!(
                "The known_hosts file marks the key that {host} presented as revoked. Ask the site before anything \
                 else: somebody else may be answering in its place."
            ),
            Self::HostKeyChanged { host, line_to_add, fingerprint, known_at, .. } => format!(
                "Ask the site whether {host} has a new host key: somebody else may be answering in its place. If \
                 {fingerprint} is right, add this line: {line_to_add} (other keys of this host: {})",
                known_at.join(", ")
            ),
            Self::AuthRefused { host, user, tried, .. } => format!(
                "Check that {host} lists one of these keys in the authorized_keys of {user}, and that the account \
                 is open and needs no second factor: {}",
                tried.join(", ")
            ),
            Self::KeyUnreadable { path, .. } => format!(
                "Make {} a private key without a passphrase that the service can read (mode 0600), or load the key \
                 into an agent.",
                path.display()
            ),
            Self::NoKey => {
                "Configure a private key file, or an agent socket with at least one key loaded.".to_owned()
            }
            Self::NotSent { .. } => "Nothing ran; the command can be sent again.".to_owned(),
            Self::OutcomeUnknown { host, doubt: Doubt::Deadline, .. } => format!(
                "The program was ended at its deadline; find out what it did before repeating it, and see whether \
                 {host} or its file system is slow."
            ),
            Self::OutcomeUnknown { host, .. } => {
                format!("Find out what the program did on {host} before repeating it.")
            }
            Self::OutputTooLarge { limit, .. } => {
                format!("Ask for less than {limit} bytes at a time; the program may have run to its end.")
            }
            Self::Closed => "The service is shutting down; send the command to a new pool.".to_owned(),
        }
    }
}

//! How to reach one cluster.

use std::path::PathBuf;
use std::time::Duration;

use crate::HostPort;

/// How to reach one cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SshConfig {
    /// The account on the login hosts.
    pub user: String,
    /// The login hosts, the preferred one first.
    pub hosts: Vec<HostPort>,
    /// A private key file without a passphrase, tried first.
    pub key_path: Option<PathBuf>,
    /// Whether to try the keys of an agent after the key file.
    pub use_agent: bool,
    /// The socket of the agent (the value of `SSH_AUTH_SOCK`).
    pub agent_socket: Option<PathBuf>,
    /// `known_hosts` files, read again at every connect. A missing file counts as empty.
    pub known_hosts: Vec<PathBuf>,
    /// More `known_hosts` lines: `host type base64` or `[host]:port type base64`.
    pub pinned_host_keys: Vec<String>,
    /// The most sessions open at a time, 1 to 4. Other values count as the nearest bound.
    pub sessions: usize,
    /// The timeout of the TCP connect, of the key exchange, and of each authentication step.
    pub connect_timeout: Duration,
    /// How long a session may be idle before it is probed.
    pub keepalive: Duration,
}

impl SshConfig {
    /// A configuration with two sessions, 10 s to connect, a probe every 20 s, no keys and no known hosts.
    pub fn new(user: impl Into<String>, hosts: Vec<HostPort>) -> Self {
        Self {
            user: user.into(),
            hosts,
            key_path: None,
            use_agent: false,
            agent_socket: None,
            known_hosts: Vec::new(),
            pinned_host_keys: Vec::new(),
            sessions: 2,
            connect_timeout: Duration::from_secs(10),
            keepalive: Duration::from_secs(20),
        }
    }
}

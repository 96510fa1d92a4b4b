//! Verifies the key that a host presents against its known keys. Verification cannot be disabled, and no key
//! is ever trusted because the host presented it.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use ssh2::{HashType, MethodType, Session};

use crate::keys::known_hosts::{KnownKey, key_type, keys_of};
use crate::{HostPort, SshConfig, SshError};

/// The algorithms that we offer, the best first. SHA-1 signatures and certificates are not offered.
const ALGORITHMS: [(&str, &str); 5] = [
    ("ssh-ed25519", "ssh-ed25519"),
    ("ecdsa-sha2-nistp256", "ecdsa-sha2-nistp256"),
    ("ecdsa-sha2-nistp384", "ecdsa-sha2-nistp384"),
    ("ecdsa-sha2-nistp521", "ecdsa-sha2-nistp521"),
    ("ssh-rsa", "rsa-sha2-512,rsa-sha2-256"),
];

/// The keys known for one host, read at each connect.
pub(crate) struct HostKeys {
    host: HostPort,
    /// Keys listed under the name with the port.
    known: Vec<KnownKey>,
    /// Keys listed under the bare name, if the port is not 22. The bare name means the server on port 22, so a match
    /// is trusted, but a mismatch does not mean that the key has changed.
    portless: Vec<KnownKey>,
}

impl HostKeys {
    pub(crate) fn load(config: &SshConfig, host: &HostPort, session: &Session) -> Self {
        let lines = lines(config);
        let name = host.known_hosts_name();
        let known = keys_of(&name, &lines, session);
        let portless = if name == host.host() { Vec::new() } else { keys_of(host.host(), &lines, session) };
        Self { host: host.clone(), known, portless }
    }

    /// Requests a key of a known kind before the other kinds.
    ///
    /// Otherwise a host with a known ed25519 key could present its RSA key and look unknown.
    pub(crate) fn prefer_known_kinds(&self, session: &Session) -> Result<(), ssh2::Error> {
        let is_known = |kind: &str| {
            let mut trusted = self.known.iter().chain(&self.portless).filter(|key| !key.revoked);
            trusted.any(|key| key_type(&key.blob) == Some(kind))
        };
        let mut order = ALGORITHMS;
        order.sort_by_key(|(kind, _)| !is_known(kind));
        let order = order.map(|(_, algorithms)| algorithms);
        session.method_pref(MethodType::HostKey, &order.join(","))
    }

    /// An error unless the presented key is known.
    pub(crate) fn verify(&self, session: &Session) -> Result<(), SshError> {
        let Some((presented, _)) = session.host_key() else {
            return Err(SshError::NotSent { reason: format!("{} presented no host key", self.host) });
        };
        let fingerprint = session.host_key_hash(HashType::Sha256).map(fingerprint).unwrap_or_default();
        self.judge(presented, fingerprint)
    }

    fn judge(&self, presented: &[u8], fingerprint: String) -> Result<(), SshError> {
        let same = |key: &&KnownKey| key.blob == presented;
        let revoked = self.known.iter().chain(&self.portless).filter(same).any(|key| key.revoked);
        let trusted = self.known.iter().chain(&self.portless).any(|key| same(&key) && !key.revoked);
        if trusted && !revoked {
            return Ok(());
        }
        let host = self.host.clone();
        let kind = key_type(presented).unwrap_or("unknown");
        let line_to_add = format!("{} {kind} {}", host.known_hosts_name(), STANDARD.encode(presented));
        let known_at: Vec<String> =
            self.known.iter().filter(|key| !key.revoked).map(|key| key.place.clone()).collect();
        if revoked || !known_at.is_empty() {
            return Err(SshError::HostKeyChanged { host, line_to_add, fingerprint, known_at, revoked });
        }
        Err(SshError::HostKeyUnknown { host, line_to_add, fingerprint })
    }
}

/// Every line with its place. A missing file has no lines.
fn lines(config: &SshConfig) -> Vec<(String, String)> {
    let pinned = config.pinned_host_keys.iter().enumerate();
    let mut lines: Vec<_> =
        pinned.map(|(index, line)| (format!("pinned key {}", index + 1), line.clone())).collect();
    for path in &config.known_hosts {
        // Bytes that are not UTF-8 affect only their own line.
        let text =
            std::fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
        let place = |number: usize| format!("{}:{}", path.display(), number + 1);
        lines.extend(text.lines().enumerate().map(|(number, line)| (place(number), line.to_owned())));
    }
    lines
}

fn fingerprint(sha256: &[u8]) -> String {
    format!("SHA256:{}", STANDARD_NO_PAD.encode(sha256))
}

#[cfg(test)]
mod tests {
    use super::*;

    const RSA: &[u8] = b"\0\0\0\x07ssh-rsa-and-the-key";
    const ED25519: &[u8] = b"\0\0\0\x0bssh-ed25519-and-the-key";

    fn key(blob: &[u8], revoked: bool) -> KnownKey {
        KnownKey { blob: blob.to_vec(), place: "known_hosts:7".to_owned(), revoked }
    }

    fn judge(known: Vec<KnownKey>, portless: Vec<KnownKey>, presented: &[u8]) -> Result<(), SshError> {
        let host: HostPort = "login1:2222".parse().expect("a host");
        HostKeys { host, known, portless }.judge(presented, "SHA256:x".to_owned())
    }

    #[test]
    fn any_of_several_known_keys_is_accepted() {
        let known = vec![key(RSA, false), key(ED25519, false)];
        assert_eq!(judge(known.clone(), vec![], RSA), Ok(()));
        assert_eq!(judge(known, vec![], ED25519), Ok(()));
    }

    #[test]
    fn the_error_for_an_unknown_key_contains_the_line_to_add() {
        let Err(SshError::HostKeyUnknown { line_to_add, .. }) = judge(vec![], vec![], ED25519) else {
            panic!("the key was not reported as unknown");
        };
        assert_eq!(line_to_add, format!("[login1]:2222 ssh-ed25519 {}", STANDARD.encode(ED25519)));
    }

    #[test]
    fn the_error_for_a_changed_key_says_where_the_known_key_is() {
        let Err(SshError::HostKeyChanged { known_at, revoked, .. }) =
            judge(vec![key(RSA, false)], vec![], ED25519)
        else {
            panic!("the key was not reported as changed");
        };
        assert_eq!((known_at, revoked), (vec!["known_hosts:7".to_owned()], false));
    }

    #[test]
    fn a_revoked_key_is_refused_even_if_another_line_trusts_it() {
        let known = vec![key(RSA, false), key(RSA, true)];
        assert!(matches!(judge(known, vec![], RSA), Err(SshError::HostKeyChanged { revoked: true, .. })));
    }

    #[test]
    fn a_key_under_the_bare_name_is_trusted_on_another_port_but_a_mismatch_is_no_change() {
        assert_eq!(judge(vec![], vec![key(RSA, false)], RSA), Ok(()));
        let other = judge(vec![], vec![key(RSA, false)], ED25519);
        assert!(matches!(other, Err(SshError::HostKeyUnknown { .. })));
    }
}

//! Reads `known_hosts` lines as OpenSSH does: several keys for a name, patterns, hashed names, markers.
//!
//! libssh2 stops at the first line of a file it cannot read, knows neither patterns nor `@revoked`, and
//! gives the key type of no entry. So lines are split here, and only the comparison with a hashed name
//! is left to it.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ssh2::{CheckResult, KnownHostFileKind, Session};

/// A key that some line gives to a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KnownKey {
    /// The public key in SSH wire format.
    pub(crate) blob: Vec<u8>,
    /// Where the line stands, for people.
    pub(crate) place: String,
    /// Whether the line forbids the key instead of vouching for it.
    pub(crate) revoked: bool,
}

/// The keys that `lines` give to `name` (`host` or `[host]:port`).
pub(crate) fn keys_of(name: &str, lines: &[(String, String)], session: &Session) -> Vec<KnownKey> {
    lines.iter().filter_map(|(place, line)| key_on(line, name, place, session)).collect()
}

fn key_on(line: &str, name: &str, place: &str, session: &Session) -> Option<KnownKey> {
    let mut words = line.split_whitespace().peekable();
    let marker = words.next_if(|word| word.starts_with('@'));
    let revoked = match marker {
        None => false,
        Some("@revoked") => true,
        // Certificates are not offered, so the keys of authorities do not matter.
        Some(_) => return None,
    };
    let (names, kind, key) = (words.next()?, words.next()?, words.next()?);
    if names.starts_with('#') {
        return None;
    }
    let blob = STANDARD.decode(key).ok()?;
    let matches = if names.starts_with("|1|") {
        is_hash_of(names, kind, key, name, &blob, session)
    } else {
        lists(names, name)
    };
    matches.then(|| KnownKey { blob, place: place.to_owned(), revoked })
}

/// Whether a line could vouch for a host at all; why not, otherwise.
pub fn check_host_key_line(line: &str) -> Result<(), &'static str> {
    if line.contains(['\n', '\r']) {
        return Err("it is more than one line");
    }
    let mut words = line.split_whitespace().peekable();
    match words.next_if(|word| word.starts_with('@')) {
        None | Some("@revoked") => {}
        Some(_) => return Err("of the markers only @revoked counts here"),
    }
    let (Some(names), Some(kind), Some(key)) = (words.next(), words.next(), words.next()) else {
        return Err("it has fewer than three words");
    };
    if names.starts_with('#') {
        return Err("it is a comment");
    }
    let blob = STANDARD.decode(key).map_err(|_| "its key is not base64")?;
    if key_type(&blob) == Some(kind) { Ok(()) } else { Err("its key is not of the type that it says") }
}

/// Whether a comma-separated list of patterns means the name: one fits, and none with `!` does.
fn lists(patterns: &str, name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let mut listed = false;
    for pattern in patterns.split(',').map(str::to_ascii_lowercase) {
        match pattern.strip_prefix('!') {
            Some(excluded) if fits(excluded.as_bytes(), name.as_bytes()) => return false,
            Some(_) => {}
            None => listed |= fits(pattern.as_bytes(), name.as_bytes()),
        }
    }
    listed
}

/// Shell-like matching with `*` and `?` only. Remembers the last star, so the work is bounded by the
/// product of the lengths.
fn fits(pattern: &[u8], name: &[u8]) -> bool {
    let (mut at, mut done) = (0, 0);
    let mut star = None;
    while done < name.len() {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at, done));
                at += 1;
            }
            Some(byte) if *byte == b'?' || *byte == name[done] => {
                at += 1;
                done += 1;
            }
            _ => {
                let Some((star_at, star_done)) = star else { return false };
                star = Some((star_at, star_done + 1));
                at = star_at + 1;
                done = star_done + 1;
            }
        }
    }
    pattern[at..].iter().all(|byte| *byte == b'*')
}

fn is_hash_of(hash: &str, kind: &str, key: &str, name: &str, blob: &[u8], session: &Session) -> bool {
    let Ok(mut one_line) = session.known_hosts() else { return false };
    let line = format!("{hash} {kind} {key}\n");
    one_line.read_str(&line, KnownHostFileKind::OpenSSH).is_ok()
        && matches!(one_line.check(name, blob), CheckResult::Match)
}

/// The algorithm a key blob names in its first field.
pub(crate) fn key_type(blob: &[u8]) -> Option<&str> {
    let (length, rest) = blob.split_first_chunk::<4>()?;
    let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
    std::str::from_utf8(rest.get(..length)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "AAAAC3NzaC1lZDI1NTE5AAAAIAsrKysrKysrKysrKysrKysrKysrKysrKysrKysrKysr";

    fn known(line: &str, name: &str) -> Option<KnownKey> {
        let session = Session::new().expect("libssh2 starts");
        keys_of(name, &[("file:1".to_owned(), line.to_owned())], &session).pop()
    }

    #[test]
    fn a_line_counts_for_the_names_and_patterns_it_lists() {
        for (names, name, listed) in [
            ("login1", "login1", true),
            ("login1", "login10", false),
            ("a,Login1,b", "login1", true),
            ("*.example.org", "login1.example.org", true),
            ("*.example.org,!login1.*", "login1.example.org", false),
            ("login?", "login1", true),
            ("login?", "login", false),
            ("*", "anything", true),
            ("[login1]:2222", "[login1]:2222", true),
            ("[login1]:2222", "login1", false),
            ("[*.example.org]:2222", "[a.example.org]:2222", true),
        ] {
            let line = format!("{names} ssh-ed25519 {KEY} a comment");
            assert_eq!(known(&line, name).is_some(), listed, "{names} for {name}");
        }
    }

    #[test]
    fn a_hashed_name_is_recognised() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("known_hosts");
        std::fs::write(&path, format!("[login1]:2222 ssh-ed25519 {KEY}\n")).expect("written");
        let hashed = std::process::Command::new("ssh-keygen")
            .args(["-q", "-H", "-f"])
            .arg(&path)
            .output()
            .expect("ssh-keygen");
        assert!(hashed.status.success());
        let line = std::fs::read_to_string(&path).expect("readable");
        assert!(line.starts_with("|1|"), "{line}");
        assert!(known(&line, "[login1]:2222").is_some());
        assert!(known(&line, "login1").is_none());
    }

    #[test]
    fn markers_comments_and_damaged_lines_are_told_apart() {
        let line = format!("login1 ssh-ed25519 {KEY}");
        assert_eq!(known(&line, "login1").map(|key| key.revoked), Some(false));
        assert_eq!(known(&format!("@revoked {line}"), "login1").map(|key| key.revoked), Some(true));
        for nothing in
            [format!("@cert-authority {line}"), format!("# {line}"), format!("#{line}"), String::new()]
        {
            assert_eq!(known(&nothing, "login1"), None, "{nothing}");
        }
        assert_eq!(known("login1 ssh-ed25519 not*base64", "login1"), None);
        assert_eq!(known("login1 ssh-ed25519", "login1"), None);
    }

    #[test]
    fn a_line_that_could_vouch_for_nobody_is_known_before_it_is_needed() {
        let line = format!("login1 ssh-ed25519 {KEY}");
        for good in [&line, &format!("{line} a comment"), &format!("@revoked {line}"), &format!("  {line}")] {
            assert_eq!(check_host_key_line(good), Ok(()), "{good}");
        }
        let hashed = format!("|1|c2FsdA==|aGFzaA== ssh-ed25519 {KEY}");
        assert_eq!(check_host_key_line(&hashed), Ok(()));
        for bad in [
            "",
            "login1",
            "login1 ssh-ed25519",
            "login1 ssh-ed25519 not*base64",
            "login1 ssh-ed25519 AAAA",
            &format!("login1 ssh-rsa {KEY}"),
            &format!("# {line}"),
            &format!("@cert-authority {line}"),
            &format!("{line}\n{line}"),
        ] {
            assert!(check_host_key_line(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_type_of_a_key_is_read_from_the_key_itself() {
        assert_eq!(key_type(&STANDARD.decode(KEY).expect("base64")), Some("ssh-ed25519"));
        assert_eq!(key_type(b"\0\0\0\xffshort"), None);
        assert_eq!(key_type(b""), None);
    }

    #[test]
    fn matching_a_hostile_pattern_takes_no_time() {
        let pattern = format!("{}b", "*a".repeat(2000));
        assert!(!fits(pattern.as_bytes(), "a".repeat(3000).as_bytes()));
    }
}

//! Reads `known_hosts` lines as OpenSSH does: several keys for a name, patterns, hashed names, markers.
//!
//! libssh2 stops at the first line of a file that it cannot read, supports neither patterns nor `@revoked`,
//! and does not report the key type of an entry. So this module parses the lines, and libssh2 only compares
//! hashed names.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ssh2::{CheckResult, KnownHostFileKind, Session};
use wildmatch::WildMatch;

/// A key that a line lists for a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KnownKey {
    /// The public key in SSH wire format.
    pub(crate) blob: Vec<u8>,
    /// Where the line is, for people.
    pub(crate) place: String,
    /// Whether the line revokes the key instead of trusting it.
    pub(crate) revoked: bool,
}

/// A line that lists a key.
struct Line<'a> {
    names: &'a str,
    kind: &'a str,
    key: &'a str,
    blob: Vec<u8>,
    revoked: bool,
}

/// The keys that `lines` list for `name` (`host` or `[host]:port`).
pub(crate) fn keys_of(name: &str, lines: &[(String, String)], session: &Session) -> Vec<KnownKey> {
    let key = |(place, text): &(String, String)| {
        let line = parse(text).ok()?;
        let matches = if line.names.starts_with("|1|") {
            is_hash_of(&line, name, session)
        } else {
            lists(line.names, name)
        };
        matches.then(|| KnownKey { blob: line.blob, place: place.clone(), revoked: line.revoked })
    };
    lines.iter().filter_map(key).collect()
}

/// Checks that a line can apply to a host; the error says why not.
pub fn check_host_key_line(text: &str) -> Result<(), &'static str> {
    if text.contains(['\n', '\r']) {
        return Err("it is more than one line");
    }
    let line = parse(text)?;
    if key_type(&line.blob) == Some(line.kind) { Ok(()) } else { Err("its key is not of the stated type") }
}

fn parse(text: &str) -> Result<Line<'_>, &'static str> {
    let mut words = text.split_whitespace().peekable();
    let revoked = match words.next_if(|word| word.starts_with('@')) {
        None => false,
        Some("@revoked") => true,
        // We do not negotiate certificates, so keys of certificate authorities do not matter.
        Some(_) => return Err("the only supported marker is @revoked"),
    };
    let (Some(names), Some(kind), Some(key)) = (words.next(), words.next(), words.next()) else {
        return Err("it has fewer than three words");
    };
    if names.starts_with('#') {
        return Err("it is a comment");
    }
    let blob = STANDARD.decode(key).map_err(|_| "its key is not base64")?;
    Ok(Line { names, kind, key, blob, revoked })
}

/// Whether a comma-separated list of patterns contains the name: at least one matches, and none with `!` does.
fn lists(patterns: &str, name: &str) -> bool {
    let fits = |pattern: &str| WildMatch::new_case_insensitive(pattern).matches(name);
    let mut listed = false;
    for pattern in patterns.split(',') {
        match pattern.strip_prefix('!') {
            Some(excluded) if fits(excluded) => return false,
            Some(_) => {}
            None => listed |= fits(pattern),
        }
    }
    listed
}

fn is_hash_of(line: &Line<'_>, name: &str, session: &Session) -> bool {
    let Ok(mut one_line) = session.known_hosts() else { return false };
    let text = format!("{} {} {}\n", line.names, line.kind, line.key);
    one_line.read_str(&text, KnownHostFileKind::OpenSSH).is_ok()
        && matches!(one_line.check(name, &line.blob), CheckResult::Match)
}

/// The algorithm in the first field of a key.
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
    fn a_line_applies_to_the_names_and_patterns_that_it_lists() {
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
    fn a_hashed_name_matches() {
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
    fn markers_comments_and_damaged_lines_are_distinguished() {
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
    fn a_line_that_can_never_apply_is_rejected_in_advance() {
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
    fn the_key_type_comes_from_the_key_itself() {
        assert_eq!(key_type(&STANDARD.decode(KEY).expect("base64")), Some("ssh-ed25519"));
        assert_eq!(key_type(b"\0\0\0\xffshort"), None);
        assert_eq!(key_type(b""), None);
    }

    #[test]
    fn a_hostile_pattern_is_matched_quickly() {
        let pattern = format!("{}b", "*a".repeat(2000));
        assert!(!lists(&pattern, &"a".repeat(3000)));
    }
}

//! Checks the private key file before any host is contacted.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::SshError;

/// Enough of the file for its header. Only libssh2 reads the key itself.
const HEADER_BYTES: u64 = 160;

/// The permission bits of the key file, or an error with the reason why it is unusable.
pub fn inspect_key(path: &Path) -> Result<u32, SshError> {
    let unreadable = |reason: String| SshError::KeyUnreadable { path: path.to_owned(), reason };
    let file = File::open(path).map_err(|error| unreadable(error.to_string()))?;
    let metadata = file.metadata().map_err(|error| unreadable(error.to_string()))?;
    if !metadata.is_file() {
        return Err(unreadable("it is not a regular file".to_owned()));
    }
    let mut header = Vec::new();
    file.take(HEADER_BYTES).read_to_end(&mut header).map_err(|error| unreadable(error.to_string()))?;
    let header = String::from_utf8_lossy(&header);
    if header.starts_with("ssh-") || header.starts_with("ecdsa-") {
        return Err(unreadable("it is a public key; a private key is required".to_owned()));
    }
    if !header.starts_with("-----BEGIN ") {
        return Err(unreadable("it is not a private key in PEM or OpenSSH format".to_owned()));
    }
    if has_passphrase(&header) {
        return Err(unreadable("it is protected by a passphrase".to_owned()));
    }
    Ok(metadata.permissions().mode() & 0o777)
}

/// Warns if other accounts than the owner can read the key.
pub(crate) fn warn_if_exposed(path: &Path) {
    if let Ok(mode) = path.metadata().map(|metadata| metadata.permissions().mode() & 0o777)
        && mode & 0o077 != 0
    {
        let mode = format!("{mode:04o}");
        tracing::warn!(key.path = %path.display(), key.mode = mode, "other accounts can read the SSH key file; use mode 0600");
    }
}

/// PEM contains the word ENCRYPTED. The OpenSSH format names a cipher after its magic bytes; `none` means no passphrase.
fn has_passphrase(header: &str) -> bool {
    let mut lines = header.lines();
    if lines.next() != Some("-----BEGIN OPENSSH PRIVATE KEY-----") {
        return header.contains("ENCRYPTED");
    }
    let whole = lines.next().unwrap_or_default();
    let decoded = STANDARD.decode(&whole[..whole.len() / 4 * 4]).unwrap_or_default();
    decoded.strip_prefix(b"openssh-key-v1\0\0\0\0").is_some_and(|rest| !rest.starts_with(b"\x04none"))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::process::Command;

    use super::*;

    fn generated(directory: &Path, kind: &str, passphrase: &str, format: &str) -> PathBuf {
        let path = directory.join(format!("{kind}{passphrase}{format}"));
        let made = Command::new("ssh-keygen")
            .args(["-q", "-t", kind, "-m", format, "-N", passphrase, "-f"])
            .arg(&path)
            .status()
            .expect("ssh-keygen runs");
        assert!(made.success());
        path
    }

    fn reason(path: &Path) -> String {
        inspect_key(path).expect_err("the file is unusable").to_string()
    }

    #[test]
    fn keys_without_a_passphrase_are_accepted_in_both_formats() {
        let directory = tempfile::tempdir().expect("a directory");
        for (kind, format) in [("ed25519", "RFC4716"), ("ecdsa", "PEM"), ("rsa", "RFC4716")] {
            assert_eq!(inspect_key(&generated(directory.path(), kind, "", format)), Ok(0o600));
        }
    }

    #[test]
    fn keys_with_a_passphrase_are_detected_in_both_formats() {
        let directory = tempfile::tempdir().expect("a directory");
        for (kind, format) in [("ed25519", "RFC4716"), ("ecdsa", "PEM")] {
            let reason = reason(&generated(directory.path(), kind, "secret", format));
            assert!(reason.contains("passphrase"), "{reason}");
        }
    }

    #[test]
    fn other_files_are_refused_with_the_path_and_the_reason() {
        let directory = tempfile::tempdir().expect("a directory");
        let public = generated(directory.path(), "ed25519", "", "RFC4716").with_extension("pub");
        assert!(reason(&public).contains("public key"));
        assert!(reason(directory.path()).contains("not a regular file"));
        let missing = reason(&directory.path().join("absent"));
        assert!(missing.contains("absent") && missing.contains("No such file"), "{missing}");
    }
}

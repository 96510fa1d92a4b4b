//! The key that seals secrets in the database: 32 bytes in base64, in a file that only its owner can read.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write},
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::Path,
};

use anyhow::{Context, bail};
use base64::{Engine, prelude::BASE64_STANDARD};
use rand::RngCore;

/// Reads the key, or creates it on the first run.
pub(crate) fn sealing_key(path: &Path) -> anyhow::Result<[u8; 32]> {
    match existing_key(path)? {
        Some(key) => Ok(key),
        None => make(path),
    }
}

/// Reads the key if it exists.
pub(crate) fn existing_key(path: &Path) -> anyhow::Result<Option<[u8; 32]>> {
    let found = match fs::metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).with_context(|| advice(path)),
    };
    let mode = found.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        bail!("other users can read the key file {0} (mode {mode:03o}); run: chmod 600 {0}", path.display());
    }
    read(path).map(Some)
}

fn read(path: &Path) -> anyhow::Result<[u8; 32]> {
    let text = fs::read_to_string(path).with_context(|| advice(path))?;
    let bytes = BASE64_STANDARD.decode(text.trim()).unwrap_or_default();
    bytes.try_into().map_err(|_| {
        anyhow::anyhow!(
            "the key file {} does not hold 32 bytes in base64; restore it from a backup, or create a new one (openssl rand \
             -base64 32), which cannot open the secrets of unfinished jobs",
            path.display()
        )
    })
}

fn make(path: &Path) -> anyhow::Result<[u8; 32]> {
    let mut key = [0; 32];
    rand::rng().fill_bytes(&mut key);
    let dir = path.parent().unwrap_or(Path::new("."));
    // A crash must not leave half a key, so the file gets its name when it is complete. The link fails if another process was faster;
    // then its key counts.
    let partial = &dir.join(format!(".secrets.key.{:016x}", rand::rng().next_u64()));
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(partial)
        .with_context(|| advice(path))?;
    writeln!(file, "{}", BASE64_STANDARD.encode(key))
        .and_then(|()| file.sync_all())
        .with_context(|| advice(path))?;
    let linked = fs::hard_link(partial, path);
    fs::remove_file(partial).with_context(|| advice(path))?;
    match linked {
        Ok(()) => Ok(key),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => read(path),
        Err(error) => Err(error).with_context(|| advice(path)),
    }
}

fn advice(path: &Path) -> String {
    format!(
        "cannot use the key file {}; set secrets.key_file to a path that this service can write",
        path.display()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_created_once_for_its_owner_only() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("secrets.key");
        let made = sealing_key(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(sealing_key(&path).unwrap(), made);
        assert_ne!(made, [0; 32]);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "a partial file was left behind");
    }

    #[test]
    fn a_key_that_other_users_can_read_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("k");
        sealing_key(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let error = sealing_key(&path).unwrap_err().to_string();
        assert!(error.contains("mode 640") && error.contains("chmod 600"), "{error}");
    }

    #[test]
    fn a_broken_key_is_never_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("k");
        sealing_key(&path).unwrap();
        fs::write(&path, "short").unwrap();
        assert!(sealing_key(&path).unwrap_err().to_string().contains("32 bytes in base64"));
        assert_eq!(fs::read_to_string(&path).unwrap(), "short");
    }
}

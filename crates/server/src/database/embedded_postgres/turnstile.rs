//! Who may start and who must stop the shared Postgres, by file locks: the kernel lets go of them for a process
//! that dies, however it dies.

use std::{
    fs::{File, OpenOptions, TryLockError},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use anyhow::Context;

/// Two lock files beside the data: one for the moment of starting or stopping, one that every user shares.
pub(super) struct Turnstile {
    gate: PathBuf,
    users: PathBuf,
}

/// The exclusive right to start or stop, for as long as it is held.
pub(super) struct Gate(#[expect(dead_code, reason = "holding it is its use")] File);

/// One user's share.
pub(super) struct User(File);

impl Turnstile {
    pub(super) fn new(data_dir: &Path) -> Self {
        Self { gate: data_dir.join("postgres.gate"), users: data_dir.join("postgres.users") }
    }

    /// Waits for the exclusive right to start or stop.
    pub(super) fn close(&self) -> anyhow::Result<Gate> {
        let file = open(&self.gate)?;
        file.lock().with_context(|| format!("cannot lock {}", self.gate.display()))?;
        Ok(Gate(file))
    }

    /// Whether anybody is inside; only with the gate closed.
    pub(super) fn has_users(&self) -> anyhow::Result<bool> {
        Ok(!User(open(&self.users)?).is_last()?)
    }

    /// Becomes a user; only with the gate closed, so that nobody stops what is just being entered.
    pub(super) fn enter(&self) -> anyhow::Result<User> {
        let file = open(&self.users)?;
        file.lock_shared().with_context(|| format!("cannot lock {}", self.users.display()))?;
        Ok(User(file))
    }
}

impl User {
    /// Whether nobody else is left; only with the gate closed. This user's share is gone afterwards.
    pub(super) fn is_last(&self) -> anyhow::Result<bool> {
        self.0.unlock()?;
        match self.0.try_lock() {
            Ok(()) => Ok(true),
            Err(TryLockError::WouldBlock) => Ok(false),
            Err(TryLockError::Error(error)) => Err(error).context("cannot lock the list of users"),
        }
    }
}

fn open(path: &Path) -> anyhow::Result<File> {
    OpenOptions::new()
        .create(true)
        .write(true)
        .truncate(false)
        .mode(0o600)
        .open(path)
        .with_context(|| format!("cannot open {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_one_out_is_told_so() {
        let dir = tempfile::tempdir().unwrap();
        let turnstile = Turnstile::new(dir.path());
        let (first, second) = (turnstile.enter().unwrap(), turnstile.enter().unwrap());
        assert!(!first.is_last().unwrap());
        assert!(second.is_last().unwrap());
    }
}

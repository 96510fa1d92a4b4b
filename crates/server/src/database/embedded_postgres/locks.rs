//! File locks that decide which process starts and stops the shared Postgres. The kernel releases the locks of a process
//! that dies.

use std::{
    fs::{File, OpenOptions, TryLockError},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use anyhow::Context;

/// Two lock files beside the data.
pub(super) struct Locks {
    /// Held by one process while it starts or stops Postgres.
    exclusive: PathBuf,
    /// Shared by all users.
    users: PathBuf,
}

impl Locks {
    pub(super) fn new(data_dir: &Path) -> Self {
        Self { exclusive: data_dir.join("postgres.gate"), users: data_dir.join("postgres.users") }
    }

    /// Waits for the exclusive lock, which all other functions here require.
    pub(super) fn start_or_stop(&self) -> anyhow::Result<File> {
        let file = open(&self.exclusive)?;
        file.lock().with_context(|| format!("cannot lock {}", self.exclusive.display()))?;
        Ok(file)
    }

    pub(super) fn has_users(&self) -> anyhow::Result<bool> {
        Ok(!is_last(&open(&self.users)?)?)
    }

    /// Takes the share of one user.
    pub(super) fn share(&self) -> anyhow::Result<File> {
        let file = open(&self.users)?;
        file.lock_shared().with_context(|| format!("cannot lock {}", self.users.display()))?;
        Ok(file)
    }
}

/// Gives up the share, and returns whether it was the last one.
pub(super) fn is_last(share: &File) -> anyhow::Result<bool> {
    share.unlock()?;
    match share.try_lock() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => {
            Err(error).context("cannot lock postgres.users in the data directory")
        }
    }
}

fn open(path: &Path) -> anyhow::Result<File> {
    let mut options = OpenOptions::new();
    let file = options.create(true).write(true).truncate(false).mode(0o600).open(path);
    file.with_context(|| format!("cannot open {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_share_is_the_last() {
        let dir = tempfile::tempdir().unwrap();
        let locks = Locks::new(dir.path());
        let (first, second) = (locks.share().unwrap(), locks.share().unwrap());
        assert!(!is_last(&first).unwrap());
        assert!(is_last(&second).unwrap());
    }
}

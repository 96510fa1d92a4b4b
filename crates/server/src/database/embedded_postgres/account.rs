//! The account that runs Postgres: ours, or the account `postgres` if we are root, because Postgres refuses to run as root.

use std::{
    fs::{self, DirBuilder, Permissions},
    io,
    os::unix::{
        fs::{DirBuilderExt, MetadataExt, PermissionsExt, chown},
        process::CommandExt,
    },
    path::Path,
    process::Command,
};

use anyhow::{Context, bail};

/// The account that Postgres runs under.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Account {
    pub(super) uid: u32,
    gid: u32,
    /// Whether it is not our own; then we are root.
    other: bool,
}

impl Account {
    pub(super) fn for_postgres() -> anyhow::Result<Self> {
        let uid = rustix::process::geteuid();
        if !uid.is_root() {
            return Ok(Self { uid: uid.as_raw(), gid: rustix::process::getegid().as_raw(), other: false });
        }
        let accounts = fs::read_to_string("/etc/passwd").context("cannot read /etc/passwd")?;
        match find(&accounts, "postgres") {
            Some((uid, gid)) => Ok(Self { uid, gid, other: true }),
            None => bail!(
                "Postgres does not run as root, and this machine has no account `postgres`; run `apt-get install \
                 postgresql`, or set DATABASE_URL to another Postgres"
            ),
        }
    }

    /// A command under this account.
    pub(super) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        // PG* variables would change Postgres's defaults, and errors quote its messages in English.
        for variable in ["PGDATA", "PGPORT", "PGHOST", "PGUSER", "PGOPTIONS"] {
            command.env_remove(variable);
        }
        command.env("LC_ALL", "C").current_dir("/");
        if self.other {
            command.uid(self.uid).gid(self.gid);
        }
        command
    }

    /// Creates a directory that only this account may enter. An existing directory must belong to it.
    pub(super) fn make_private_dir(&self, dir: &Path) -> anyhow::Result<()> {
        match DirBuilder::new().mode(0o700).create(dir) {
            Ok(()) if self.other => chown(dir, Some(self.uid), Some(self.gid))
                .with_context(|| format!("cannot give {} to the account postgres", dir.display())),
            Ok(()) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => self.check_private(dir),
            Err(error) => Err(error).with_context(|| format!("cannot create {}", dir.display())),
        }
    }

    fn check_private(&self, dir: &Path) -> anyhow::Result<()> {
        let found = fs::symlink_metadata(dir)?;
        if !found.is_dir() || found.uid() != self.uid {
            bail!("{} is not a directory of the account that runs Postgres; remove it", dir.display());
        }
        fs::set_permissions(dir, Permissions::from_mode(0o700))
            .with_context(|| format!("cannot restrict {} to its owner", dir.display()))
    }

    /// Lets this account enter our data directory, through its group and without listing it.
    pub(super) fn let_in(&self, data_dir: &Path) -> anyhow::Result<()> {
        let found = fs::metadata(data_dir)
            .with_context(|| format!("cannot read the attributes of {}", data_dir.display()))?;
        let ours = found.uid() == rustix::process::geteuid().as_raw();
        if !self.other || !ours || self.may_enter(&found) {
            return Ok(());
        }
        chown(data_dir, None, Some(self.gid))
            .and_then(|()| {
                fs::set_permissions(data_dir, Permissions::from_mode(found.mode() & 0o700 | 0o010))
            })
            .with_context(|| format!("cannot give the account postgres access to {}", data_dir.display()))
    }

    fn may_enter(&self, dir: &fs::Metadata) -> bool {
        let bit = match (dir.uid() == self.uid, dir.gid() == self.gid) {
            (true, _) => 0o100,
            (false, true) => 0o010,
            (false, false) => 0o001,
        };
        dir.mode() & bit != 0
    }

    /// Fails if this account cannot enter a parent directory of its data; Postgres's own error would be less clear.
    pub(super) fn check_reaches(&self, home: &Path) -> anyhow::Result<()> {
        for dir in home.ancestors().skip(1).filter(|_| self.other) {
            let found = fs::metadata(dir)
                .with_context(|| format!("cannot read the attributes of {}", dir.display()))?;
            if !self.may_enter(&found) {
                bail!(
                    "the account postgres runs the private Postgres, because root must not, but it cannot enter {}; set \
                     data_dir (TAO_SLURM_DATA_DIR) to a directory that it can reach, such as /var/lib/tao-slurm, or \
                     set DATABASE_URL",
                    dir.display()
                );
            }
        }
        Ok(())
    }
}

/// The user and group ids of an account in `/etc/passwd`.
fn find(accounts: &str, name: &str) -> Option<(u32, u32)> {
    accounts.lines().find_map(|line| {
        let mut fields = line.split(':');
        let (found, _password) = (fields.next()?, fields.next()?);
        let ids = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
        (found == name).then_some(ids)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_is_found_by_its_whole_name() {
        let accounts =
            "root:x:0:0::/root:/bin/sh\nbad line\npostgresql:x:9:9::/:\npostgres:x:101:104:,,,:/v:/b\n";
        assert_eq!(find(accounts, "postgres"), Some((101, 104)));
        assert_eq!(find(accounts, "postgre"), None);
    }

    #[test]
    fn a_directory_that_the_account_cannot_enter_is_an_error_that_names_it() {
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), Permissions::from_mode(0o700)).unwrap();
        let account = Account { uid: 4_000_001, gid: 4_000_001, other: true };
        let error = account.check_reaches(&dir.path().join("postgres")).unwrap_err().to_string();
        assert!(
            error.contains(&dir.path().display().to_string()) && error.contains("TAO_SLURM_DATA_DIR"),
            "{error}"
        );
    }
}

//! The programs of Postgres on this machine: the newest version, or the one that created the data.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::bail;

/// One installation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Binaries {
    pub(super) postgres: PathBuf,
    pub(super) initdb: PathBuf,
    pub(super) pg_ctl: PathBuf,
    major: u32,
}

/// Where Debian, Red Hat and Homebrew install versions side by side: `<root>/<version>/bin` or `<root><version>/bin`.
const VERSIONED: [(&str, &str); 3] =
    [("/usr/lib/postgresql", ""), ("/usr", "pgsql-"), ("/opt/homebrew/opt", "postgresql@")];

/// The installation for this data directory.
pub(super) fn find(data: &Path, search_path: &[PathBuf]) -> anyhow::Result<Binaries> {
    let created_by =
        fs::read_to_string(data.join("PG_VERSION")).ok().and_then(|text| text.trim().parse().ok());
    choose(installed(search_path), created_by)
}

fn choose(mut installed: Vec<Binaries>, created_by: Option<u32>) -> anyhow::Result<Binaries> {
    installed.sort_by_key(|found| found.major);
    let Some(newest) = installed.last().cloned() else {
        bail!(
            "no database: DATABASE_URL is not set, and PostgreSQL is not installed on this machine; run `apt-get \
             install postgresql`, or set DATABASE_URL"
        );
    };
    // Postgres opens a data directory only with the major version that created it.
    let Some(major) = created_by else { return Ok(newest) };
    match installed.into_iter().find(|found| found.major == major) {
        Some(found) => Ok(found),
        None => bail!(
            "PostgreSQL {major} created the private database, but the newest version here is {}; install \
             postgresql-{major}, or set DATABASE_URL",
            newest.major
        ),
    }
}

fn installed(search_path: &[PathBuf]) -> Vec<Binaries> {
    let versioned = VERSIONED.iter().flat_map(|(root, prefix)| {
        let entries = fs::read_dir(root).into_iter().flatten().flatten();
        entries.filter(move |entry| {
            let name = entry.file_name();
            name.to_str()
                .and_then(|name| name.strip_prefix(prefix))
                .is_some_and(|rest| rest.parse::<u32>().is_ok())
        })
    });
    let dirs = versioned.map(|entry| entry.path().join("bin")).chain(search_path.iter().cloned());
    dirs.filter_map(|dir| in_dir(&dir)).collect()
}

fn in_dir(dir: &Path) -> Option<Binaries> {
    let [postgres, initdb, pg_ctl] = ["postgres", "initdb", "pg_ctl"].map(|name| dir.join(name));
    if ![&postgres, &initdb, &pg_ctl].into_iter().all(|program| program.is_file()) {
        return None;
    }
    let version = Command::new(&postgres).arg("--version").output().ok()?;
    let major = major_of(&String::from_utf8_lossy(&version.stdout))?;
    Some(Binaries { postgres, initdb, pg_ctl, major })
}

/// 15 from `postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)` and from `postgres (PostgreSQL) 19beta1`.
fn major_of(text: &str) -> Option<u32> {
    let version = text.split_whitespace().nth(2)?;
    let digits: String = version.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(major: u32) -> Binaries {
        Binaries {
            postgres: format!("/{major}/postgres").into(),
            initdb: "/initdb".into(),
            pg_ctl: "/pg_ctl".into(),
            major,
        }
    }

    #[test]
    fn the_newest_version_is_used_unless_the_data_needs_another() {
        let have = || vec![version(9), version(16), version(15)];
        assert_eq!(choose(have(), None).unwrap().major, 16);
        assert_eq!(choose(have(), Some(15)).unwrap().major, 15);
    }

    #[test]
    fn a_missing_version_is_an_error_that_says_what_to_install() {
        let error = choose(Vec::new(), None).unwrap_err().to_string();
        assert!(error.contains("apt-get install postgresql") && error.contains("DATABASE_URL"), "{error}");
        let error = choose(vec![version(16)], Some(15)).unwrap_err().to_string();
        assert!(error.contains("install postgresql-15"), "{error}");
    }

    #[test]
    fn the_version_is_parsed() {
        assert_eq!(major_of("postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)\n"), Some(15));
        assert_eq!(major_of("postgres (PostgreSQL) 19beta1"), Some(19));
        assert_eq!(major_of("what?"), None);
    }
}

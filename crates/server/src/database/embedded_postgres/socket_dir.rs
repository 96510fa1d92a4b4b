//! Where the socket lies: in the data directory if its path is short enough for a socket, else in a place with
//! a short one.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    path::{Path, PathBuf},
};

use super::account::Account;

/// `sun_path` has 108 bytes with its NUL (unix(7)).
const LONGEST_SOCKET: usize = 107;
const SOCKET: &str = "/.s.PGSQL.5432";

/// Makes the directory, closed to everybody else.
pub(super) fn make(home: &Path, account: &Account) -> anyhow::Result<PathBuf> {
    let dir = choose(home, account.uid);
    account.make_private_dir(&dir)?;
    Ok(dir)
}

fn choose(home: &Path, uid: u32) -> PathBuf {
    let near = home.join("run");
    if fits(&near) {
        return near;
    }
    // Stable for one data directory and account. Only a name: what protects it is the owner and the mode.
    let mut hash = DefaultHasher::new();
    (home, uid).hash(&mut hash);
    PathBuf::from(format!("/tmp/tao-slurm-{uid}-{:016x}", hash.finish()))
}

/// Short enough, and without what would end a name in Postgres's list of directories.
fn fits(dir: &Path) -> bool {
    let plain = |c: char| !c.is_whitespace() && !matches!(c, ',' | '"' | '\'' | '\\');
    dir.to_str().is_some_and(|text| text.len() + SOCKET.len() <= LONGEST_SOCKET && text.chars().all(plain))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_path_keeps_its_socket_near() {
        assert_eq!(choose(Path::new("/var/lib/t/postgres"), 7), PathBuf::from("/var/lib/t/postgres/run"));
    }

    #[test]
    fn a_long_or_odd_path_gets_a_short_one_of_its_own() {
        let (long, odd) = (format!("/{}/postgres", "a".repeat(100)), "/a b/postgres");
        let (far, other) = (choose(Path::new(&long), 7), choose(Path::new(odd), 7));
        for dir in [&far, &other] {
            assert!(dir.starts_with("/tmp") && fits(dir), "{}", dir.display());
        }
        assert_ne!(far, other);
        assert_eq!(far, choose(Path::new(&long), 7));
    }

    #[test]
    fn the_limit_is_the_kernels() {
        let exactly = format!("/{}", "a".repeat(LONGEST_SOCKET - SOCKET.len() - 1));
        assert!(fits(Path::new(&exactly)));
        assert!(!fits(Path::new(&format!("{exactly}a"))));
    }
}

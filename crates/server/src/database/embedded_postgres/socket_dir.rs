//! The directory of the socket: in the data directory if its path is short enough, else below `/tmp`.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    path::{Path, PathBuf},
};

/// `sun_path` has 108 bytes with its NUL (unix(7)).
const LONGEST_SOCKET: usize = 107;
const SOCKET: &str = "/.s.PGSQL.5432";

/// The socket directory of a data directory and an account; the same in each process.
pub(super) fn of(home: &Path, uid: u32) -> PathBuf {
    let near = home.join("run");
    if fits(&near) {
        return near;
    }
    // The hash only makes the name unique. Owner and mode protect the directory.
    let mut hash = DefaultHasher::new();
    (home, uid).hash(&mut hash);
    PathBuf::from(format!("/tmp/tao-slurm-{uid}-{:016x}", hash.finish()))
}

/// Whether the path is short enough, and has only characters that need no quotes in Postgres's options.
fn fits(dir: &Path) -> bool {
    let plain = |c: char| c.is_alphanumeric() || "/-_.+@~=:%".contains(c);
    dir.to_str().is_some_and(|text| text.len() + SOCKET.len() <= LONGEST_SOCKET && text.chars().all(plain))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_path_has_its_socket_in_the_data_directory() {
        assert_eq!(of(Path::new("/var/lib/t/postgres"), 7), PathBuf::from("/var/lib/t/postgres/run"));
    }

    #[test]
    fn a_long_or_special_path_has_its_own_directory_in_tmp() {
        let (long, odd) = (format!("/{}/postgres", "a".repeat(100)), "/a b/postgres");
        let (far, other) = (of(Path::new(&long), 7), of(Path::new(odd), 7));
        for dir in [&far, &other] {
            assert!(dir.starts_with("/tmp") && fits(dir), "{}", dir.display());
        }
        assert_ne!(far, other);
        assert_eq!(far, of(Path::new(&long), 7));
    }

    #[test]
    fn the_limit_is_that_of_the_kernel() {
        let exactly = format!("/{}", "a".repeat(LONGEST_SOCKET - SOCKET.len() - 1));
        assert!(fits(Path::new(&exactly)));
        assert!(!fits(Path::new(&format!("{exactly}a"))));
    }
}

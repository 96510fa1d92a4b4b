//! The running Postgres, according to its pid file and the kernel.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use rustix::process::{Pid, test_kill_process};

/// The process that runs on this data, whoever started it.
pub(super) fn running(data: &Path) -> Option<Pid> {
    recorded(data).filter(|pid| serves(*pid, data))
}

/// The first line of the pid file.
fn recorded(data: &Path) -> Option<Pid> {
    let text = fs::read_to_string(data.join("postmaster.pid")).ok()?;
    Pid::from_raw(text.lines().next()?.trim().parse().ok()?)
}

/// Whether the process is alive and is the Postgres of this data: pids are reused, above all in containers.
fn serves(pid: Pid, data: &Path) -> bool {
    let proc = PathBuf::from(format!("/proc/{}", pid.as_raw_nonzero()));
    match fs::read_link(proc.join("cwd")) {
        // Postgres's working directory is its data directory.
        Ok(cwd) => Some(cwd) == fs::canonicalize(data).ok(),
        // Root without CAP_SYS_PTRACE, as in a container, may read only the command line.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            let line = fs::read(proc.join("cmdline")).unwrap_or_default();
            line.split(|byte| *byte == 0).any(|word| word == data.as_os_str().as_encoded_bytes())
        }
        Err(_) if Path::new("/proc/self").exists() => false,
        Err(_) => test_kill_process(pid).is_ok(),
    }
}

/// Removes a pid file whose pid now belongs to another program, because Postgres would refuse to start. If no process has
/// the pid, Postgres removes the file itself, after closer checks. Call it only with the exclusive lock.
pub(super) fn remove_stale_pid_file(data: &Path) -> io::Result<()> {
    let is_in_use = recorded(data).is_some_and(|pid| {
        // A process that we may not signal exists, too.
        !matches!(test_kill_process(pid), Err(rustix::io::Errno::SRCH))
    });
    if is_in_use && running(data).is_none() { fs::remove_file(data.join("postmaster.pid")) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pid_is_the_first_line_of_the_pid_file() {
        let dir = tempfile::tempdir().unwrap();
        let recorded = |text: &str| {
            fs::write(dir.path().join("postmaster.pid"), text).unwrap();
            super::recorded(dir.path())
        };
        assert_eq!(recorded("71\n/d\n1763\n5432\n/d/run\n\n 1234 5\nready   \n"), Pid::from_raw(71));
        assert_eq!(recorded("71\n"), Pid::from_raw(71));
        assert_eq!(recorded(""), None);
    }

    #[test]
    fn a_pid_of_another_program_is_not_postgres() {
        let dir = tempfile::tempdir().unwrap();
        let file = format!("{}\n/d\n1\n5432\n/run\n\n\nready\n", std::process::id());
        fs::write(dir.path().join("postmaster.pid"), file).unwrap();
        assert!(running(dir.path()).is_none());
    }
}

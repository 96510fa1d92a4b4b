//! The running server, as its pid file and the kernel show it.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use anyhow::Context;
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use secrecy::SecretString;

/// A Postgres that was seen to run on our data.
#[derive(Debug, Clone)]
pub(super) struct Postmaster {
    pid: Pid,
    data: PathBuf,
    sockets: PathBuf,
}

impl Postmaster {
    /// The one we have just started.
    pub(super) fn started(pid: u32, data: &Path, sockets: PathBuf) -> anyhow::Result<Self> {
        let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).context("a process without a number")?;
        Ok(Self { pid, data: data.to_owned(), sockets })
    }

    /// The one that runs on this data, whoever started it.
    pub(super) fn running(data: &Path) -> Option<Self> {
        let file = PidFile::read(data)?;
        let found = Self { pid: Pid::from_raw(file.pid)?, data: data.to_owned(), sockets: file.sockets? };
        found.is_alive().then_some(found)
    }

    pub(super) fn pid(&self) -> i32 {
        self.pid.as_raw_nonzero().get()
    }

    /// Whether the process lives and is still the one meant: numbers are used again, most of all in containers.
    pub(super) fn is_alive(&self) -> bool {
        let proc = PathBuf::from(format!("/proc/{}", self.pid()));
        match fs::read_link(proc.join("cwd")) {
            // Postgres's working directory is its data.
            Ok(cwd) => Some(cwd) == fs::canonicalize(&self.data).ok(),
            // Root without CAP_SYS_PTRACE, as in a container, may not look there, but may read the command line.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                let line = fs::read(proc.join("cmdline")).unwrap_or_default();
                line.split(|byte| *byte == 0).any(|word| word == self.data.as_os_str().as_encoded_bytes())
            }
            Err(_) if Path::new("/proc/self").exists() => false,
            Err(_) => test_kill_process(self.pid).is_ok(),
        }
    }

    /// Postgres's "fast" shutdown: connections are cut, everything is written, nothing needs recovery.
    pub(super) fn interrupt(&self) -> anyhow::Result<()> {
        kill_process(self.pid, Signal::INT).context("cannot stop the private Postgres")
    }

    /// An address that the driver understands: a directory as host is a socket.
    pub(super) fn url(&self, name: &str) -> SecretString {
        let escaped: String = self.sockets.to_string_lossy().bytes().map(escape).collect();
        format!("postgres:///{name}?host={escaped}&port=5432&user={name}&sslmode=disable").into()
    }
}

/// RFC 3986: what is not unreserved is escaped, but for the slash, which a query may hold.
fn escape(byte: u8) -> String {
    match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' | b'/' => {
            char::from(byte).to_string()
        }
        other => format!("%{other:02X}"),
    }
}

/// Whether the server says that it takes connections.
pub(super) fn is_ready(data: &Path, pid: i32) -> bool {
    PidFile::read(data).is_some_and(|file| file.pid == pid && file.ready)
}

/// Removes a pid file whose number now belongs to another program, which would keep Postgres from starting.
/// Only with the gate closed. A number that nobody has is left to Postgres, which looks more closely.
pub(super) fn forget_stranger(data: &Path) -> io::Result<()> {
    let taken = PidFile::read(data).and_then(|file| Pid::from_raw(file.pid)).is_some_and(|pid| {
        // Not being allowed to signal it is a proof of life too.
        !matches!(test_kill_process(pid), Err(rustix::io::Errno::SRCH))
    });
    if taken && Postmaster::running(data).is_none() {
        fs::remove_file(data.join("postmaster.pid"))
    } else {
        Ok(())
    }
}

/// `postmaster.pid`: process, data, start, port, socket directory, address, shared memory, state; one a line.
struct PidFile {
    pid: i32,
    sockets: Option<PathBuf>,
    ready: bool,
}

impl PidFile {
    fn read(data: &Path) -> Option<Self> {
        Self::parse(&fs::read_to_string(data.join("postmaster.pid")).ok()?)
    }

    fn parse(text: &str) -> Option<Self> {
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        Some(Self {
            pid: lines.first()?.parse().ok()?,
            sockets: lines.get(4).filter(|dir| !dir.is_empty()).map(PathBuf::from),
            ready: lines.get(7) == Some(&"ready"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pid_file_says_where_and_whether() {
        let file = PidFile::parse("71\n/d\n1763\n5432\n/d/run\n\n 1234 5\nready   \n").unwrap();
        assert_eq!((file.pid, file.sockets, file.ready), (71, Some("/d/run".into()), true));
        assert!(!PidFile::parse("71\n/d\n1763\n5432\n/d/run\n\n 1234 5\nstarting\n").unwrap().ready);
        assert!(PidFile::parse("71\n").unwrap().sockets.is_none());
        assert!(PidFile::parse("").is_none());
    }

    #[test]
    fn a_number_that_belongs_to_another_program_is_no_postgres() {
        let dir = tempfile::tempdir().unwrap();
        let file = format!("{}\n/d\n1\n5432\n/run\n\n\nready\n", std::process::id());
        fs::write(dir.path().join("postmaster.pid"), file).unwrap();
        assert!(Postmaster::running(dir.path()).is_none());
    }
}

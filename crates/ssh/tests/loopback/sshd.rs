//! An `sshd` of the test, with its own port, keys and configuration; it ends when the value is dropped.

use std::fmt::Write;
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command as Process, Stdio};
use std::time::{Duration, Instant};

use ssh::{Command, HostPort, SshConfig, SshPool};
use tempfile::TempDir;

const PROGRAM: &str = "/usr/sbin/sshd";

pub(crate) struct Sshd {
    directory: TempDir,
    child: Child,
    port: u16,
}

impl Sshd {
    /// A server that accepts the key `user_key`.
    pub(crate) fn start() -> Self {
        Self::with("")
    }

    /// A server with more lines in its configuration; the first value of an option counts.
    pub(crate) fn with(lines: &str) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        generate_key(&directory.path().join("host_key"), "ed25519");
        generate_key(&directory.path().join("user_key"), "ed25519");
        fs::copy(directory.path().join("user_key.pub"), directory.path().join("authorized_keys"))
            .expect("copied");
        Self::launch(directory, lines)
    }

    fn launch(directory: TempDir, lines: &str) -> Self {
        assert!(Path::new(PROGRAM).exists(), "{PROGRAM} is missing: install the package openssh-server");
        if user() == "root" {
            // sshd needs this directory for privilege separation.
            fs::create_dir_all("/run/sshd").expect("/run/sshd");
        }
        for _ in 0..5 {
            let port = free_port();
            let mut child = spawn(directory.path(), port, lines);
            if is_listening(&mut child, port) {
                return Self { directory, child, port };
            }
            // Another process took the port in the meantime.
            let _ = child.kill();
            let _ = child.wait();
        }
        let log = fs::read_to_string(directory.path().join("log")).unwrap_or_default();
        panic!("sshd does not start:\n{log}");
    }

    pub(crate) fn host(&self) -> HostPort {
        HostPort::new("127.0.0.1", self.port).expect("a host")
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// A command that makes a file when it begins.
    pub(crate) fn marked(&self, program: &str) -> Command {
        command(&format!("touch {}; {program}", self.path("begun").display()))
    }

    /// Waits for a marked command to begin.
    pub(crate) async fn has_begun(&self) {
        self.has("begun").await;
    }

    /// Waits until a command has made this file.
    pub(crate) async fn has(&self, name: &str) {
        while !self.path(name).exists() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// The `known_hosts` line for this server's key with another port.
    pub(crate) fn host_key_line(&self, port: u16) -> String {
        let public = fs::read_to_string(self.path("host_key.pub")).expect("a host key");
        let words: Vec<&str> = public.split_whitespace().take(2).collect();
        format!("[127.0.0.1]:{port} {}", words.join(" "))
    }

    /// The configuration to reach this server with the right keys.
    pub(crate) fn config(&self) -> SshConfig {
        SshConfig {
            key_path: Some(self.path("user_key")),
            pinned_host_keys: vec![self.host_key_line(self.port)],
            connect_timeout: Duration::from_secs(30),
            ..SshConfig::new(user(), vec![self.host()])
        }
    }

    pub(crate) fn pool(&self) -> SshPool {
        SshPool::start(self.config())
    }

    /// Kills the processes that serve connections, and their descendants, but not the listener.
    pub(crate) fn kill_connections(&self) {
        let connections = descendants(self.child.id());
        kill(&connections);
        // They end a little later, and only then are their connections closed.
        while connections.iter().any(|pid| is_running(*pid)) {
            pause(Duration::from_millis(5));
        }
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.path("log")).unwrap_or_default()
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        let connections = descendants(self.child.id());
        // The listener first, or a client that lost its connection could reconnect.
        let _ = self.child.kill();
        let _ = self.child.wait();
        kill(&connections);
    }
}

/// Uses the shell's `kill`: the program is not installed everywhere.
fn kill(processes: &[u32]) {
    let ids: Vec<String> = processes.iter().map(u32::to_string).collect();
    let _ = Process::new("sh")
        .args(["-c", &format!("kill -KILL {}", ids.join(" "))])
        .stderr(Stdio::null())
        .status();
}

/// A command with a deadline of 60 s that accepts a mebibyte.
pub(crate) fn command(program: &str) -> Command {
    Command {
        program: program.to_owned(),
        stdin: Vec::new(),
        deadline: Duration::from_mins(1),
        stdout_limit: 1 << 20,
        repeatable: false,
    }
}

pub(crate) fn user() -> String {
    let id = Process::new("id").arg("-un").output().expect("id runs");
    String::from_utf8(id.stdout).expect("text").trim().to_owned()
}

pub(crate) fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port").port()
}

pub(crate) fn generate_key(path: &Path, kind: &str) {
    let made = Process::new("ssh-keygen").args(["-q", "-N", "", "-t", kind, "-f"]).arg(path).status();
    assert!(made.expect("ssh-keygen runs").success());
}

fn spawn(directory: &Path, port: u16, lines: &str) -> Child {
    let at = |name: &str| directory.join(name).display().to_string();
    let mut config =
        format!("{lines}\nListenAddress 127.0.0.1:{port}\nAuthorizedKeysFile {}\n", at("authorized_keys"));
    let _ = writeln!(config, "HostKey {}\nPidFile none\nStrictModes no\nUsePAM no", at("host_key"));
    // Not the start-up files of the user who runs the tests: they may be slow.
    let _ = writeln!(config, "SetEnv HOME={}", directory.display());
    config.push_str(
        "PasswordAuthentication no\nKbdInteractiveAuthentication no\nPermitRootLogin yes\nLogLevel VERBOSE\n",
    );
    fs::write(directory.join("sshd_config"), config).expect("a configuration");
    let config = at("sshd_config");
    // OpenSSH 9.8 and later refuse an address for a while after one of its sessions was killed, as some tests
    // do. Earlier versions do not know the option.
    let mut penalties = vec!["-o", "PerSourcePenalties=no"];
    let known =
        Process::new(PROGRAM).args(["-t", "-f", &config]).args(&penalties).stderr(Stdio::null()).status();
    if !known.is_ok_and(|status| status.success()) {
        penalties.clear();
    }
    Process::new(PROGRAM)
        .args(["-D", "-f", &config, "-E", &at("log")])
        .args(penalties)
        .stdin(Stdio::null())
        .spawn()
        .expect("sshd starts")
}

fn is_listening(child: &mut Child, port: u16) -> bool {
    let until = Instant::now() + Duration::from_mins(2);
    while Instant::now() < until && matches!(child.try_wait(), Ok(None)) {
        if TcpStream::connect(("127.0.0.1", port)).is_ok() {
            return true;
        }
        pause(Duration::from_millis(20));
    }
    false
}

/// Sleeps in a test that is not asynchronous.
pub(crate) fn pause(duration: Duration) {
    let (_sender, receiver) = std::sync::mpsc::channel::<()>();
    let _ = receiver.recv_timeout(duration);
}

/// Whether the process has open files: one that nobody has waited for yet has none.
fn is_running(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

/// The children of a process, their children, and so on; read from `/proc`.
fn descendants(pid: u32) -> Vec<u32> {
    let processes: Vec<(u32, u32)> = fs::read_dir("/proc")
        .expect("/proc")
        .filter_map(|entry| {
            let child = entry.ok()?.file_name().to_str()?.parse().ok()?;
            let stat = fs::read_to_string(format!("/proc/{child}/stat")).ok()?;
            // The name is in parentheses and may contain anything; the state and the parent follow.
            let parent = stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()?;
            Some((child, parent))
        })
        .collect();
    let mut found = vec![pid];
    let mut next = 0;
    while let Some(parent) = found.get(next).copied() {
        found.extend(processes.iter().filter(|(_, ppid)| *ppid == parent).map(|(child, _)| child));
        next += 1;
    }
    found.split_off(1)
}

//! The sandbox: its settings, commands on its machines, and counts of logins, remote commands and controller RPCs.

use std::{
    collections::{BTreeMap, HashMap},
    env, fs,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, ensure};

/// This program's own partition, for [`Sandbox::close`].
pub(crate) const BENCH_PARTITION: &str = "bench";

const PROGRAM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/sandbox/sandbox");

#[derive(Debug)]
pub(crate) struct Sandbox {
    pub(crate) env: HashMap<String, String>,
    pub(crate) dir: PathBuf,
}

/// Counts of all users on the login hosts, including this program's own commands. Take one count before and one after a
/// measurement without own commands.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Ssh {
    pub(crate) logins: u64,
    /// Sessions with a command; `scp` and `sftp` are one each.
    pub(crate) commands: u64,
}

/// RPCs of the controller since it started.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rpcs {
    /// RPCs of the login user.
    pub(crate) user: u64,
    pub(crate) by_type: BTreeMap<String, u64>,
}

impl Sandbox {
    /// Starts the sandbox unless it runs, and clears its queue.
    pub(crate) fn up() -> anyhow::Result<Self> {
        let own = concat!(env!("CARGO_MANIFEST_DIR"), "/../.sandbox");
        let dir = env::var_os("SANDBOX_DIR").map_or_else(|| PathBuf::from(own), PathBuf::from);
        stdout_of(&Command::new(PROGRAM).arg("up").output()?).context("sandbox up")?;
        let text = fs::read_to_string(dir.join("env"))?;
        let pair = |line: &str| {
            let (key, value) = line.split_once('=')?;
            Some((key.to_owned(), value.trim_matches('"').to_owned()))
        };
        let sandbox = Self { env: text.lines().filter_map(pair).collect(), dir: fs::canonicalize(dir)? };
        sandbox.clear()?;
        Ok(sandbox)
    }

    pub(crate) fn var(&self, key: &str) -> anyhow::Result<&str> {
        self.env
            .get(key)
            .map(String::as_str)
            .with_context(|| format!("{key} is missing in the sandbox's env"))
    }

    /// Runs a shell command as the login user on login1, over a new ssh connection.
    pub(crate) fn login(&self, text: &str) -> anyhow::Result<String> {
        let mut ssh = Command::new("timeout");
        ssh.args(["1800", "ssh", "-F"]).arg(self.dir.join("ssh/config"));
        stdout_of(&ssh.args(["login1", text]).output()?)
    }

    /// Opens an ssh connection to login1 for any number of commands.
    pub(crate) fn session(&self) -> anyhow::Result<Session> {
        let config = self.dir.join("ssh/config");
        // The path of a socket must be short.
        let socket = env::temp_dir().join(format!("bench-{}.ssh", std::process::id()));
        let mut ssh = Command::new("ssh");
        ssh.arg("-F").arg(&config).args(["-M", "-N", "-S"]).arg(&socket).arg("login1");
        // In the foreground, so that an interrupt ends it together with this program.
        let master = ssh.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        let session = Session { config, socket, master };
        let began = Instant::now();
        while session.run("true").is_err() || !session.socket.exists() {
            ensure!(began.elapsed() < Duration::from_secs(30), "login1 does not open a session");
            thread::sleep(Duration::from_millis(50));
        }
        Ok(session)
    }

    /// Runs a command as the cluster's administrator on the controller's machine, not over SSH.
    pub(crate) fn admin(&self, command: &[&str]) -> anyhow::Result<String> {
        let mut program = Command::new(PROGRAM);
        program.env("SANDBOX_DIR", &self.dir).args(["shell", "ctl", "timeout", "60"]).args(command);
        stdout_of(&program.output()?).with_context(|| command.join(" "))
    }

    /// Runs one statement in a database of the sandbox's Postgres; returns rows as lines with columns separated by `|`.
    pub(crate) fn sql(&self, database: &str, statement: &str) -> anyhow::Result<String> {
        let url = self.database_url(database)?;
        let mut psql = Command::new("psql");
        psql.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", &url, "-c", statement]);
        stdout_of(&psql.output()?).with_context(|| format!("psql: {statement:.80}"))
    }

    pub(crate) fn database_url(&self, database: &str) -> anyhow::Result<String> {
        let (server, _) = self.var("DATABASE_URL")?.rsplit_once('/').context("DATABASE_URL has no path")?;
        Ok(format!("{server}/{database}"))
    }

    /// The local path of a file on the cluster.
    pub(crate) fn local(&self, path: &str) -> PathBuf {
        Path::new(&self.dir).join(path.trim_start_matches('/'))
    }

    /// Cancels every job of the login user and waits until the queue is empty.
    pub(crate) fn clear(&self) -> anyhow::Result<()> {
        let began = Instant::now();
        // By user and not by id: one call for any number of jobs.
        while self.admin(&["scancel", "-u", "tao"]).is_err()
            || !self.admin(&["squeue", "-h", "-u", "tao", "-o", "%i"])?.is_empty()
        {
            ensure!(began.elapsed() < Duration::from_mins(2), "the queue is not empty");
            thread::sleep(Duration::from_millis(200));
        }
        Ok(())
    }

    /// Closes a partition: it accepts jobs, which stay pending until the guard is dropped. A missing partition is created until
    /// then, so that a killed run does not leave another partition closed.
    pub(crate) fn close<'a>(&'a self, partition: &'a str) -> anyhow::Result<Closed<'a>> {
        let name = format!("partitionname={partition}");
        let is_known = self.admin(&["scontrol", "show", &name]).is_ok();
        let is_ours = !is_known || partition == BENCH_PARTITION;
        if is_known {
            self.admin(&["scontrol", "update", &name, "state=down"])?;
        } else {
            self.admin(&["scontrol", "create", &name, "nodes=node01", "state=down"])?;
        }
        Ok(Closed { sandbox: self, partition, is_ours })
    }

    /// The counts of all login hosts together.
    pub(crate) fn ssh(&self) -> anyhow::Result<Ssh> {
        Ok(self.ssh_by_host()?.into_iter().fold(Ssh::default(), Ssh::plus))
    }

    /// The counts of each login host, login1 first.
    pub(crate) fn ssh_by_host(&self) -> anyhow::Result<Vec<Ssh>> {
        let read = |log| Ok(counted(&String::from_utf8_lossy(&fs::read(log)?)));
        self.var("SANDBOX_SSHD_LOGS")?.split(',').map(read).collect()
    }

    pub(crate) fn rpcs(&self) -> anyhow::Result<Rpcs> {
        Ok(parsed(&self.admin(&["sdiag"])?))
    }
}

/// An open connection to login1.
#[derive(Debug)]
pub(crate) struct Session {
    config: PathBuf,
    socket: PathBuf,
    master: Child,
}

impl Session {
    pub(crate) fn run(&self, text: &str) -> anyhow::Result<String> {
        let mut ssh = Command::new("ssh");
        ssh.arg("-F").arg(&self.config).arg("-S").arg(&self.socket);
        stdout_of(&ssh.args(["login1", text]).output()?)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = self.master.kill();
        let _ = self.master.wait();
        let _ = fs::remove_file(&self.socket);
    }
}

/// A closed partition. Dropping this opens the partition again, or deletes it if it was created for this.
#[derive(Debug)]
pub(crate) struct Closed<'a> {
    sandbox: &'a Sandbox,
    partition: &'a str,
    is_ours: bool,
}

impl Drop for Closed<'_> {
    fn drop(&mut self) {
        // No job of this run may start when the partition opens. If it stays closed, `sandbox reset` repairs it.
        let _ = self.sandbox.clear();
        let name = format!("partitionname={}", self.partition);
        let _ = if self.is_ours {
            self.sandbox.admin(&["scontrol", "delete", &name])
        } else {
            self.sandbox.admin(&["scontrol", "update", &name, "state=up"])
        };
    }
}

impl Ssh {
    pub(crate) fn plus(self, other: Self) -> Self {
        Self { logins: self.logins + other.logins, commands: self.commands + other.commands }
    }

    /// The counts since `before`.
    pub(crate) fn since(self, before: Self) -> Self {
        Self { logins: self.logins - before.logins, commands: self.commands - before.commands }
    }
}

impl Rpcs {
    /// The counts since `before`, without types that did not occur.
    pub(crate) fn since(&self, before: &Self) -> Self {
        let earlier = |name: &String| before.by_type.get(name).copied().unwrap_or(0);
        let by_type =
            self.by_type.iter().map(|(name, count)| (name.clone(), count.saturating_sub(earlier(name))));
        Self {
            user: self.user.saturating_sub(before.user),
            by_type: by_type.filter(|(_, count)| *count > 0).collect(),
        }
    }

    /// The RPCs of users, without those of nodes and of the measurement itself.
    pub(crate) fn text(&self) -> String {
        let of_users = self.by_type.iter().filter(|(name, _)| {
            name.starts_with("REQUEST_") && !["REQUEST_STATS_INFO", "REQUEST_PING"].contains(&name.as_str())
        });
        of_users.map(|(name, count)| format!("{name} {count}")).collect::<Vec<_>>().join(", ")
    }
}

fn counted(log: &str) -> Ssh {
    let count = |what: &str| log.lines().filter(|line| line.contains(what)).count() as u64;
    Ssh {
        logins: count("Accepted publickey"),
        commands: count("Starting session: command") + count("Starting session: subsystem"),
    }
}

/// The counts of `sdiag`: lines such as `REQUEST_PING ( 1008) count:4 ave_time:…` and `tao ( 2001) count:9 …`.
fn parsed(text: &str) -> Rpcs {
    let mut rpcs = Rpcs::default();
    for line in text.lines() {
        let mut words = line.split_whitespace();
        let (Some(name), Some(count)) = (words.next(), words.find_map(|word| word.strip_prefix("count:")))
        else {
            continue;
        };
        let Ok(count) = count.parse::<u64>() else { continue };
        if name.starts_with("REQUEST_") || name.starts_with("MESSAGE_") {
            rpcs.by_type.insert(name.to_owned(), count);
        } else if name == "tao" {
            rpcs.user = count;
        }
    }
    rpcs
}

fn stdout_of(output: &Output) -> anyhow::Result<String> {
    ensure!(output.status.success(), "{}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim());
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SDIAG: &str = "Main schedule statistics (microseconds):\n\tLast cycle:   53\n\
        Remote Procedure Call statistics by message type\n\
        \tREQUEST_SUBMIT_BATCH_JOB                ( 4003) count:200    ave_time:316    total_time:63200\n\
        \tMESSAGE_NODE_REGISTRATION_STATUS        ( 1002) count:6      ave_time:95     total_time:571\n\
        Remote Procedure Call statistics by user\n\
        \troot            (       0) count:30     ave_time:137    total_time:4113\n\
        \ttao             (    2001) count:210    ave_time:300    total_time:63000\n";

    #[test]
    fn rpcs_are_counted_by_type_and_for_the_login_user() {
        let rpcs = parsed(SDIAG);
        assert_eq!(rpcs.user, 210);
        let before = Rpcs { user: 10, by_type: [("MESSAGE_NODE_REGISTRATION_STATUS".to_owned(), 6)].into() };
        let since = rpcs.since(&before);
        assert_eq!((since.user, since.text().as_str()), (200, "REQUEST_SUBMIT_BATCH_JOB 200"));
        assert_eq!(since.by_type.len(), 1);
    }

    #[test]
    fn logins_and_commands_are_counted_from_the_sshd_log() {
        let log = "Accepted publickey for tao from 127.0.0.1 port 1 ssh2: ED25519 SHA256:x\n\
            Starting session: command for tao from 127.0.0.1 port 1 id 0\n\
            Starting session: command for tao from 127.0.0.1 port 1 id 1\n\
            Starting session: subsystem 'sftp' for tao from 127.0.0.1 port 1 id 0\nClosed\n";
        let seen = counted(log);
        assert_eq!((seen.logins, seen.commands), (1, 3));
    }
}

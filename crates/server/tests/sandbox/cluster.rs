//! The sandbox: its addresses, login hosts and faults.

use std::{
    collections::HashMap,
    env, fs,
    path::PathBuf,
    process::{Command, Output},
    time::Duration,
};

use crate::service::comes_true;

/// The settings that `sandbox up` wrote.
pub(crate) struct Sandbox {
    pub(crate) env: HashMap<String, String>,
    dir: PathBuf,
}

impl Sandbox {
    pub(crate) fn find() -> Self {
        let own = concat!(env!("CARGO_MANIFEST_DIR"), "/../../.sandbox");
        let mut dir = env::var_os("SANDBOX_DIR").unwrap_or_else(|| own.into());
        // With concurrent tests, each has its own cluster: `ci/test`, .config/nextest.toml.
        let of_group = |name: &str| env::var_os(name).and_then(|text| text.into_string().ok());
        let slot = || of_group("NEXTEST_TEST_GROUP_SLOT").unwrap().parse::<usize>().unwrap();
        dir.push(match of_group("NEXTEST_TEST_GROUP").as_deref() {
            Some("clusters") => ["", "-second", "-third", "-fourth"][slot()],
            Some("browser") => "-fifth",
            _ => "",
        });
        let dir = PathBuf::from(dir);
        let text = fs::read_to_string(dir.join("env")).unwrap_or_else(|error| {
            panic!("{}: {error}; run `make sandbox-up` first", dir.join("env").display())
        });
        let pair = |line: &str| {
            let (key, value) = line.strip_prefix("export ").unwrap_or(line).split_once('=')?;
            Some((key.to_owned(), unquoted(value).to_owned()))
        };
        Self { env: text.lines().filter_map(pair).collect(), dir }
    }

    pub(crate) fn var(&self, key: &str) -> &str {
        self.env.get(key).unwrap_or_else(|| panic!("{key} is missing in the sandbox's env file"))
    }

    /// A file of the sandbox, such as the pid file of a daemon.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Runs a shell script on the login node, as the user of the jobs.
    pub(crate) fn login(&self, text: &str) -> String {
        self.try_login("login1", text).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    /// As `login`, on either login node, if the script may fail.
    pub(crate) fn try_login(&self, host: &str, text: &str) -> Result<String, String> {
        let mut ssh = self.ssh(host);
        spoken(&ssh.arg(text).output().unwrap())
    }

    /// `ssh` to a login node, which may be frozen; the caller adds the command. A busy machine needs seconds for the handshake.
    pub(crate) fn ssh(&self, host: &str) -> Command {
        let mut ssh = Command::new("ssh");
        ssh.arg("-F").arg(self.dir.join("ssh/config")).args(["-o", "ConnectTimeout=20", host]);
        ssh
    }

    /// Starts a fault of the sandbox. It ends when the result is dropped.
    pub(crate) fn fault(&self, name: &'static str) -> Fault<'_> {
        self.set_fault(name, "on");
        Fault { sandbox: self, name }
    }

    /// Freezes both login hosts: they accept connections but do not respond, and open sessions hang.
    pub(crate) fn freeze_logins(&self) -> [Fault<'_>; 2] {
        ["login1-frozen", "login2-frozen"].map(|name| self.fault(name))
    }

    fn set_fault(&self, name: &str, to: &str) {
        let set = spoken(&self.program().args(["fault", name, to]).output().unwrap());
        // A failing test should show its own reason.
        assert!(set.is_ok() || std::thread::panicking(), "fault {name} {to}: {set:?}");
    }

    fn program(&self) -> Command {
        let mut program = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/sandbox/sandbox"));
        program.env("SANDBOX_DIR", &self.dir);
        program
    }

    /// Runs a command as the cluster's administrator.
    pub(crate) fn admin(&self, command: &[&str]) -> String {
        self.try_admin(command).unwrap_or_else(|error| panic!("{command:?}: {error}"))
    }

    /// As `admin`, if the command may fail.
    pub(crate) fn try_admin(&self, command: &[&str]) -> Result<String, String> {
        let output = self.program().args(["shell", "ctl"]).args(command).output().unwrap();
        spoken(&output)
    }

    /// Changes a setting of the cluster as its administrator. The second command restores it when the result is dropped.
    pub(crate) fn change(&self, command: &[&str], back: &[&str]) -> Changed<'_> {
        let changed = Changed { sandbox: self, back: back.iter().map(|word| (*word).to_owned()).collect() };
        self.admin(command);
        changed
    }

    /// As `change`, for a setting of a partition.
    pub(crate) fn change_partition(&self, name: &str, setting: &str, back: &str) -> Changed<'_> {
        let (update, name) = (["scontrol", "update"], format!("partitionname={name}"));
        self.change(&[&update[..], &[&name, setting]].concat(), &[&update[..], &[&name, back]].concat())
    }

    /// Resumes nodes that Slurm has drained. On a busy machine Slurm drains a slow node with "Kill task failed", and later
    /// tests that need all nodes would wait for ever.
    #[expect(clippy::print_stderr, reason = "shown if the test fails")]
    pub(crate) fn take_nodes_back(&self) {
        let nodes = self.login("sinfo -h -N -t drain,drained,draining,fail -o '%N %E' | sort -u");
        for (node, why) in nodes.lines().filter_map(|line| line.split_once(' ')) {
            eprintln!("{node} was put aside before this test: {why}");
            self.admin(&["scontrol", "update", &format!("nodename={node}"), "state=resume"]);
        }
    }

    /// Which jobs hold and await which nodes, for the message of a failed test.
    pub(crate) fn who_holds_what(&self) -> String {
        self.try_login("login1", "squeue -a -o '%i %u %j %P %T %D %N %S %r'; sinfo -N -o '%N %P %T %C %E'")
            .unwrap_or_else(|error| error)
    }

    /// The jobs that a test leaves to the next one. They are canceled. A short job may end first.
    pub(crate) fn jobs_left(&self) -> Vec<String> {
        let mut left = Vec::new();
        let none_is_left = comes_true(Duration::from_mins(1), || {
            let queue =
                self.try_login("login1", "squeue --me -h -o '%i %j %T %r'").unwrap_or_else(|error| error);
            left = queue.lines().filter(|row| !row.contains(" COMPLETING ")).map(str::to_owned).collect();
            left.is_empty()
        });
        if !none_is_left {
            self.login("scancel --me");
        }
        left
    }

    /// How many logins the login hosts have accepted so far.
    pub(crate) fn logins(&self) -> usize {
        let count = |host: &str| {
            let log = fs::read_to_string(self.dir.join(format!("log/sshd-{host}.log"))).unwrap_or_default();
            log.matches("Accepted publickey").count()
        };
        count("login1") + count("login2")
    }
}

/// A changed setting of the cluster; dropping this restores it.
pub(crate) struct Changed<'a> {
    sandbox: &'a Sandbox,
    back: Vec<String>,
}

impl Drop for Changed<'_> {
    fn drop(&mut self) {
        let back: Vec<&str> = self.back.iter().map(String::as_str).collect();
        let restored = self.sandbox.try_admin(&back);
        assert!(restored.is_ok() || std::thread::panicking(), "{back:?}: {restored:?}");
    }
}

/// A fault of the sandbox, active until this is dropped.
pub(crate) struct Fault<'a> {
    sandbox: &'a Sandbox,
    name: &'static str,
}

impl Drop for Fault<'_> {
    fn drop(&mut self) {
        self.sandbox.set_fault(self.name, "off");
    }
}

/// Standard output of a successful command, else standard error.
fn spoken(output: &Output) -> Result<String, String> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
}

/// Runs a SQL statement with psql and returns its output.
pub(crate) fn sql(database_url: &str, statement: &str) -> String {
    let output = Command::new("psql")
        .args(["-X", "-q", "-A", "-t", "-d", database_url, "-c", statement])
        .output()
        .unwrap();
    assert!(output.status.success(), "{statement}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// The value of a `KEY=value` line, with or without quotes around it.
fn unquoted(value: &str) -> &str {
    let value = value.trim();
    let between = |quote: char| value.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote));
    between('\'').or_else(|| between('"')).unwrap_or(value)
}

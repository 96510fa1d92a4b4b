//! The sandbox: its start, its faults, and commands outside of the service.

use std::{
    collections::{BTreeSet, HashMap},
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Output},
    thread,
    time::Duration,
};

use anyhow::{Context, ensure};

use crate::repeat::repeat;

const PROGRAM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/sandbox/sandbox");

#[derive(Debug)]
pub(crate) struct Sandbox {
    pub(crate) env: HashMap<String, String>,
    pub(crate) dir: PathBuf,
    program: PathBuf,
    /// The time between two tries.
    pause: Duration,
}

impl Sandbox {
    /// Starts the sandbox unless it runs, and cancels the jobs of earlier runs.
    pub(crate) fn up() -> anyhow::Result<Self> {
        let own = concat!(env!("CARGO_MANIFEST_DIR"), "/../.sandbox");
        let dir = env::var_os("SANDBOX_DIR").map_or_else(|| PathBuf::from(own), PathBuf::from);
        stdout_of(&Command::new(PROGRAM).arg("up").output()?).context("sandbox up")?;
        let text = fs::read_to_string(dir.join("env"))?;
        let pair = |line: &str| {
            let (key, value) = line.split_once('=')?;
            Some((key.to_owned(), value.trim_matches('"').to_owned()))
        };
        let sandbox = Self {
            env: text.lines().filter_map(pair).collect(),
            dir: fs::canonicalize(dir)?,
            program: PROGRAM.into(),
            pause: Duration::from_secs(5),
        };
        sandbox.login("scancel --me")?;
        Ok(sandbox)
    }

    pub(crate) fn var(&self, key: &str) -> anyhow::Result<&str> {
        self.env
            .get(key)
            .map(String::as_str)
            .with_context(|| format!("{key} is missing in the sandbox's env"))
    }

    /// Turns a fault on or off.
    pub(crate) fn fault(&self, name: &str, to: &str) -> anyhow::Result<()> {
        self.run(&["fault", name, to]).map(drop)
    }

    /// Turns all faults off and makes every daemon and node ready.
    pub(crate) fn restore(&self) -> anyhow::Result<()> {
        self.with_retries(|| {
            self.run(&["fault", "off-all"])?;
            self.run(&["up"])?;
            Ok(())
        })
    }

    /// Repeats an action that fails. Resumes nodes that the controller has marked as down meanwhile.
    pub(crate) fn with_retries(&self, act: impl Fn() -> anyhow::Result<()>) -> anyhow::Result<()> {
        repeat(act, || {
            thread::sleep(self.pause);
            // Only nodes that are down or drained can be resumed; the others refuse.
            let _ = self.admin(&["scontrol", "update", "nodename=ALL", "state=resume"]);
        })
    }

    /// Resumes the nodes that Slurm itself took out, such as after a program that could not be ended in time. The cluster would run out of nodes.
    pub(crate) fn resume_drained(&self) {
        let drained = self.admin(&["sinfo", "-h", "-N", "-t", "drained", "-o", "%N %E"]).unwrap_or_default();
        // A fault may keep a node off.
        let nodes =
            drained.lines().filter_map(|line| line.split_once(' ').filter(|(_, why)| *why != "powered off"));
        for node in nodes.map(|(node, _)| node).collect::<BTreeSet<_>>() {
            let _ = self.admin(&["scontrol", "update", &format!("nodename={node}"), "state=resume"]);
        }
    }

    /// As `admin`, for a command that only reads: a lost connection does not end the audit.
    pub(crate) fn ask(&self, command: &[&str]) -> anyhow::Result<String> {
        repeat(|| self.admin(command), || thread::sleep(self.pause))
    }

    fn run(&self, args: &[&str]) -> anyhow::Result<String> {
        let mut program = Command::new(&self.program);
        program.env("SANDBOX_DIR", &self.dir).args(args);
        stdout_of(&program.output()?).with_context(|| format!("sandbox {}", args.join(" ")))
    }

    /// Runs a command as the cluster's administrator, on a machine without the faults of the login hosts.
    pub(crate) fn admin(&self, command: &[&str]) -> anyhow::Result<String> {
        self.run(&[&["shell", "ctl", "timeout", "30"], command].concat())
    }

    /// Runs a shell command as the login user.
    pub(crate) fn login(&self, text: &str) -> anyhow::Result<String> {
        self.ssh("tao", text)
    }

    /// Runs a shell command as another user of the account, who does not belong to this run.
    pub(crate) fn neighbour(&self, text: &str) -> anyhow::Result<String> {
        self.ssh("ming", text)
    }

    fn ssh(&self, user: &str, text: &str) -> anyhow::Result<String> {
        let mut ssh = Command::new("timeout");
        ssh.args(["60", "ssh", "-o", "ConnectTimeout=20", "-l", user, "-F"]).arg(self.dir.join("ssh/config"));
        stdout_of(&ssh.args(["login1", text]).output()?)
    }

    /// Creates the directory where the jobs record each execution: not below `/lustre`, which may be full.
    pub(crate) fn make_run_dir(&self, run: &str) -> anyhow::Result<()> {
        self.login(&format!("mkdir -p {}/kill", run_dir(run))).map(drop)
    }

    pub(crate) fn remove_run_dir(&self, run: &str) {
        // A leftover directory is harmless.
        let _ = fs::remove_dir_all(self.local(&run_dir(run)));
    }

    /// The local path of a file on the cluster.
    pub(crate) fn local(&self, path: &str) -> PathBuf {
        Path::new(&self.dir).join(path.trim_start_matches('/'))
    }
}

/// The directory of a run, as a path on the cluster.
pub(crate) fn run_dir(run: &str) -> String {
    format!("/home/tao/chaos/{run}")
}

fn stdout_of(output: &Output) -> anyhow::Result<String> {
    ensure!(output.status.success(), "{}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim());
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_question_of_the_audit_survives_a_lost_connection() {
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("sandbox");
        // The third try gets an answer.
        let script = "#!/bin/sh\necho >>\"$0.tries\"\n[ $(wc -l <\"$0.tries\") -ge 3 ] && echo \"$5 12\" && exit\n\
                      echo 'Connection reset by peer' >&2; exit 255\n";
        fs::write(&program, script).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let dir = dir.path().to_owned();
        let sandbox = Sandbox { env: HashMap::new(), dir, program, pause: Duration::ZERO };
        assert_eq!(sandbox.ask(&["squeue", "-h"]).unwrap(), "squeue 12");
    }
}

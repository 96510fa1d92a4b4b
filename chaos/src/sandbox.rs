//! The sandbox: brought up, broken by name, and asked from outside of the service.

use std::{
    collections::HashMap,
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Output},
    thread,
    time::Duration,
};

use anyhow::{Context, ensure};

const PROGRAM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/sandbox/sandbox");

#[derive(Debug)]
pub(crate) struct Sandbox {
    pub(crate) env: HashMap<String, String>,
    pub(crate) dir: PathBuf,
}

impl Sandbox {
    /// The one that is there, or a new one; nothing of an earlier run is in its queue.
    pub(crate) fn up() -> anyhow::Result<Self> {
        let own = concat!(env!("CARGO_MANIFEST_DIR"), "/../.sandbox");
        let dir = env::var_os("SANDBOX_DIR").map_or_else(|| PathBuf::from(own), PathBuf::from);
        said(&Command::new(PROGRAM).arg("up").output()?).context("sandbox up")?;
        let text = fs::read_to_string(dir.join("env"))?;
        let pair = |line: &str| {
            let (key, value) = line.split_once('=')?;
            Some((key.to_owned(), value.trim_matches('"').to_owned()))
        };
        let sandbox = Self { env: text.lines().filter_map(pair).collect(), dir: fs::canonicalize(dir)? };
        sandbox.login("scancel --me")?;
        Ok(sandbox)
    }

    pub(crate) fn var(&self, key: &str) -> anyhow::Result<&str> {
        self.env
            .get(key)
            .map(String::as_str)
            .with_context(|| format!("{key} is missing in the sandbox's env"))
    }

    /// Sets a fault on or off.
    pub(crate) fn fault(&self, name: &str, to: &str) -> anyhow::Result<()> {
        self.run(&["fault", name, to]).map(drop)
    }

    /// Every fault off, every daemon there, every node ready.
    pub(crate) fn all_well(&self) -> anyhow::Result<()> {
        self.patiently(|| {
            self.run(&["fault", "off-all"])?;
            self.run(&["up"])?;
            Ok(())
        })
    }

    /// Tries again what a cluster could not do that is only slow: a machine under load is no finding. Nodes that the controller
    /// has given up meanwhile are given back to it.
    pub(crate) fn patiently(&self, act: impl Fn() -> anyhow::Result<()>) -> anyhow::Result<()> {
        let mut outcome = act();
        for _ in 0..4 {
            let Err(error) = &outcome else { break };
            eprintln!("chaos: {error:#}; trying again");
            thread::sleep(Duration::from_secs(5));
            // Only those that wait for it are resumed; the others refuse.
            let _ = self.admin(&["scontrol", "update", "nodename=ALL", "state=resume"]);
            outcome = act();
        }
        outcome
    }

    fn run(&self, args: &[&str]) -> anyhow::Result<String> {
        let mut program = Command::new(PROGRAM);
        program.env("SANDBOX_DIR", &self.dir).args(args);
        said(&program.output()?).with_context(|| format!("sandbox {}", args.join(" ")))
    }

    /// A command of the cluster's administrator, on a machine that no fault of the login hosts reaches.
    pub(crate) fn admin(&self, command: &[&str]) -> anyhow::Result<String> {
        self.run(&[&["shell", "ctl", "timeout", "30"], command].concat())
    }

    /// A shell text of the login user.
    pub(crate) fn login(&self, text: &str) -> anyhow::Result<String> {
        self.ssh("tao", text)
    }

    /// A shell text of the other user of the account, who is nobody of ours.
    pub(crate) fn neighbour(&self, text: &str) -> anyhow::Result<String> {
        self.ssh("ming", text)
    }

    fn ssh(&self, user: &str, text: &str) -> anyhow::Result<String> {
        let mut ssh = Command::new("timeout");
        ssh.args(["60", "ssh", "-o", "ConnectTimeout=5", "-l", user, "-F"]).arg(self.dir.join("ssh/config"));
        said(&ssh.args(["login1", text]).output()?)
    }

    /// Where the jobs of a run note each execution: not below `/lustre`, which may be full.
    pub(crate) fn make_place(&self, run: &str) -> anyhow::Result<()> {
        self.login(&format!("mkdir -p {}/kill", place(run))).map(drop)
    }

    pub(crate) fn remove_place(&self, run: &str) {
        // It is only a pity if it stays.
        let _ = fs::remove_dir_all(self.seen(&place(run)));
    }

    /// A path of the cluster as this machine sees it.
    pub(crate) fn seen(&self, path: &str) -> PathBuf {
        Path::new(&self.dir).join(path.trim_start_matches('/'))
    }
}

/// The directory of a run, as the cluster sees it.
pub(crate) fn place(run: &str) -> String {
    format!("/home/tao/chaos/{run}")
}

fn said(output: &Output) -> anyhow::Result<String> {
    ensure!(output.status.success(), "{}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim());
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

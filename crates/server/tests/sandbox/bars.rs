//! The reliability targets. Each test is short by default, and has its full size with `TAO_SLURM_FULL_BARS=1` (`make
//! reliability`, docs/reliability.md). Each prints its measurements.

mod controller;
mod database;
mod login_host;
mod submission;
mod worker;

use std::{env, fs, path::PathBuf, process::Command};

use serde_json::Value;

use crate::{cluster::Sandbox, ending::command, service::Service};

/// The size for the short or for the full form.
pub(crate) fn size(short: u64, full: u64) -> u64 {
    if env::var_os("TAO_SLURM_FULL_BARS").is_some_and(|on| on == "1") { full } else { short }
}

/// A file on the cluster to which each run of a job adds a line. The service does not know it.
struct Tally {
    dir: String,
}

impl Tally {
    fn new(service: &Service) -> Self {
        let (_, name) = service.database_url.rsplit_once('/').unwrap();
        let dir = format!("{}/tally-{name}", service.sandbox.var("SLURM_BASE_RESULTS_DIR"));
        service.sandbox.login(&format!("mkdir -p {dir}"));
        Self { dir }
    }

    /// A job that records each of its runs.
    fn job(&self, number: u64, rest: &str) -> Value {
        command(&format!("echo $SLURM_JOB_ID >>{}/{number}; {rest}", self.dir))
    }

    /// How often each of the first `count` jobs ran.
    fn runs(&self, service: &Service, count: u64) -> Vec<usize> {
        let text = service.sandbox.login(&format!("cd {} && grep -c . * /dev/null || true", self.dir));
        let mut runs = vec![0; usize::try_from(count).unwrap()];
        for line in text.lines() {
            let (name, lines) = line.rsplit_once(':').unwrap();
            if let Some(runs) = name.parse::<usize>().ok().and_then(|number| runs.get_mut(number)) {
                *runs = lines.parse().unwrap();
            }
        }
        runs
    }
}

/// The pid of one of the sandbox's daemons.
fn pid_of(sandbox: &Sandbox, daemon: &str) -> String {
    let text = fs::read_to_string(sandbox.file(&format!("run/{daemon}"))).unwrap();
    text.split_whitespace().next().unwrap().to_owned()
}

fn signal(name: &str, pid: &str) {
    // The process may have ended already.
    let _ = Command::new("kill").args([&format!("-{name}"), pid]).output().unwrap();
}

/// Restarts the sandbox's processes that have ended.
fn revive(sandbox: &Sandbox) {
    let program = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/sandbox/sandbox");
    let up = Command::new(program).arg("up").env("SANDBOX_DIR", sandbox.file("")).output().unwrap();
    assert!(up.status.success(), "{}", String::from_utf8_lossy(&up.stderr));
}

/// The pid, the parent and the name of each process.
fn processes() -> Vec<(u32, u32, String)> {
    let read = |entry: fs::DirEntry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        let stat = fs::read_to_string(PathBuf::from("/proc").join(entry.file_name()).join("stat")).ok()?;
        // The name is in parentheses and may contain any character.
        let (head, rest) = stat.rsplit_once(')')?;
        let name = head.split_once('(')?.1.to_owned();
        Some((pid, rest.split_whitespace().nth(1)?.parse().ok()?, name))
    };
    fs::read_dir("/proc").unwrap().filter_map(|entry| read(entry.ok()?)).collect()
}

/// The processes with this name on the login hosts of this sandbox.
fn on_login_hosts(sandbox: &Sandbox, name: &str) -> Vec<u32> {
    let all = processes();
    let hosts: Vec<u32> = ["sshd-login1.pid", "sshd-login2.pid"]
        .iter()
        .filter_map(|host| pid_of(sandbox, host).parse().ok())
        .collect();
    let parent = |pid: u32| all.iter().find(|(of, ..)| *of == pid).map(|(_, parent, _)| *parent);
    let is_theirs =
        |pid: u32| std::iter::successors(parent(pid), |pid| parent(*pid)).any(|pid| hosts.contains(&pid));
    all.iter().filter(|(pid, _, of)| of == name && is_theirs(*pid)).map(|(pid, ..)| *pid).collect()
}

/// All jobs of the service, by pages.
fn jobs(service: &Service) -> Vec<Value> {
    let (mut jobs, mut token) = (Vec::new(), String::new());
    loop {
        let page = service.get(&format!("/jobs?limit=200{token}")).json();
        jobs.extend(page["jobs"].as_array().unwrap().iter().cloned());
        let Some(next) = page["next_page_token"].as_str() else { return jobs };
        token = format!("&page_token={next}");
    }
}

fn all_ended_done(service: &Service, count: u64) -> bool {
    let jobs = jobs(service);
    let bad: Vec<&Value> =
        jobs.iter().filter(|job| job["phase"] == "ended" && job["status"] != "Done").collect();
    assert!(bad.is_empty(), "{bad:?}");
    jobs.iter().filter(|job| job["status"] == "Done").count() as u64 == count
}

//! The service under test: one API and two workers on the sandbox's Postgres. Faults kill and suspend its processes.

use std::{
    collections::HashMap,
    fs,
    io::Read,
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, ensure};
use serde_json::Value;

use crate::sandbox::Sandbox;

/// Shorter than the default, so that a suspended worker outlives its leases even in a short run.
pub(crate) const LEASE: Duration = Duration::from_secs(10);

/// The processes, in the order of their start.
pub(crate) const PROCESSES: [&str; 3] = ["api", "worker-1", "worker-2"];

#[derive(Debug)]
pub(crate) struct Service {
    url: String,
    program: PathBuf,
    env: HashMap<String, String>,
    out: PathBuf,
    processes: [Mutex<Option<Child>>; 3],
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) text: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or(Value::Null)
    }
}

impl Service {
    pub(crate) fn start(sandbox: &Sandbox, program: &Path, out: &Path) -> anyhow::Result<Self> {
        let server = sandbox.var("DATABASE_URL")?;
        let name = format!("chaos_{}", std::process::id());
        let mut psql = Command::new("psql");
        psql.args(["-X", "-q", "-d", server, "-c", &format!("create database {name}")]);
        ensure!(psql.status()?.success(), "cannot create the database {name}");
        let (base, _) = server.rsplit_once('/').context("DATABASE_URL has no path")?;
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let config = out.join("tao-slurm.toml");
        fs::write(&config, settings())?;
        let mut env = sandbox.env.clone();
        let text = |path: &Path| path.display().to_string();
        env.extend([
            ("DATABASE_URL".to_owned(), format!("{base}/{name}")),
            ("TAO_SLURM_CONFIG".to_owned(), text(&config)),
            ("SLURM_CLUSTER_NAME".to_owned(), "sandbox".to_owned()),
            ("TAO_SLURM_BIND".to_owned(), format!("127.0.0.1:{port}")),
            ("TAO_SLURM_AUTH".to_owned(), "disabled".to_owned()),
            ("TAO_SLURM_DATA_DIR".to_owned(), text(&out.join("data"))),
            ("PATH".to_owned(), "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin".to_owned()),
            ("HOME".to_owned(), text(out)),
        ]);
        let program = fs::canonicalize(program).with_context(|| {
            format!("{} is missing; build it: cargo build -p tao-slurm", program.display())
        })?;
        let url = format!("http://127.0.0.1:{port}");
        let service = Self { url, program, env, out: out.to_owned(), processes: Default::default() };
        ensure!(service.command(&["migrate"]).status()?.success(), "tao-slurm migrate failed");
        (0..PROCESSES.len()).for_each(|which| service.spawn(which));
        let began = Instant::now();
        while service.get("/readyz").is_none_or(|answer| answer.status != 200) {
            ensure!(
                began.elapsed() < Duration::from_mins(5),
                "the service is not ready; see {}",
                out.display()
            );
            thread::sleep(Duration::from_millis(100));
        }
        Ok(service)
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(args).env_clear().envs(&self.env).stdin(Stdio::null()).stdout(Stdio::null());
        command
    }

    fn process(&self, which: usize) -> MutexGuard<'_, Option<Child>> {
        self.processes[which].lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn log(&self, which: usize) -> PathBuf {
        self.out.join(format!("{}.log", PROCESSES[which]))
    }

    /// Starts a process, unless it runs.
    pub(crate) fn spawn(&self, which: usize) {
        let mut process = self.process(which);
        if let Some(child) = process.as_mut()
            && matches!(child.try_wait(), Ok(None))
        {
            return;
        }
        let role = if which == 0 { "api" } else { "worker" };
        let log = fs::OpenOptions::new().create(true).append(true).open(self.log(which));
        let mut command = self.command(&["serve", "--role", role]);
        if let Ok(log) = log {
            command.stderr(log);
        }
        *process = command.spawn().ok();
    }

    /// Restarts processes that have ended by themselves, as a service manager does.
    pub(crate) fn spawn_all(&self) {
        (0..PROCESSES.len()).for_each(|which| self.spawn(which));
    }

    /// Kills a process with SIGKILL; it stays down until it is spawned.
    pub(crate) fn kill(&self, which: usize) {
        if let Some(mut child) = self.process(which).take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Sends a signal, such as STOP or CONT.
    pub(crate) fn signal(&self, which: usize, name: &str) {
        if let Some(child) = self.process(which).as_ref() {
            let _ = Command::new("kill").args([&format!("-{name}"), &child.id().to_string()]).status();
        }
    }

    /// Resumes and starts every process.
    pub(crate) fn restore(&self) {
        for which in 0..PROCESSES.len() {
            self.signal(which, "CONT");
            self.spawn(which);
        }
    }

    pub(crate) fn stop(&self) {
        (0..PROCESSES.len()).for_each(|which| self.signal(which, "TERM"));
        for which in 0..PROCESSES.len() {
            if let Some(mut child) = self.process(which).take() {
                let _ = child.wait();
            }
        }
    }

    /// The log lines of panics.
    pub(crate) fn panics(&self) -> Vec<String> {
        let logs = (0..PROCESSES.len()).map(|which| fs::read(self.log(which)).unwrap_or_default());
        let text: String = logs.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).collect();
        text.lines().filter(|line| line.contains("panicked at")).map(str::to_owned).collect()
    }

    /// The answer, or `None` if there is none within the timeout.
    pub(crate) fn get(&self, path: &str) -> Option<Answer> {
        // Longer than each fault: a busy machine needs seconds for an answer.
        read(agent(Duration::from_mins(1)).get(format!("{}{path}", self.url)).call())
    }

    /// A document of the API, or `None` if it does not exist. Fails if the service does not answer, or with another status.
    pub(crate) fn read(&self, path: &str) -> anyhow::Result<Option<Value>> {
        let answer = self.get(path).with_context(|| format!("GET {path}: no answer"))?;
        ensure!(matches!(answer.status, 200 | 404), "GET {path}: {} {}", answer.status, answer.text);
        Ok((answer.status == 200).then(|| answer.json()))
    }

    pub(crate) fn post(&self, path: &str, body: &str) -> Option<Answer> {
        // Shorter than some faults: callers give up, and repeat their requests.
        let agent = agent(Duration::from_secs(10));
        let request = agent.post(format!("{}{path}", self.url)).header("content-type", "application/json");
        read(request.send(body))
    }
}

impl Drop for Service {
    /// After an error no process stays behind.
    fn drop(&mut self) {
        (0..PROCESSES.len()).for_each(|which| self.kill(which));
    }
}

fn settings() -> String {
    format!(
        "[worker]\nlease = \"{}s\"\npoll_min = \"1s\"\npoll_max = \"3s\"\nmissing_grace = \"60s\"\n\
         finish_grace = \"20s\"\nretry_wait = \"2s\"\nretry_wait_max = \"20s\"\n\
         [log]\nfilter = \"info,worker=debug,ssh=debug,sqlx=warn\"\n",
        LEASE.as_secs()
    )
}

fn agent(patience: Duration) -> ureq::Agent {
    let config = ureq::Agent::config_builder().http_status_as_error(false);
    config.timeout_global(Some(patience)).build().into()
}

fn read(answer: Result<ureq::http::Response<ureq::Body>, ureq::Error>) -> Option<Answer> {
    let mut answer = answer.ok()?;
    let mut bytes = Vec::new();
    answer.body_mut().as_reader().read_to_end(&mut bytes).ok()?;
    Some(Answer { status: answer.status().as_u16(), text: String::from_utf8_lossy(&bytes).into_owned() })
}

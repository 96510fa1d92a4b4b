//! The program under test.

use std::{
    collections::HashMap,
    fs,
    io::Read,
    net::TcpListener,
    os::unix::process::CommandExt,
    path::PathBuf,
    process::{Child, Command, ExitStatus, Output, Stdio},
    time::{Duration, Instant},
};

use serde_json::Value;
use tempfile::TempDir;

use crate::cluster::{Sandbox, sql};

/// A running service with its own database and data directory.
pub(crate) struct Service {
    pub(crate) sandbox: Sandbox,
    pub(crate) url: String,
    pub(crate) database_url: String,
    pub(crate) log: PathBuf,
    /// The value of `--role`.
    pub(crate) role: &'static str,
    env: HashMap<String, String>,
    child: Option<Child>,
    _data: TempDir,
}

/// A response of the API.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) text: String,
    pub(crate) content_type: String,
    pub(crate) retry_after: Option<String>,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }
}

impl Service {
    /// Starts the service on the sandbox's cluster.
    pub(crate) fn start() -> Self {
        Self::start_with(&[])
    }

    /// As `start`, with changed environment variables.
    pub(crate) fn start_with(changed: &[(&str, &str)]) -> Self {
        let mut service = Self::prepare(changed);
        service.spawn();
        service
    }

    /// Everything but the process.
    pub(crate) fn prepare(changed: &[(&str, &str)]) -> Self {
        let sandbox = Sandbox::find();
        sandbox.take_nodes_back();
        let data = tempfile::tempdir().unwrap();
        let server = sandbox.var("DATABASE_URL").to_owned();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let name = format!("e2e_{}_{port}", std::process::id());
        sql(&server, &format!("create database {name}"));
        let (base, _) = server.rsplit_once('/').unwrap();
        let database_url = format!("{base}/{name}");

        let mut env = sandbox.env.clone();
        let slow = slow_polls();
        env.extend([
            ("DATABASE_URL".to_owned(), database_url.clone()),
            ("SLURM_CLUSTER_NAME".to_owned(), "sandbox".to_owned()),
            ("TAO_SLURM_BIND".to_owned(), format!("127.0.0.1:{port}")),
            ("TAO_SLURM_AUTH".to_owned(), "disabled".to_owned()),
            ("TAO_SLURM_DATA_DIR".to_owned(), data.path().display().to_string()),
            ("TAO_SLURM_POLL_MIN".to_owned(), slow.as_deref().unwrap_or("1s").to_owned()),
            // Most of these tests wait for a poll, however slow the machine is.
            ("TAO_SLURM_POLL_MAX".to_owned(), slow.as_deref().unwrap_or("1500ms").to_owned()),
            (
                "TAO_SLURM_LOG".to_owned(),
                "info,tao_slurm=trace,worker=trace,ssh=trace,api=trace,sqlx=warn".to_owned(),
            ),
            ("PATH".to_owned(), "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin".to_owned()),
            ("HOME".to_owned(), data.path().display().to_string()),
        ]);
        env.extend(changed.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())));
        let log = data.path().join("serve.log");
        Self {
            sandbox,
            url: format!("http://127.0.0.1:{port}"),
            database_url,
            log,
            role: "all",
            env,
            child: None,
            _data: data,
        }
    }

    /// Changes a setting for the next start.
    pub(crate) fn set(&mut self, key: &str, value: &str) {
        self.env.insert(key.to_owned(), value.to_owned());
    }

    pub(crate) fn unset(&mut self, key: &str) {
        self.env.remove(key);
    }

    /// Starts the process and waits until it is ready.
    pub(crate) fn spawn(&mut self) {
        let log = fs::OpenOptions::new().create(true).append(true).open(&self.log).unwrap();
        let mut command = self.command(&["serve", "--role", self.role]);
        // Its own process group identifies its child processes.
        command.stdout(Stdio::null()).stderr(log).process_group(0);
        self.child = Some(command.spawn().unwrap());
        until("the service to be ready", Duration::from_secs(30), || {
            if let Some(status) = self.child.as_mut().unwrap().try_wait().unwrap() {
                panic!("the service ended with {status}: {}", self.log_text());
            }
            self.try_get("/readyz").is_some_and(|answer| answer.status == 200)
        });
    }

    /// A command of the program, with this service's settings.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tao-slurm"));
        command.args(args).env_clear().envs(&self.env).env("TAO_SLURM_URL", &self.url).stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    /// kill -9, as by the kernel's OOM killer.
    pub(crate) fn kill(&mut self) {
        let mut child = self.child.take().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// SIGTERM, as a service manager sends it.
    pub(crate) fn stop(&mut self) -> ExitStatus {
        self.signal("TERM");
        self.child.take().unwrap().wait().unwrap()
    }

    /// Sends a signal, such as `STOP`.
    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("kill").args(["-s", name, &self.pid().to_string()]).status();
        assert!(sent.unwrap().success(), "{name}");
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.as_ref().unwrap().id()
    }

    /// The resident memory of the process: `VmRSS` for now, `VmHWM` for the most so far.
    pub(crate) fn memory_kib(&self, name: &str) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim_start_matches(':').trim().trim_end_matches(" kB").parse().unwrap()
    }

    pub(crate) fn log_text(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.try_get(path).unwrap_or_else(|| panic!("GET {path}: no answer; {}", self.log_text()))
    }

    fn try_get(&self, path: &str) -> Option<Answer> {
        read(agent().get(format!("{}{path}", self.url)).call())
    }

    pub(crate) fn post(&self, path: &str, body: &str) -> Answer {
        let request = agent().post(format!("{}{path}", self.url)).header("content-type", "application/json");
        read(request.send(body)).unwrap_or_else(|| panic!("POST {path}: no answer; {}", self.log_text()))
    }

    /// As `post`, to another process and with headers.
    pub(crate) fn post_with(&self, url: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let request = agent().post(format!("{url}{path}")).header("content-type", "application/json");
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        read(request.send(body)).unwrap_or_else(|| panic!("POST {path}: no answer; {}", self.log_text()))
    }

    pub(crate) fn delete(&self, path: &str) -> Answer {
        let request = agent().delete(format!("{}{path}", self.url));
        read(request.call()).unwrap_or_else(|| panic!("DELETE {path}: no answer; {}", self.log_text()))
    }

    pub(crate) fn put(&self, path: &str, body: &str) -> Answer {
        let request = agent().put(format!("{}{path}", self.url)).header("content-type", "application/json");
        read(request.send(body)).unwrap_or_else(|| panic!("PUT {path}: no answer; {}", self.log_text()))
    }

    pub(crate) fn put_with(&self, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let request = agent().put(format!("{}{path}", self.url)).header("content-type", "application/json");
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        read(request.send(body)).unwrap_or_else(|| panic!("PUT {path}: no answer; {}", self.log_text()))
    }

    /// Submits a job and returns its id.
    pub(crate) fn submit(&self, job: &Value) -> String {
        let answer = self.post("/jobs", &job.to_string());
        assert_eq!(answer.status, 201, "{}", answer.text);
        answer.json()["id"].as_str().unwrap().to_owned()
    }

    /// Lets a [held](crate::ending::held) job go on.
    pub(crate) fn let_go(&self, id: &str) {
        let base = self.sandbox.var("SLURM_BASE_RESULTS_DIR");
        self.sandbox.login(&format!("touch {base}/results/{id}/go"));
    }

    pub(crate) fn status(&self, id: &str) -> Value {
        self.get(&format!("/jobs/{id}/status")).json()
    }

    /// The status document of the job once it satisfies `wanted`.
    pub(crate) fn wait(&self, id: &str, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let mut last = Value::Null;
        let comes = comes_true(Duration::from_secs(90), || {
            last = self.status(id);
            assert!(
                wanted(&last) || last["phase"] != "ended",
                "ended otherwise: {last}\n{}",
                self.log_text()
            );
            wanted(&last)
        });
        assert!(
            comes,
            "{what} of {id} did not come: {last}\n{}",
            self.get(&format!("/jobs/{id}/logs?stream=all&tail=50")).text
        );
        last
    }

    pub(crate) fn wait_ended(&self, id: &str) -> Value {
        self.wait(id, "the end", |status| status["phase"] == "ended")
    }

    /// A counter or gauge of `/metrics`, summed over its labels that contain `labels`.
    pub(crate) fn metric(&self, name: &str, labels: &str) -> f64 {
        let text = self.get("/metrics").text;
        let lines = text.lines().filter(|line| line.starts_with(name) && line.contains(labels));
        lines.filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok()).sum()
    }
}

impl Drop for Service {
    #[expect(clippy::print_stderr, reason = "shown with the reason why the test failed")]
    fn drop(&mut self) {
        let was_up = self.child.is_some();
        if was_up {
            self.stop();
        }
        let passed = !std::thread::panicking();
        let left = if was_up && passed { self.sandbox.jobs_left() } else { vec![] };
        if !passed {
            eprintln!("{}", self.sandbox.who_holds_what());
            let log = self.log_text();
            let last: Vec<_> = log.lines().filter(|line| !line.contains("DEBUG")).collect();
            eprintln!("the service said last:\n{}", last[last.len().saturating_sub(100)..].join("\n"));
            // Jobs that a failed test leaves would occupy the nodes of the next one.
            self.sandbox.login("scancel --me");
        }
        let (base, name) = self.database_url.rsplit_once('/').unwrap();
        sql(&format!("{base}/postgres"), &format!("drop database if exists {name} with (force)"));
        assert!(left.is_empty(), "the test leaves jobs, which disturb the next one: {left:?}");
    }
}

fn agent() -> ureq::Agent {
    ureq::Agent::config_builder()
        .http_status_as_error(false)
        .timeout_global(Some(Duration::from_mins(2)))
        .build()
        .into()
}

fn read(answer: Result<ureq::http::Response<ureq::Body>, ureq::Error>) -> Option<Answer> {
    let mut answer = answer.ok()?;
    let header = |name: &str| Some(answer.headers().get(name)?.to_str().ok()?.to_owned());
    let (content_type, retry_after) = (header("content-type").unwrap_or_default(), header("retry-after"));
    let mut bytes = Vec::new();
    answer.body_mut().as_reader().read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    Some(Answer { status: answer.status().as_u16(), text, content_type, retry_after })
}

/// A job id that no earlier run has used on the cluster.
pub(crate) fn fresh_id() -> String {
    uuid::Uuid::from_u128(rand::random()).to_string()
}

/// With slow polls the service misses what lasts for seconds only, as on a busy machine. No test may depend on it.
#[expect(clippy::disallowed_methods, reason = "who runs the tests chooses it")]
fn slow_polls() -> Option<String> {
    std::env::var("SLOW_POLLS").ok()
}

/// Waits until the condition is true.
pub(crate) fn until(what: &str, patience: Duration, done: impl FnMut() -> bool) {
    assert!(comes_true(patience, done), "waited {patience:?}, and longer, for {what}");
}

/// Polls until the condition is true: it depends on another process, which sends no event. `patience` is for an idle machine;
/// a busy one gets six times as long, and at least some minutes.
#[expect(clippy::disallowed_methods, reason = "a status document is polled: that is what callers do with it")]
pub(crate) fn comes_true(patience: Duration, mut done: impl FnMut() -> bool) -> bool {
    let (began, patience) = (Instant::now(), (6 * patience).max(Duration::from_mins(5)));
    while !done() {
        let waited = began.elapsed();
        if waited >= patience {
            return false;
        }
        // Most tests look by ssh, which costs a tenth of a second of a processor. What takes long is looked at more rarely.
        std::thread::sleep((waited / 10).clamp(Duration::from_millis(50), Duration::from_millis(250)));
    }
    true
}

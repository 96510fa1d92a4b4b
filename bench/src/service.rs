//! The measured service: the shipped program on the sandbox's cluster, with its own database.

use std::{
    collections::HashMap,
    fs,
    net::TcpListener,
    path::PathBuf,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, bail, ensure};
use serde_json::Value;

use crate::{Bench, http::Http, process::Usage, sandbox::Sandbox};

/// How to start the service. The default uses the shipped settings, except the rate limit of tokens, because some sections measure
/// the request rate.
#[derive(Debug, Clone)]
pub(crate) struct Plan<'a> {
    /// One process per role: `all`, or any number of `api` and `worker`. Requests go to the first one with an API.
    pub(crate) roles: Vec<&'a str>,
    /// Lines of TOML after ours, which end in the table `[server]`.
    pub(crate) settings: String,
    /// Environment variables, which override both.
    pub(crate) env: Vec<(&'a str, String)>,
}

impl Default for Plan<'_> {
    fn default() -> Self {
        Self { roles: vec!["all"], settings: String::new(), env: Vec::new() }
    }
}

/// A running service. Dropping this stops it and drops its database.
#[derive(Debug)]
pub(crate) struct Service<'a> {
    /// A client of the API with all scopes.
    pub(crate) http: Http,
    /// The name of its database.
    pub(crate) database: String,
    /// The time from the start of the first process until the service is ready.
    pub(crate) ready_after: Duration,
    sandbox: &'a Sandbox,
    program: PathBuf,
    out: PathBuf,
    env: HashMap<String, String>,
    roles: Vec<String>,
    processes: Vec<Child>,
}

impl<'a> Service<'a> {
    /// Creates the database and the token, and starts the processes.
    pub(crate) fn start(bench: &'a Bench, plan: &Plan<'_>) -> anyhow::Result<Self> {
        let mut service = Self::prepare(bench, plan)?;
        service.launch()?;
        Ok(service)
    }

    /// Creates everything but the processes: the database has its schema and can be filled before [`launch`](Self::launch).
    pub(crate) fn prepare(bench: &'a Bench, plan: &Plan<'_>) -> anyhow::Result<Self> {
        let sandbox = &bench.sandbox;
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let database = format!("bench_{}_{port}", std::process::id());
        sandbox.sql("postgres", &format!("create database {database}"))?;
        let out = bench.out.join(&database);
        fs::create_dir_all(&out)?;
        let config = out.join("tao-slurm.toml");
        fs::write(&config, format!("[server]\nrate_limit = 0\n{}", plan.settings))?;
        let text = |path: PathBuf| path.display().to_string();
        let mut env = sandbox.env.clone();
        env.extend([
            ("DATABASE_URL".to_owned(), sandbox.database_url(&database)?),
            ("TAO_SLURM_CONFIG".to_owned(), text(config)),
            ("SLURM_CLUSTER_NAME".to_owned(), "sandbox".to_owned()),
            ("TAO_SLURM_BIND".to_owned(), format!("127.0.0.1:{port}")),
            ("TAO_SLURM_DATA_DIR".to_owned(), text(out.join("data"))),
            ("PATH".to_owned(), "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin".to_owned()),
            ("HOME".to_owned(), text(out.clone())),
        ]);
        env.extend(plan.env.iter().map(|(key, value)| ((*key).to_owned(), value.clone())));
        let mut service = Self {
            http: Http::new(format!("127.0.0.1:{port}"), String::new()),
            database,
            ready_after: Duration::ZERO,
            sandbox,
            program: bench.program.clone(),
            out,
            env,
            roles: plan.roles.iter().map(|role| (*role).to_owned()).collect(),
            processes: Vec::new(),
        };
        service.run(&["migrate"])?;
        let token = service.run(&[
            "token",
            "create",
            "--owner",
            "bench",
            "--name",
            "bench",
            "--scope",
            "read,write,admin",
        ])?;
        service.http = Http::new(format!("127.0.0.1:{port}"), token);
        Ok(service)
    }

    /// Runs a subcommand of the program with the service's settings.
    pub(crate) fn run(&self, args: &[&str]) -> anyhow::Result<String> {
        let output = self.command(args).stdout(Stdio::piped()).output()?;
        let error = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "tao-slurm {}: {}", args.join(" "), error.trim());
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    /// Sets an environment variable for the next [`launch`](Self::launch).
    pub(crate) fn set(&mut self, key: &str, value: &str) {
        self.env.insert(key.to_owned(), value.to_owned());
    }

    /// Sets the roles of the processes for the next [`launch`](Self::launch).
    pub(crate) fn take_roles(&mut self, roles: &[&str]) {
        self.roles = roles.iter().map(|role| (*role).to_owned()).collect();
    }

    /// The address of its database, with the password.
    pub(crate) fn database_url(&self) -> anyhow::Result<String> {
        self.sandbox.database_url(&self.database)
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(args).env_clear().envs(&self.env).stdin(Stdio::null()).stdout(Stdio::null());
        command
    }

    /// Starts the processes and waits until the API is ready.
    pub(crate) fn launch(&mut self) -> anyhow::Result<()> {
        let began = Instant::now();
        for (number, role) in self.roles.clone().iter().enumerate() {
            let log = fs::OpenOptions::new().create(true).append(true).open(self.log(number))?;
            self.processes.push(self.command(&["serve", "--role", role]).stderr(log).spawn()?);
        }
        while self.http.get("/readyz").map_or(true, |answer| answer.status != 200) {
            for process in &mut self.processes {
                if let Some(status) = process.try_wait()? {
                    bail!("a process of the service ended with {status}; see {}", self.out.display());
                }
            }
            ensure!(
                began.elapsed() < Duration::from_mins(2),
                "the service is not ready; see {}",
                self.out.display()
            );
            thread::sleep(Duration::from_millis(2));
        }
        self.ready_after = began.elapsed();
        Ok(())
    }

    fn log(&self, number: usize) -> PathBuf {
        self.out.join(format!("{}-{number}.log", self.roles[number]))
    }

    /// The usage of all processes since their start.
    pub(crate) fn usage(&self) -> anyhow::Result<Usage> {
        let each = self.processes.iter().map(|process| Usage::of(process.id()));
        each.sum::<anyhow::Result<Usage>>()
    }

    /// The usage of one process, by its index in the plan's roles.
    pub(crate) fn usage_of(&self, number: usize) -> anyhow::Result<Usage> {
        Usage::of(self.processes.get(number).context("no such process")?.id())
    }

    /// Runs a statement in the service's database.
    pub(crate) fn sql(&self, statement: &str) -> anyhow::Result<String> {
        self.sandbox.sql(&self.database, statement)
    }

    /// How long Postgres has executed statements in this database, for the service and for us. The statistics of a session are up
    /// to a second late while it is active.
    pub(crate) fn database_time(&self) -> anyhow::Result<Duration> {
        let statement =
            format!("select active_time from pg_stat_database where datname = '{}'", self.database);
        let millis: f64 = self.sandbox.sql("postgres", &statement)?.parse()?;
        Ok(Duration::from_secs_f64(millis / 1000.0))
    }

    /// The sum of a metric's lines that contain the text; 0 if there are none. The metrics are those of the process that gets the
    /// requests: without a worker, it has none about polls and submissions.
    pub(crate) fn metric(&self, name: &str, with: &str) -> anyhow::Result<f64> {
        let text = self.http.get("/metrics")?.text;
        let lines = text.lines().filter(|line| {
            line.strip_prefix(name).is_some_and(|rest| rest.starts_with(['{', ' ']) && rest.contains(with))
        });
        // An empty sum is -0.
        Ok(lines.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum::<f64>() + 0.0)
    }

    /// The number of jobs that have not finished.
    pub(crate) fn active(&self) -> anyhow::Result<u64> {
        Ok(self.sql("select count(*) from jobs where phase <> 'ended'")?.parse()?)
    }

    /// Cancels all active jobs and waits until the service reports them finished. Also clears the queue of the cluster, so no
    /// other program may have jobs there.
    pub(crate) fn cancel_all(&self) -> anyhow::Result<()> {
        let ids = self.sql("select id from jobs where phase <> 'ended'")?;
        for id in ids.lines() {
            self.http.post(&format!("/jobs/{id}/cancel"), &Value::Null)?;
        }
        let began = Instant::now();
        while self.active()? > 0 {
            ensure!(began.elapsed() < Duration::from_mins(10), "{} jobs are still active", self.active()?);
            thread::sleep(Duration::from_millis(500));
        }
        self.sandbox.clear()
    }

    /// Stops the service with SIGTERM; [`launch`](Self::launch) starts it again.
    pub(crate) fn stop(&mut self) -> anyhow::Result<()> {
        for process in &self.processes {
            Command::new("kill").args(["-TERM", &process.id().to_string()]).status()?;
        }
        for mut process in self.processes.drain(..) {
            process.wait()?;
        }
        Ok(())
    }
}

impl Drop for Service<'_> {
    fn drop(&mut self) {
        for mut process in self.processes.drain(..) {
            let _ = process.kill();
            let _ = process.wait();
        }
        // A leftover database is harmless.
        let _ = self.sandbox.sql("postgres", &format!("drop database {} with (force)", self.database));
    }
}

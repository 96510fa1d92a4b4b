//! A search of all places that could contain a secret.

use std::{
    collections::BTreeSet,
    fs,
    io::{Read, Write},
    net::TcpStream,
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::Duration,
};

use serde_json::{Value, json};

use super::planted::Secrets;
use crate::service::Service;

/// The places, and the secrets found in them.
pub(super) struct Places<'a> {
    service: &'a Service,
    secrets: &'a Secrets,
    patterns: tempfile::NamedTempFile,
    pub(super) leaks: Vec<String>,
}

impl<'a> Places<'a> {
    pub(super) fn of(service: &'a Service, secrets: &'a Secrets) -> Self {
        let mut patterns = tempfile::NamedTempFile::new().unwrap();
        patterns.write_all(secrets.patterns().as_bytes()).unwrap();
        Self { service, secrets, patterns, leaks: Vec::new() }
    }

    fn text(&mut self, place: &str, text: &[u8]) {
        self.leaks.extend(self.secrets.within(text).iter().map(|name| format!("{name} in {place}")));
    }

    /// Submits and validates a job, and searches both responses.
    pub(super) fn submit(&mut self, job: &Value) -> String {
        let body = job.to_string();
        for path in ["/jobs/validate", "/jobs/validate?live=true"] {
            self.text(path, self.service.post(path, &body).text.as_bytes());
        }
        let answer = self.service.post("/jobs", &body);
        assert_eq!(answer.status, 201, "{}", answer.text);
        self.text("POST /jobs", answer.text.as_bytes());
        answer.json()["id"].as_str().unwrap().to_owned()
    }

    /// Installs a registry password on the cluster, and tries one that the password file cannot represent.
    pub(super) fn install(&mut self, name: &str) {
        let password = self.secrets.named(name);
        for (password, expected) in [(password.value(), 422), (password.plain(), 204)] {
            let body = json!({"machine": "registry.example", "login": "$oauthtoken", "password": password});
            let answer = self.service.put("/clusters/sandbox/enroot-credentials", &body.to_string());
            assert_eq!(answer.status, expected, "{}", answer.text);
            self.text("PUT enroot-credentials", answer.text.as_bytes());
        }
    }

    /// Submits invalid variants of the job, including invalid secrets.
    pub(super) fn refusals(&mut self, job: &Value) {
        let with = |at: &str, value: &Value| {
            let mut job = job.clone();
            job[at] = value.clone();
            job.to_string()
        };
        let secret = &job["secret_env_vars"]["HF_TOKEN"];
        let whole = job.to_string();
        let wrong = [
            with("colour", &"red".into()),
            with("secret_env_vars", secret),
            with("secret_env_vars", &json!({"HF_TOKEN": [secret]})),
            with("secret_env_vars", &json!({"HF_TOKEN": format!("{}\0", secret.as_str().unwrap())})),
            with("cloud_metadata", &json!([secret])),
            with("num_gpu", secret),
            // Within the secrets.
            whole[..whole.find("secret_env_vars").unwrap() + 40].to_owned(),
        ];
        for body in wrong {
            for path in ["/jobs", "/jobs/validate"] {
                let answer = self.service.post(path, &body);
                assert!((400..500).contains(&answer.status), "{}", answer.text);
                self.text(&format!("the refusal of POST {path}"), answer.text.as_bytes());
            }
        }
    }

    /// Everything that the service stores and returns.
    pub(super) fn service(&mut self, jobs: &[String]) {
        let dump =
            Command::new("pg_dump").args(["--inserts", "-d", &self.service.database_url]).output().unwrap();
        assert!(dump.status.success(), "{}", String::from_utf8_lossy(&dump.stderr));
        assert!(dump.stdout.len() > 1000 && jobs.iter().all(|id| text_of(&dump.stdout).contains(id)));
        self.text("the database", &dump.stdout);
        let log = self.service.log_text();
        assert!(log.contains("TRACE"), "it logs all it can");
        self.text("the service's log", log.as_bytes());
        for path in self.every_get(jobs) {
            let answer = self.get(&path);
            assert!(answer.starts_with(b"HTTP/1.1 "), "{path}: {}", text_of(&answer));
            self.text(&format!("GET {path}"), &answer);
        }
    }

    /// All GET endpoints of the OpenAPI document, for each job.
    fn every_get(&self, jobs: &[String]) -> BTreeSet<String> {
        let document = self.service.get("/openapi.json").json();
        let paths = document["paths"].as_object().unwrap();
        let readable = paths.iter().filter(|(_, calls)| calls["get"] != Value::Null);
        let filled = |path: &String| {
            let named = path.replace("{name}", "sandbox").replace("{task}", "0");
            jobs.iter().map(move |id| named.replace("{id}", id)).collect::<Vec<_>>()
        };
        let all: BTreeSet<String> = readable.flat_map(|(path, _)| filled(path)).collect();
        assert!(all.len() > 6 * jobs.len() && all.iter().all(|path| !path.contains('{')), "{all:?}");
        all
    }

    /// The raw bytes of a response; of an endless one, the first second.
    fn get(&self, path: &str) -> Vec<u8> {
        let address = self.service.url.strip_prefix("http://").unwrap();
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(3))).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = Vec::new();
        // It may begin late.
        while stream.read_to_end(&mut answer).is_err() && answer.is_empty() {}
        answer
    }

    /// Slurm's accounting of a job: its script, its environment and all command lines.
    pub(super) fn accounting(&mut self, id: &str) {
        let sandbox = &self.service.sandbox;
        let ask = |text: &str| {
            sandbox.login(&text.replace("JOBS", &format!("--name tao-job-{id},tao-job-{id}-r2")))
        };
        let jobs = ask("sacct -X -n -P -S now-1hours -o JobIDRaw JOBS");
        let mut found = ask("sacct -P -S now-1hours -o ALL JOBS");
        assert!(jobs.lines().count() >= 1 && found.contains("sbatch"), "{id}: {found}");
        for job in jobs.lines() {
            let script = sandbox.login(&format!("sacct -B -j {job}"));
            assert!(script.contains("#SBATCH"), "{script}");
            let environment = sandbox.login(&format!("sacct --env-vars -j {job}"));
            assert!(environment.contains("SLURM_"), "{environment}");
            found += &(script + &environment);
        }
        self.text(&format!("the accounting of {id}"), found.as_bytes());
    }

    /// The controller's data of a job that it still has.
    pub(super) fn controller(&mut self, slurm_id: &str) {
        let script = self.service.sandbox.login(&format!("scontrol write batch_script {slurm_id} -"));
        assert!(script.contains("#SBATCH"), "{script}");
        self.text("the stored script", script.as_bytes());
        let shown = self.service.sandbox.login(&format!("scontrol -d show job {slurm_id}"));
        self.text("scontrol show job", shown.as_bytes());
    }

    /// Files that contain a secret: on the shared file system, of Slurm, of both databases, all logs, and `/tmp` of every
    /// machine.
    pub(super) fn files(&self) -> BTreeSet<String> {
        let dir = self.service.sandbox.var("SANDBOX_DIR");
        let pids = fs::read_dir(format!("{dir}/run")).unwrap().filter_map(|entry| {
            let path = entry.unwrap().path();
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            let of_machine = path.extension().is_some_and(|end| end == "pid")
                && (name.starts_with("slurmd-") || name.starts_with("sshd-"));
            let text = fs::read_to_string(path).unwrap_or_default();
            of_machine.then(|| text.split_whitespace().next().unwrap_or_default().to_owned())
        });
        let tmps = pids.map(|pid| format!("/proc/{pid}/root/tmp"));
        let parts = ["lustre", "home", "log", "spool", "state"].map(|part| format!("{dir}/{part}"));
        let mut command = Command::new("grep");
        // Sockets and pipes are skipped, and so are files that are removed meanwhile.
        command.args(["-rlaF", "-s", "-D", "skip", "-f"]).arg(self.patterns.path()).args(parts).args(tmps);
        // In the C locale, which is faster.
        command.env("LC_ALL", "C");
        let found = text_of(&command.output().unwrap().stdout);
        found.lines().map(str::to_owned).collect()
    }
}

fn text_of(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Reads the command lines of all processes of this machine, and so of the cluster, repeatedly.
pub(super) struct CommandLines {
    stop: Arc<AtomicBool>,
    watcher: JoinHandle<(BTreeSet<String>, BTreeSet<String>)>,
}

impl CommandLines {
    /// `expected`: parts of command lines that it must see, as proof that it works.
    pub(super) fn watch(secrets: &Secrets, expected: &[&str]) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&stop);
        let patterns: Vec<String> = secrets.patterns().lines().map(str::to_owned).collect();
        let expected: Vec<String> = expected.iter().map(|sight| (*sight).to_owned()).collect();
        let watcher = std::thread::spawn(move || {
            let (mut leaks, mut seen) = (BTreeSet::new(), BTreeSet::new());
            while !ended.load(Ordering::Relaxed) {
                for line in command_lines() {
                    leaks.extend(patterns.iter().any(|part| line.contains(part)).then(|| line.clone()));
                    seen.extend(expected.iter().filter(|sight| line.contains(*sight)).cloned());
                }
                std::thread::park_timeout(Duration::from_millis(10));
            }
            (leaks, &expected.into_iter().collect() - &seen)
        });
        Self { stop, watcher }
    }

    /// The command lines that contained a secret, and the expected parts that were not seen.
    pub(super) fn end(self) -> (BTreeSet<String>, BTreeSet<String>) {
        self.stop.store(true, Ordering::Relaxed);
        self.watcher.join().unwrap()
    }
}

fn command_lines() -> impl Iterator<Item = String> {
    let processes = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let numbers = processes
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(|c: char| c.is_ascii_digit()));
    numbers
        .filter_map(|entry| Some(text_of(&fs::read(entry.path().join("cmdline")).ok()?).replace('\0', " ")))
}

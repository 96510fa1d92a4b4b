//! The Airflow provider: its wheel in a running Airflow, whose tasks are jobs of the service.

use std::{
    fs,
    io::{BufRead, BufReader},
    net::TcpListener,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, Stdio},
    time::Duration,
};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::service::{Service, fresh_id, until};

const HERE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/sandbox/airflow");
const CLIENTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../clients");
/// Installed by `ci/setup --test`.
const TOOLS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../.tools");
const SECRET: &str = "hf_hidden";

fn run(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let [out, err] = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    assert!(output.status.success(), "{command:?}: {out}{err}");
}

/// Builds the wheels of the client and of the provider, and installs them in a directory.
fn install(place: &Path) -> PathBuf {
    assert!(Path::new(TOOLS).join("airflow").exists(), "Airflow is not installed; run ci/setup --test");
    let (dist, packages) = (place.join("dist"), place.join("packages"));
    run(Command::new(format!("{CLIENTS}/python/build")).arg(&dist));
    let mut build = Command::new(format!("{TOOLS}/python-client/bin/python3"));
    build.args(["-m", "build", "--wheel", "--no-isolation", "--outdir"]).arg(&dist);
    run(build.arg(format!("{CLIENTS}/airflow")));
    let paths = fs::read_dir(&dist).unwrap().map(|entry| entry.unwrap().path());
    let wheels: Vec<_> = paths.filter(|path| path.extension().is_some_and(|it| it == "whl")).collect();
    assert_eq!(wheels.len(), 2, "{wheels:?}");
    let mut pip = Command::new(format!("{TOOLS}/pip/bin/pip"));
    pip.arg("--python").arg(format!("{TOOLS}/airflow/bin/python3"));
    pip.args(["install", "--quiet", "--disable-pip-version-check", "--no-index", "--no-deps"]);
    run(pip.arg("--target").arg(&packages).args(wheels));
    packages
}

/// Our DAGs, and that of the how-to.
fn dags(place: &Path) -> PathBuf {
    let dags = place.join("dags");
    fs::create_dir(&dags).unwrap();
    fs::copy(format!("{HERE}/dags/jobs.py"), dags.join("jobs.py")).unwrap();
    let document = fs::read_to_string(format!("{CLIENTS}/../docs/airflow.md")).unwrap();
    let block = document.split("```python\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    fs::write(dags.join("document.py"), block).unwrap();
    dags
}

/// Airflow with one slot: its processes end with the test.
struct Airflow {
    place: TempDir,
    child: Child,
    said: BufReader<ChildStdout>,
    url: String,
    token: String,
}

impl Airflow {
    fn start() -> Self {
        let place = tempfile::tempdir().unwrap();
        let (packages, dags) = (install(place.path()), dags(place.path()));
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let url = format!("http://127.0.0.1:{port}");
        let log = fs::File::create(place.path().join("airflow.log")).unwrap();
        let mut command = Command::new(format!("{TOOLS}/airflow/bin/python3"));
        command.arg(format!("{HERE}/serve.py")).arg(port.to_string()).env_clear();
        command.env("PATH", "/usr/bin:/bin").env("HOME", place.path()).env("AIRFLOW_HOME", place.path());
        // Titles of processes would overwrite the environment, by which `drop` knows them.
        command.env("SPT_NOENV", "1");
        command.env("PYTHONPATH", &packages).env("PYTHONDONTWRITEBYTECODE", "1");
        for (name, value) in [
            ("API__BASE_URL", url.as_str()),
            ("API_AUTH__JWT_SECRET", &(fresh_id() + &fresh_id())),
            ("CORE__DAGBAG_IMPORT_TIMEOUT", "600"),
            ("CORE__DAGS_ARE_PAUSED_AT_CREATION", "False"),
            ("CORE__DAGS_FOLDER", &dags.display().to_string()),
            ("CORE__DEFAULT_POOL_TASK_SLOT_COUNT", "1"),
            ("CORE__EXECUTION_API_SERVER_URL", &format!("{url}/execution/")),
            ("CORE__EXECUTOR", "LocalExecutor"),
            ("CORE__LOAD_EXAMPLES", "False"),
            ("CORE__PARALLELISM", "1"),
            ("CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS", "True"),
            ("CORE__TEST_CONNECTION", "Enabled"),
            // The defaults, from five seconds on, are too short for a busy machine.
            ("SCHEDULER__SCHEDULER_HEALTH_CHECK_THRESHOLD", "600"),
            ("SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT", "600"),
            ("TRIGGERER__ON_KILL_TIMEOUT", "600"),
            ("TRIGGERER__RUNNER_HEALTH_CHECK_THRESHOLD", "600"),
            ("TRIGGERER__TRIGGERER_HEALTH_CHECK_THRESHOLD", "600"),
            ("WORKERS__EXECUTION_API_TIMEOUT", "600"),
        ] {
            command.env(format!("AIRFLOW__{name}"), value);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log).process_group(0);
        let mut child = command.spawn().unwrap();
        let said = BufReader::new(child.stdout.take().unwrap());
        let mut airflow = Self { place, child, said, url, token: String::new() };
        airflow.wait_said("started");
        until("Airflow to answer", Duration::from_mins(1), || {
            let answer = agent().get(format!("{}/auth/token", airflow.url)).call();
            let Ok(mut answer) = answer else { return false };
            let text = answer.body_mut().read_to_string().unwrap_or_default();
            let token = serde_json::from_str::<Value>(&text).ok();
            airflow.token =
                token.and_then(|it| Some(it["access_token"].as_str()?.to_owned())).unwrap_or_default();
            !airflow.token.is_empty()
        });
        airflow
    }

    fn wait_said(&mut self, what: &str) {
        let mut line = String::new();
        while line.trim() != what {
            line.clear();
            let length = self.said.read_line(&mut line).unwrap();
            assert!(length > 0, "Airflow ended before it was {what}: {}", self.log());
        }
    }

    fn log(&self) -> String {
        fs::read_to_string(self.place.path().join("airflow.log")).unwrap_or_default()
    }

    fn ask(&self, method: &str, path: &str, body: &Value) -> Value {
        let request =
            ureq::http::Request::builder().method(method).uri(format!("{}/api/v2/{path}", self.url));
        let request = request.header("authorization", format!("Bearer {}", self.token));
        let request = request.header("content-type", "application/json").header("accept", "application/json");
        let text = if body.is_null() { String::new() } else { body.to_string() };
        let mut answer = agent().run(request.body(text).unwrap()).unwrap();
        let (status, text) = (answer.status(), answer.body_mut().read_to_string().unwrap());
        assert!(status.is_success(), "{method} {path}: {status} {text}\n{}", self.log());
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{path}: {error}: {text}"))
    }

    fn get(&self, path: &str) -> Value {
        self.ask("GET", path, &Value::Null)
    }

    fn trigger(&self, dag: &str) {
        let run = json!({"dag_run_id": "one", "logical_date": null});
        self.ask("POST", &format!("dags/{dag}/dagRuns"), &run);
    }

    fn task(&self, dag: &str, task: &str) -> Value {
        self.get(&format!("dags/{dag}/dagRuns/one/taskInstances/{task}"))
    }

    /// The task once it is in this state.
    fn wait(&self, dag: &str, task: &str, state: &str) -> Value {
        let mut last = Value::Null;
        until(&format!("{task} to be {state}"), Duration::from_mins(1), || {
            last = self.task(dag, task);
            let has_ended = ["success", "failed"].iter().any(|end| last["state"] == *end);
            assert!(
                !has_ended || last["state"] == state,
                "ended otherwise: {last}\n{}",
                self.logs(dag, task, 1)
            );
            last["state"] == state
        });
        last
    }

    /// Waits until the scheduler has read that the worker ended. Airflow fails a task that goes on before (apache/airflow#72716).
    fn wait_read(&self, task: &str, number: u8) {
        let place = format!("task_id='{task}', run_id='one', try_number={number},");
        until(&format!("the scheduler to read {place}"), Duration::from_mins(1), || {
            self.log().lines().any(|line| line.contains("Received executor event") && line.contains(&place))
        });
    }

    fn xcom(&self, dag: &str, task: &str, key: &str) -> Value {
        let path = format!("dags/{dag}/dagRuns/one/taskInstances/{task}/xcomEntries/{key}?deserialize=true");
        self.get(&path)["value"].clone()
    }

    fn logs(&self, dag: &str, task: &str, number: u8) -> String {
        self.get(&format!("dags/{dag}/dagRuns/one/taskInstances/{task}/logs/{number}?full_content=true"))
            .to_string()
    }

    fn restart_triggerer(&mut self) {
        let sent = Command::new("kill").args(["-HUP", &self.child.id().to_string()]).status();
        assert!(sent.unwrap().success());
        self.wait_said("triggerer restarted");
    }
}

impl Drop for Airflow {
    /// Airflow's processes have groups of their own, but all have its home in their environment.
    #[expect(clippy::print_stderr, reason = "shown with the reason why the test failed")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.log());
        }
        let home = format!("AIRFLOW_HOME={}\0", self.place.path().display());
        let _ = self.child.kill();
        let _ = self.child.wait();
        for process in fs::read_dir("/proc").unwrap().flatten() {
            let environment = fs::read(process.path().join("environ")).unwrap_or_default();
            if environment.windows(home.len()).any(|part| part == home.as_bytes()) {
                let _ = Command::new("kill").arg("-KILL").arg(process.file_name()).status();
            }
        }
    }
}

fn agent() -> ureq::Agent {
    let timeout = Duration::from_mins(5);
    ureq::Agent::config_builder().http_status_as_error(false).timeout_global(Some(timeout)).build().into()
}

/// The jobs that the service has for a task of Airflow.
fn jobs(service: &Service, task: &str) -> Vec<Value> {
    service.get(&format!("/jobs?label=airflow_task:{task}")).json()["jobs"].as_array().unwrap().clone()
}

/// The only job of a task.
fn only(service: &Service, task: &str) -> String {
    let jobs = jobs(service, task);
    assert_eq!(jobs.len(), 1, "{jobs:?}");
    jobs[0]["id"].as_str().unwrap().to_owned()
}

#[test]
fn tasks_of_airflow_are_jobs_that_end_as_their_tasks_do_and_are_submitted_once() {
    let mut service = Service::start_with(&[("TAO_SLURM_AUTH", "disabled")]);
    let mut airflow = Airflow::start();

    let mut connection = json!({
        "connection_id": "tao_slurm_default", "conn_type": "tao_slurm", "host": service.url, "password": "tsl_any"
    });
    airflow.ask("POST", "connections", &connection);
    let tested = airflow.ask("POST", "connections/test", &connection);
    assert_eq!(tested["status"], true, "{tested}");
    connection["host"] = json!("http://127.0.0.1:1");
    assert_eq!(airflow.ask("POST", "connections/test", &connection)["status"], false);
    airflow.ask("POST", "variables", &json!({"key": "hf_token", "value": SECRET}));

    airflow.trigger("jobs");
    airflow.wait("jobs", "done", "deferred");
    airflow.wait("jobs", "killed", "deferred");
    let [done, killed] = ["done", "killed"].map(|task| only(&service, task));
    service.wait(&killed, "a start", |status| status["status"] == "Running");

    // The two deferred tasks hold nothing: the pool and the executor have one slot.
    airflow.trigger("slot");
    airflow.wait("slot", "free", "success");
    assert_eq!(airflow.task("jobs", "done")["state"], "deferred");
    assert_eq!(airflow.xcom("jobs", "done", "job_id"), done.as_str());
    let page = format!("{}/ui/jobs/{done}", service.url);
    assert_eq!(
        airflow.get("dags/jobs/dagRuns/one/taskInstances/done/links")["extra_links"]["Job in the console"],
        page
    );

    for (number, file) in [(1, "go"), (2, "again")] {
        airflow.wait_read("failed", number);
        let id = only(&service, "failed");
        let base = service.sandbox.var("SLURM_BASE_RESULTS_DIR");
        service.sandbox.login(&format!("touch {base}/results/{id}/{file}"));
    }
    assert_eq!(airflow.wait("jobs", "failed", "failed")["try_number"], 2);
    let id = only(&service, "failed");
    assert_eq!(service.status(&id)["status"], "Error");
    assert_eq!(service.get(&format!("/jobs/{id}/attempts")).json()["attempts"].as_array().unwrap().len(), 2);
    let shown = airflow.logs("jobs", "failed", 2);
    assert!(shown.contains("| no such file") && shown.contains("| it has ***"), "{shown}");

    // Neither ends a trigger, and neither is a kill.
    service.kill();
    airflow.restart_triggerer();
    service.spawn();
    service.wait(&killed, "the job to go on", |status| status["status"] == "Running");
    // Airflow's kill reaches a trigger that runs.
    until("the trigger of a triggerer", Duration::from_mins(1), || {
        airflow.logs("jobs", "killed", 1).matches(") starting").count() > 1
    });

    airflow.ask("PATCH", "dags/jobs/dagRuns/one/taskInstances/killed", &json!({"new_state": "failed"}));
    assert_eq!(service.wait_ended(&killed)["status"], "Canceled");
    assert_eq!(airflow.task("jobs", "killed")["state"], "failed");

    assert_eq!(service.status(&done)["status"], "Running");
    service.let_go(&done);
    airflow.wait("jobs", "done", "success");
    assert_eq!(airflow.xcom("jobs", "done", "return_value"), json!({"loss": "0.25"}));
    assert_eq!(service.status(&done)["status"], "Done");

    lost_worker(&service, &airflow);
    airflow.trigger("nightly");
    airflow.wait("nightly", "report", "success");
    for task in ["done", "failed", "killed", "lost"] {
        only(&service, task);
    }
    let mut shown = vec![airflow.log()];
    for task in ["done", "failed", "killed"] {
        shown.extend([airflow.task("jobs", task).to_string(), airflow.logs("jobs", task, 1)]);
    }
    let secret = shown.iter().flat_map(|text| text.lines()).find(|line| line.contains(SECRET));
    assert_eq!(secret, None, "a secret is shown");
}

/// A worker dies while its task waits for a job. The next try finds the job.
fn lost_worker(service: &Service, airflow: &Airflow) {
    airflow.trigger("worker");
    until("a job of the worker", Duration::from_mins(1), || !jobs(service, "lost").is_empty());
    let id = only(service, "lost");
    let pid = airflow.wait("worker", "lost", "running")["pid"].to_string();
    assert!(Command::new("kill").args(["-KILL", &pid]).status().unwrap().success());
    until("a second try", Duration::from_mins(1), || {
        let task = airflow.task("worker", "lost");
        task["try_number"] == 2 && task["state"] == "running"
    });
    service.let_go(&id);
    airflow.wait("worker", "lost", "success");
    assert_eq!(airflow.xcom("worker", "lost", "return_value"), json!({"loss": "0.5"}));
}

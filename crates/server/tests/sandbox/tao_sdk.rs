//! TAO's own `AutoMLRunner`, as published, whose trials are jobs of the running service by the SDK object of the Python client.

use std::{
    collections::BTreeSet,
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Child, Command},
    time::Duration,
};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    cluster::sql,
    python_client::{build_wheel, run},
    service::{Service, fresh_id, until},
};

const HERE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/sandbox/tao_sdk");
/// Installed by `ci/setup --test`.
const AUTOML: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../.tools/tao-automl");

/// An experimenter with the wheel in a fresh environment beside TAO's packages, and a directory on the cluster with the trial's program.
struct Experimenter {
    place: TempDir,
    python: PathBuf,
    service: Service,
    shared: String,
}

impl Experimenter {
    fn new() -> Self {
        assert!(Path::new(AUTOML).exists(), "TAO's packages are not installed; run ci/setup --test");
        let service = Service::start();
        let place = tempfile::tempdir().unwrap();
        let python = install(place.path());
        let shared = format!("automl-{}", fresh_id());
        let outside = Path::new(service.sandbox.var("SANDBOX_LUSTRE")).join(&shared);
        fs::create_dir(&outside).unwrap();
        fs::copy(format!("{HERE}/trial.py"), outside.join("trial.py")).unwrap();
        Self { place, python, service, shared: format!("/lustre/{shared}") }
    }

    /// A program with the packages of the environment and nothing else of this machine.
    fn script(&self, path: &str) -> Command {
        let mut command = Command::new(&self.python);
        command.args(["-I", path]).env_clear().current_dir(self.place.path());
        command.env("HOME", self.place.path()).env("PATH", "/usr/bin:/bin");
        command.env("TAO_SLURM_URL", &self.service.url);
        command
    }

    /// Starts the runner; `how` is `new` or `resume`.
    fn automl(&self, how: &str) -> Runner {
        // The test image has no Python, so the trials get that of the node.
        let interpreter = fs::canonicalize("/usr/bin/python3").unwrap();
        let mounts = json!([
            "/usr/lib:/usr/lib:ro",
            {"host_path": interpreter, "container_path": "/bin/python", "read_only": true},
            {"host_path": self.shared, "container_path": "/trial", "read_only": true},
        ]);
        let workspace = self.place.path().join("automl").display().to_string();
        let output = self.place.path().join(how);
        let log = self.place.path().join(format!("{how}.log"));
        let child = self
            .script(&format!("{HERE}/experiment.py"))
            .args([&workspace, how, &mounts.to_string()])
            .env("HF_TOKEN", "hf_hidden")
            .stdout(File::create(&output).unwrap())
            .stderr(File::create(&log).unwrap())
            .spawn()
            .unwrap();
        Runner { child, output, log }
    }

    /// The ids of all jobs that were ever stored, the deleted ones too.
    fn stored(&self) -> BTreeSet<String> {
        let rows = sql(&self.service.database_url, "select id from jobs union select id from deleted_jobs");
        rows.lines().map(str::to_owned).collect()
    }

    /// Waits until the runner has stored one trial beside the earlier ones, and the trial runs. Returns its id.
    fn next_trial(&self, earlier: &[&String], runner: &mut Runner) -> String {
        until("another trial", Duration::from_secs(90), || {
            runner.must_run();
            self.stored().len() > earlier.len()
        });
        let mut others = self.stored();
        for id in earlier {
            assert!(others.remove(*id), "{id} is gone");
        }
        assert_eq!(others.len(), 1, "a trial was stored twice: {others:?}\n{}", runner.log_text());
        let id = others.pop_first().unwrap();
        self.service.wait(&id, "the start", |status| status["progress"]["epoch"] == 0);
        id
    }
}

/// Builds the wheel and installs it, with its extra, in a fresh environment that also has TAO's packages.
fn install(place: &Path) -> PathBuf {
    let wheel = build_wheel(place);
    let environment = place.join("environment");
    let venv = ["-m", "venv", "--without-pip", "--system-site-packages"];
    run(Command::new(format!("{AUTOML}/bin/python3")).args(venv).arg(&environment));
    let python = environment.join("bin/python");
    let own = "import sysconfig; print(sysconfig.get_path('purelib'))";
    let [ours, theirs] = [python.clone(), format!("{AUTOML}/bin/python3").into()]
        .map(|python: PathBuf| run(Command::new(python).args(["-c", own])).trim().to_owned());
    // Before the packages of Debian, as in their own environment.
    fs::write(format!("{ours}/automl.pth"), format!("import sys; sys.path.insert(1, {theirs:?})\n")).unwrap();
    let mut pip = Command::new(format!("{AUTOML}/../pip/bin/pip"));
    pip.arg("--python").arg(&python);
    pip.args(["install", "--disable-pip-version-check", "--quiet", "--no-index"]);
    run(pip.arg(format!("{}[tao]", wheel.display())));
    python
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

/// A running `AutoMLRunner`.
struct Runner {
    child: Child,
    output: PathBuf,
    log: PathBuf,
}

impl Runner {
    fn log_text(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    fn must_run(&mut self) {
        let ended = self.child.try_wait().unwrap();
        assert!(ended.is_none(), "AutoML ended with {ended:?}: {}", self.log_text());
    }

    fn result(mut self) -> Value {
        let status = self.child.wait().unwrap();
        assert!(status.success(), "{status}: {}", self.log_text());
        serde_json::from_str(&fs::read_to_string(&self.output).unwrap()).unwrap()
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn tao_s_automl_runs_its_trials_as_jobs_and_goes_on_after_it_was_killed() {
    let user = Experimenter::new();
    let base = user.service.sandbox.var("SLURM_BASE_RESULTS_DIR").to_owned();

    let mut runner = user.automl("new");
    let first = user.next_trial(&[], &mut runner);
    user.service.let_go(&first);
    let second = user.next_trial(&[&first], &mut runner);
    drop(runner);
    let mut runner = user.automl("resume");
    user.service.let_go(&second);
    let third = user.next_trial(&[&first, &second], &mut runner);
    user.service.sandbox.login(&format!("touch {base}/results/{third}/fail"));
    user.service.let_go(&third);
    let fourth = user.next_trial(&[&first, &second, &third], &mut runner);
    user.service.let_go(&fourth);

    let result = runner.result();
    let history = result["history"].as_array().unwrap();
    let found: Vec<_> =
        history.iter().map(|trial| (text(&trial["job_id"]), text(&trial["status"]))).collect();
    let expected = [(&first, "success"), (&second, "success"), (&third, "failure"), (&fourth, "success")];
    assert_eq!(found, expected.map(|(id, status)| (id.as_str(), status)), "{result}");
    let metrics: BTreeSet<_> = history.iter().map(|trial| trial["metric"].to_string()).collect();
    assert_eq!(metrics.len(), 4, "each trial has the metric of its own status file: {result}");
    let trials = user.stored();
    assert_eq!(trials.len(), 4, "{trials:?}");
    for id in &trials {
        let rows =
            user.service.sandbox.login(&format!("sacct -X -n -o JobIDRaw -S now-1days --name tao-job-{id}"));
        assert_eq!(rows.lines().count(), 1, "{id}: {rows}");
    }

    // AutoML keeps the best trial and those that failed.
    let best = text(&result["best"]["job_id"]);
    let other = [&first, &second, &fourth].into_iter().find(|id| *id != best).unwrap();
    let mut after = user.script(&format!("{HERE}/after.py"));
    assert!(run(after.args([best, &third, other])).ends_with("all done\n"));
    let page = format!("{HERE}/../../../../../docs/tao-sdk.md");
    let document = format!("{HERE}/../python_client/document.py");
    assert!(run(user.script(&document).arg(page)).ends_with("all done\n"));
    until("the files of the trials to be gone", Duration::from_mins(1), || {
        user.service.sandbox.login(&format!("ls {base}/results")).lines().all(|id| id != best && id != other)
    });
}

//! The Python client: its wheel, in a fresh environment, with the running service.

use std::{
    collections::BTreeSet,
    fs,
    io::{BufRead, BufReader, Lines, Read},
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, Stdio},
    thread,
};

use tempfile::TempDir;

use crate::{cluster::sql, service::Service};

const HERE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/sandbox/python_client");
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
/// Installed by `ci/setup --test`.
const TOOLS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../.tools/python-client");
const SUBMISSIONS: usize = 500;

/// The output of a program that must succeed.
pub(crate) fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{command:?}: {text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

/// Builds the wheel and returns its path.
pub(crate) fn build_wheel(place: &Path) -> PathBuf {
    assert!(Path::new(TOOLS).exists(), "the tools are not installed; run ci/setup --test");
    run(Command::new(format!("{ROOT}/clients/python/build")).arg(place.join("dist")));
    let mut built = fs::read_dir(place.join("dist")).unwrap().map(|entry| entry.unwrap().path());
    built.find(|path| path.extension().is_some_and(|it| it == "whl")).unwrap()
}

/// Installs the wheel in a fresh environment without a network, and returns the environment's interpreter.
fn install(place: &Path) -> PathBuf {
    let wheel = build_wheel(place);
    let offline = ["--quiet", "--no-index", "--find-links"];
    let wheels = format!("{TOOLS}/wheels");

    let environment = place.join("environment");
    let base = format!("{TOOLS}/bin/python3");
    run(Command::new(base).args(["-m", "venv", "--without-pip"]).arg(&environment));
    let python = environment.join("bin/python");
    let mut pip = Command::new(format!("{TOOLS}/../pip/bin/pip"));
    pip.arg("--python").arg(&python).args(["install", "--disable-pip-version-check"]).args(offline);
    run(pip.arg(&wheels).arg(&wheel));
    let mut uv = Command::new(format!("{TOOLS}/bin/uv"));
    uv.args(["pip", "install", "--no-cache", "--offline"]).args(offline).arg(&wheels);
    run(uv.arg("--target").arg(place.join("by-uv")).arg("--python").arg(&python).arg(&wheel));
    assert!(place.join("by-uv/tao_slurm/py.typed").exists());
    python
}

struct Caller {
    _place: TempDir,
    python: PathBuf,
    home: PathBuf,
    address: String,
    token: String,
}

impl Caller {
    fn new(service: &Service) -> Self {
        let place = tempfile::tempdir().unwrap();
        let python = install(place.path());
        let made = service.run(&["token", "create", "--owner", "python", "--scope", "read,write"]);
        let token = String::from_utf8(made.stdout).unwrap().trim().to_owned();
        Self { home: place.path().to_owned(), _place: place, python, address: service.url.clone(), token }
    }

    /// A program of ours, with the package of the wheel and nothing else of this machine.
    fn program(&self, name: &str) -> Command {
        let mut command = Command::new(&self.python);
        command.args(["-I", &format!("{HERE}/{name}")]).env_clear().current_dir(&self.home);
        command.env("HOME", &self.home).env("PATH", "/usr/bin:/bin");
        command.env("TAO_SLURM_URL", &self.address).env("TAO_SLURM_TOKEN", &self.token);
        command
    }
}

/// What the submitting program reports.
struct Burst {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    followed: String,
    stored: Vec<(String, String)>,
    repeated: usize,
}

impl Burst {
    fn start(caller: &Caller) -> Self {
        let mut child = caller.program("burst.py").stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines, followed: String::new(), stored: Vec::new(), repeated: 0 }
    }

    /// Reads the reports until this is so.
    fn until(&mut self, what: &str, reached: impl Fn(&Self, &str) -> bool) {
        loop {
            let line =
                self.lines.next().unwrap_or_else(|| panic!("the program ended before {what}")).unwrap();
            let words: Vec<_> = line.split(' ').collect();
            match words[..] {
                ["followed", id] => id.clone_into(&mut self.followed),
                ["stored", id, name] => self.stored.push((id.to_owned(), name.to_owned())),
                ["repeated", ..] => self.repeated += 1,
                _ => (),
            }
            if reached(self, &line) {
                return;
            }
        }
    }

    fn until_stored(&mut self, number: usize) {
        self.until(&format!("{number} jobs are stored"), |burst, _| burst.stored.len() >= number);
    }
}

impl Drop for Burst {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A program that has jobs which wait for the file `go` of one of them.
struct Driver {
    name: &'static str,
    child: Child,
    said: BufReader<ChildStdout>,
    held: String,
}

impl Driver {
    fn start(caller: &Caller, name: &'static str) -> Self {
        let mut child = caller.program(name).stdout(Stdio::piped()).spawn().unwrap();
        let said = BufReader::new(child.stdout.take().unwrap());
        Self { name, child, said, held: String::new() }
    }

    fn until_all_are_stored(&mut self) {
        let length = self.said.read_line(&mut self.held).unwrap();
        assert!(length > 0, "{} ended early", self.name);
    }

    fn finish(mut self) {
        let said = self.said.by_ref().lines().map(Result::unwrap).last();
        assert_eq!(said.as_deref(), Some("all done"), "{}", self.name);
        assert!(self.child.wait().unwrap().success(), "{}", self.name);
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn the_wheel_of_the_python_client_runs_jobs_and_its_submissions_survive_kills_and_freezes() {
    let mut service = Service::start_with(&[("TAO_SLURM_AUTH", "tokens")]);
    let caller = Caller::new(&service);
    let mut drivers = ["drive.py", "drive_async.py"].map(|name| Driver::start(&caller, name));
    drivers.iter_mut().for_each(Driver::until_all_are_stored);
    let documents = ["clients/python/README.md", "docs/python.md"].map(|name| format!("{ROOT}/{name}"));
    thread::scope(|scope| {
        for document in &documents {
            let mut program = caller.program("document.py");
            scope.spawn(move || assert!(run(program.arg(document)).ends_with("all done\n"), "{document}"));
        }
    });

    let mut burst = Burst::start(&caller);
    for number in [60, 330] {
        burst.until_stored(number);
        service.kill();
        service.spawn();
        if number == 60 {
            burst.until_stored(180);
            let before = burst.repeated;
            service.signal("STOP");
            // Each of them lost an answer, and its job may be stored or not.
            burst.until("requests are repeated", |burst, _| burst.repeated >= before + 16);
            service.signal("CONT");
        }
    }
    burst.until("all submissions", |_, line| line == "submitted");
    for driver in &drivers {
        service.let_go(driver.held.trim());
    }
    drivers.into_iter().for_each(Driver::finish);
    service.let_go(&burst.followed);
    burst.until("the end", |_, line| line == "all done");
    assert!(burst.child.wait().unwrap().success());

    let rows =
        sql(&service.database_url, "select id || ' ' || name from jobs where name ~ '^(thread|task)-'");
    let rows: Vec<_> = rows.lines().map(|row| row.split_once(' ').unwrap()).collect();
    let names: BTreeSet<_> = rows.iter().map(|(_, name)| *name).collect();
    assert_eq!((rows.len(), names.len()), (SUBMISSIONS, SUBMISSIONS), "a submission was lost or doubled");
    let reported: BTreeSet<_> = burst.stored.iter().map(|(id, name)| (id.as_str(), name.as_str())).collect();
    assert_eq!(rows.into_iter().collect::<BTreeSet<_>>(), reported, "a client has the id of another job");
}

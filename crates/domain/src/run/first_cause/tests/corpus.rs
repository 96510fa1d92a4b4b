//! Logs of failed jobs with the line to blame: `corpus/*.txt`.
//!
//! Each is a head between two lines `+++`, then logs, each after a line `==> NAME <==`. The head has the source, what happened, the line to
//! blame with its log, its rank and node if the text shows them, and lines that must not be blamed. The logs go through the program that
//! searches them on the cluster.

use std::{
    env,
    fmt::Write as _,
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use remote::{AttemptKey, Conclude, Concluding, LogErrors, RawOutput, RemoteCommand, Subject};
use serde::Deserialize;
use slurm::NodeName;
use uuid::Uuid;

use crate::{job::failure::Failure, run::first_cause::first_cause};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Head {
    /// How it was made, or a public page that shows such a log.
    source: String,
    /// `run here`, `written after the source` or `written`.
    made: String,
    what: String,
    /// A part of the line to blame, or of each line that tells the same of the failure.
    line: Parts,
    log: String,
    rank: Option<u32>,
    node: Option<String>,
    consequences: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Parts {
    One(String),
    Same(Vec<String>),
}

impl Parts {
    fn are_in(&self, line: &str) -> bool {
        match self {
            Self::One(part) => line.contains(part),
            Self::Same(parts) => parts.iter().any(|part| line.contains(part)),
        }
    }
}

struct Case {
    name: String,
    head: Head,
    /// Each log with its name in the text.
    logs: Vec<(String, String)>,
}

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/run/first_cause/corpus")
}

fn cases(folder: &Path) -> Vec<Case> {
    let files = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    let mut files: Vec<PathBuf> =
        files.filter(|file| file.extension().is_some_and(|ending| ending == "txt")).collect();
    files.sort();
    files.iter().map(|file| Case::read(file)).collect()
}

impl Case {
    fn read(file: &Path) -> Self {
        let text = fs::read_to_string(file).unwrap();
        let (head, text) = text.strip_prefix("+++\n").unwrap().split_once("\n+++\n").unwrap();
        let mut logs: Vec<(String, String)> = Vec::new();
        for line in text.split_inclusive('\n') {
            let name = line.strip_prefix("==> ").and_then(|rest| rest.trim_end().strip_suffix(" <=="));
            match name {
                Some(name) => logs.push((name.to_owned(), String::new())),
                None => logs.last_mut().unwrap().1 += line,
            }
        }
        let name = file.file_stem().unwrap().to_str().unwrap().to_owned();
        Self { head: toml::from_str(head).unwrap_or_else(|error| panic!("{name}: {error}")), name, logs }
    }

    /// The name of a log as a job of the service has it.
    fn path(&self, log: usize) -> String {
        let is_out = Path::new(&self.logs[log].0).extension().is_some_and(|ending| ending == "out");
        let stream = if is_out { "out" } else { "err" };
        format!("log{log}/0.{stream}")
    }

    fn judge(&self, found: &[LogErrors]) -> Judgement {
        let node = self.head.node.as_ref().and_then(|node| node.parse().ok());
        let found = first_cause(found, node.as_slice()).and_then(|first| Some((first.line.clone()?, first)));
        let Some((at, first)) = found else {
            return Judgement {
                first: None,
                is_right: false,
                origin_is_right: false,
                blames_consequence: false,
            };
        };
        let log = (0..self.logs.len()).find(|log| self.path(*log) == at.log).unwrap();
        let offset = usize::try_from(at.offset).unwrap();
        let line = self.logs[log].1[offset..].split(['\n', '\r']).next().unwrap();
        let head = &self.head;
        let is_right = head.line.are_in(line) && self.logs[log].0 == head.log;
        let is_of = |rank: Option<u32>, node: Option<&str>| {
            (head.rank.is_none() || head.rank == rank)
                && (head.node.is_none() || node.is_some_and(|node| Some(node) == head.node.as_deref()))
        };
        Judgement {
            is_right,
            origin_is_right: is_of(first.rank, first.node.as_ref().map(NodeName::as_str)),
            blames_consequence: !is_right
                && head.consequences.iter().any(|part| line.contains(part.as_str())),
            first: Some(first),
        }
    }
}

struct Judgement {
    first: Option<Failure>,
    is_right: bool,
    origin_is_right: bool,
    blames_consequence: bool,
}

/// Searches the logs of all cases by the program that does it on a cluster.
fn search(cases: &[Case]) -> Vec<Vec<LogErrors>> {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: String| {
        let path = dir.path().join(name);
        (path.clone(), path.to_str().unwrap().parse().unwrap())
    };
    let job = |(index, case): (usize, &Case)| {
        let (_, logs) = path(format!("logs/{index}"));
        for (log, (_, text)) in case.logs.iter().enumerate() {
            let file = dir.path().join(format!("logs/{index}/{}", case.path(log)));
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        let (state, state_dir) = path(format!("state/{index}"));
        fs::create_dir_all(state).unwrap();
        let subject = Subject::Attempt { job: Uuid::nil(), no: 1 };
        Concluding {
            key: AttemptKey { subject, name: format!("case-{index}").parse().unwrap() },
            id: None,
            state_dir,
            logs: Vec::new(),
            results_dir: path(format!("results/{index}")).1,
            status: Vec::new(),
            status_backlog: 0,
            role_logs: Some(logs),
            results: Vec::new(),
            remove: Vec::new(),
            is_bare: false,
            may_have_failed: true,
        }
    };
    let jobs = cases.iter().enumerate().map(job).collect();
    let command = Conclude { jobs, tail_bytes: 10, status_bytes_total: 1000 };
    let call = command.render();
    let mut bash = Command::new("bash");
    bash.args(["--noprofile", "--norc", "-c", call.program]).env("TMPDIR", dir.path());
    let mut bash = bash.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    bash.stdin.take().unwrap().write_all(&call.stdin).unwrap();
    let said = bash.wait_with_output().unwrap();
    let raw = RawOutput { stdout: said.stdout, ..RawOutput::default() };
    command.parse(&raw).unwrap().into_iter().map(|concluded| concluded.errors).collect()
}

#[test]
#[expect(clippy::print_stdout, reason = "the table is for whoever adds a rule")]
fn nine_of_ten_first_causes_are_found_and_no_consequence_is_blamed() {
    let other = env::var_os("FIRST_CAUSE_CORPUS").map(PathBuf::from);
    let least = if other.is_some() { 1 } else { 60 };
    let cases = cases(&other.unwrap_or_else(corpus));
    // One command for a few: the search for all jobs of a command takes 25 s at most.
    let found: Vec<_> = cases.chunks(25).flat_map(search).collect();
    let judged: Vec<_> = cases.iter().zip(&found).map(|(case, found)| case.judge(found)).collect();
    let mut table = String::new();
    for (case, judged) in cases.iter().zip(&judged) {
        let mark = match judged {
            Judgement { blames_consequence: true, .. } => "CONSEQUENCE",
            Judgement { is_right: false, first: None, .. } => "nothing",
            Judgement { is_right: false, .. } => "wrong",
            Judgement { origin_is_right: false, .. } => "origin",
            Judgement { .. } => "right",
        };
        let (rule, line) = judged
            .first
            .as_ref()
            .map_or(("", ""), |first| (&first.rule, first.line.as_ref().map_or("", |at| &at.text)));
        let origin =
            judged.first.as_ref().map(|first| (first.rank, first.node.as_ref().map(NodeName::as_str)));
        write!(table, "{mark:<12}{:<26}{:<52}{rule:<20}", case.head.made, case.name).unwrap();
        if mark != "right" {
            let Head { what, line: label, source, rank, node, .. } = &case.head;
            write!(table, "{origin:?}\n    got:  {line}\n    not:  {label:?} {rank:?} {node:?}\n    what: {what}\n    {source}").unwrap();
        }
        table.push('\n');
    }
    let right = judged.iter().filter(|judged| judged.is_right).count();
    let blamed = judged.iter().filter(|judged| judged.blames_consequence).count();
    let lost = judged.iter().filter(|judged| judged.is_right && !judged.origin_is_right).count();
    println!(
        "{table}{right} of {} right, {blamed} consequences blamed, {lost} without the right rank or node",
        cases.len()
    );
    assert!(cases.len() >= least, "{} logs", cases.len());
    assert!(blamed == 0 && right * 10 >= cases.len() * 9, "{table}");
}

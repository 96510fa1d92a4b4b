//! The rank and the node of a line: by its own marks, else by what the launcher says of the process that failed first.

use std::sync::LazyLock;

use regex::Regex;

use super::judge::Judged;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Origin {
    pub(super) rank: Option<u32>,
    pub(super) node: Option<String>,
}

/// Where a line comes from.
pub(super) fn origin(judged: &[Judged<'_>], first: &Judged<'_>) -> Origin {
    let body = first.line.body.as_ref();
    let rank = first.line.rank.or_else(|| number(RANK.as_ref(), body));
    let node = first.line.node.clone().or_else(|| text(NODE.as_ref(), &first.found.text));
    let reports = reports(judged, first.log);
    let pid = number(PID.as_ref(), body);
    let by_pid = reports.iter().find(|report| pid.is_some() && report.pid == pid);
    let by_rank = reports.iter().find(|report| rank.is_some() && report.rank == rank);
    let report = by_pid.or(by_rank).or(first_report(&reports).filter(|_| rank.is_none() && pid.is_none()));
    let by_label = first.line.task.filter(|_| reports.is_empty());
    Origin {
        rank: rank.or(report.and_then(|report| report.rank)).or(by_label),
        node: node.or(report.and_then(|report| report.node.clone())),
    }
}

static RANK: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let patterns = r"\[Rank (\d+)\]|\[rank(\d+)\]|\b(?:on|process) rank:? (\d+)\b|^\[(?:RANK|Rank|rank) ?(\d+)\]|\bMPI rank (\d+)\b|^/job:\w+/replica:\d+/task:(\d+)|\bMPICH ERROR \[Rank (\d+)\]";
    Regex::new(patterns).ok()
});
static NODE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let patterns = concat!(
        r"srun: error: ([\w.-]+): tasks? |slurmstepd-([\w.-]+): |\bon node ([\w.-]+)\b|\bNode failure on ([\w.-]+)|\*\*\* (?:STEP|JOB) \S+ ON ([\w.-]+) CANCELLED|MPICH ERROR (?:\[[^\]]*\] ){3}\[([\w.-]+)\]",
        // NCCL and UCX: the host, the process and the thread.
        r"|(?:^|\s)([\w.-]+):\d+:\d+ \[\d+\] |^(?:\d+: |\[[\d.]+\] )*\[([\w.-]+):\d+(?::\d+)*\]",
    );
    Regex::new(patterns).ok()
});
static PID: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"\(pid: (\d+)\)|\bPID (\d+)\b").ok());
static ABORT: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"\bMPI_ABORT was invoked on rank (\d+)\b").ok());
static FIELD: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"^ *(time|host|rank|exitcode) *: *(\S+)(?: \(pid: (\d+)\))?").ok());

fn text(pattern: Option<&Regex>, line: &str) -> Option<String> {
    let found = pattern?.captures(line)?;
    found.iter().skip(1).flatten().next().map(|group| group.as_str().to_owned())
}

fn number(pattern: Option<&Regex>, line: &str) -> Option<u32> {
    text(pattern, line)?.parse().ok()
}

/// What a launcher says of one process that failed.
#[derive(Debug, Default)]
struct Report {
    /// By the clock of its node, in seconds.
    time: String,
    node: Option<String>,
    rank: Option<u32>,
    pid: Option<u32>,
}

/// The process that failed before all others.
fn first_report(reports: &[Report]) -> Option<&Report> {
    let first = reports.iter().min_by(|a, b| a.time.cmp(&b.time))?;
    let is_alone = reports.iter().filter(|report| report.time == first.time).count() == 1;
    Some(first).filter(|_| is_alone)
}

/// What torchrun says at its end of each process that failed: `host : node02`, `rank : 3 (local_rank: 1)`, `exitcode : 1 (pid: 4211)`. And
/// the rank that aborted by MPI.
fn reports(judged: &[Judged<'_>], log: usize) -> Vec<Report> {
    let mut reports = Vec::new();
    let mut next = Report::default();
    for line in judged.iter().filter(|line| line.log == log) {
        if let Some(rank) = number(ABORT.as_ref(), &line.line.body) {
            reports.push(Report { rank: Some(rank), ..Report::default() });
        }
        let Some(field) = FIELD.as_ref().and_then(|field| field.captures(&line.line.body)) else { continue };
        match &field[1] {
            "time" => next = Report { time: field[2].to_owned(), ..Report::default() },
            "host" => next.node = Some(field[2].to_owned()),
            "rank" => next.rank = field[2].parse().ok(),
            _ => {
                next.pid = field.get(3).and_then(|pid| pid.as_str().parse().ok());
                reports.push(std::mem::take(&mut next));
            }
        }
    }
    reports
}

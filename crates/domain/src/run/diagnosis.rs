//! Why an attempt failed: its own fault, or the infrastructure's.
//!
//! Evidence is asked in the order of its worth: Slurm's state, the exit code, the health of the nodes, and then the
//! last lines of the logs, by the table in [`RULES`]. In the logs a fault of the job beats one of the infrastructure:
//! the first usually causes the second, and a broken job must not run ten times. Nothing found means that nobody
//! knows, and then the job is not run again either.

mod rules;

use std::sync::LazyLock;

use regex::RegexSet;
use remote::script;
use slurm::{ExitCode, NodeName, SlurmState, node_list};

pub use rules::RULES;

/// How many lines from the end of each log are searched, as TAO does.
const LINES: usize = 500;
/// A longer line is no message.
const LINE_BYTES: usize = 4096;
/// How much of a matched line is kept, in characters.
const SHOWN: usize = 300;

/// Whose fault a failure is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// The job would fail again wherever it runs.
    User,
    /// Another try, elsewhere or later, may well succeed.
    Infrastructure,
}

/// One line of the table.
#[derive(Debug)]
pub struct Rule {
    /// The rule's name in answers, logs and metrics; unique.
    pub id: &'static str,
    /// Searched in each line by itself.
    pub pattern: &'static str,
    pub cause: Cause,
    /// For a person, to be read after "because": what it means.
    pub why: &'static str,
    /// Lines as they were printed.
    pub matching: &'static [&'static str],
    /// Lines that look alike and mean something else.
    pub others: &'static [&'static str],
}

/// A node that Slurm does not trust at the moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SickNode {
    pub name: NodeName,
    /// Slurm's word: `down`, `drained`, `fail`, …
    pub state: String,
}

/// What there is to judge a failure by.
#[derive(Debug, Clone, Copy, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is found by itself")]
pub struct Evidence<'a> {
    pub state: Option<&'a SlurmState>,
    pub exit: Option<ExitCode>,
    /// The attempt's nodes, as Slurm writes them.
    pub nodes: &'a str,
    pub sick: &'a [SickNode],
    /// The ends of the logs.
    pub logs: &'a [&'a [u8]],
    /// Its script has not left the mark in its directory, which can be read, that it leaves before it starts any program.
    pub never_began: bool,
    /// Its script says that SIGTERM has ended it.
    pub terminated: bool,
    /// Its script says that, and how, it has ended.
    pub marked_its_end: bool,
    /// Its logs, which can be read, are empty, and its status file says nothing either.
    pub silent: bool,
}

/// A failure that is understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnosis {
    pub cause: Cause,
    /// The rule, or Slurm's state in small letters: failures with one signature are one fault.
    pub signature: String,
    pub why: String,
    pub line: Option<String>,
    /// The nodes that it is laid to; empty when it may be any of several.
    pub nodes: Vec<NodeName>,
}

/// Judges a failure; none when the evidence says nothing.
pub fn diagnose(evidence: &Evidence<'_>) -> Option<Diagnosis> {
    by_state(evidence).or_else(|| by_exit(evidence)).or_else(|| by_logs_and_nodes(evidence))
}

/// States that say whose fault it is, without a look at anything else.
const TELLING_STATES: [(SlurmState, Cause, &str); 6] = [
    (SlurmState::NodeFail, Cause::Infrastructure, "a node of the job failed"),
    (SlurmState::BootFail, Cause::Infrastructure, "a node could not be booted"),
    (SlurmState::LaunchFailed, Cause::Infrastructure, "Slurm could not start the job on its nodes"),
    (SlurmState::ReconfigFail, Cause::Infrastructure, "Slurm could not set its nodes up"),
    (SlurmState::OutOfMemory, Cause::User, "the job used more memory than it had asked for"),
    (SlurmState::Deadline, Cause::User, "its deadline has passed"),
];

fn by_state(evidence: &Evidence<'_>) -> Option<Diagnosis> {
    let (state, cause, why) = TELLING_STATES.iter().find(|(state, ..)| Some(state) == evidence.state)?;
    Some(Diagnosis {
        cause: *cause,
        signature: state.as_str().to_ascii_lowercase(),
        why: (*why).to_owned(),
        line: None,
        nodes: blamed(evidence, None),
    })
}

/// What our own script, its exit codes and slurmstepd's say: that the job's program never ran, or was not let.
fn by_exit(evidence: &Evidence<'_>) -> Option<Diagnosis> {
    let (signature, why) = match (evidence.state, evidence.exit) {
        (None, _) if evidence.never_began => {
            ("forgotten", "Slurm has lost the job before it began, as a controller does that is killed")
        }
        (Some(SlurmState::Failed), _) if evidence.never_began => (
            "never-began",
            "its script was ended before it began, or could not write into its directory on the cluster",
        ),
        // It hears SIGTERM from before it starts a program, and leaves its mark then.
        (Some(SlurmState::Failed), Some(ExitCode { code: 0, signal: SIGTERM }))
            if !evidence.marked_its_end =>
        {
            ("never-began", "its script was ended before it started its program")
        }
        // The script returned another code: this one is the signal with which Slurm ended its step, and which it forgot when
        // it put the job back into the queue twice within a second. Or it was ended before it could take the mark away that
        // the run before had left.
        (
            Some(SlurmState::Failed),
            Some(ExitCode { code: SIGTERM, signal: 0 } | ExitCode { code: 0, signal: SIGTERM }),
        ) if evidence.terminated => {
            ("ended-by-slurm", "Slurm has ended its script, and nobody had asked for that")
        }
        // What its nodes run and the controller does not know, it ends (slurmctld's abort of unknown jobs).
        (None, Some(ExitCode { code: ENDED_BY_TERM, .. })) => {
            ("forgotten", "Slurm has lost the job while it ran, and has ended what was left of it")
        }
        // What fails by its own fault mostly says why; chaos has seen this of jobs that a killed controller forgot.
        (None, Some(ExitCode { code: 1, signal: 0 })) if evidence.silent => {
            ("forgotten", "Slurm has lost the job, and it failed without a word, as what Slurm ends does")
        }
        (_, Some(ExitCode { code: script::EXIT_NO_ENV_FILE, .. })) => {
            ("env-file-missing", "the node did not see a file that had been staged for the job")
        }
        (_, Some(ExitCode { code: script::EXIT_NO_RENDEZVOUS, .. })) => {
            ("no-rendezvous", "the names of the job's nodes could not be found out")
        }
        // A program that returns one of these by itself is followed by the mark of its end.
        (_, Some(ExitCode { code: script::EXIT_NO_MARKS, .. })) if !evidence.marked_its_end => {
            ("no-marks", "its script could not write into its directory on the cluster")
        }
        (_, Some(ExitCode { code: script::EXIT_NODE_FAILED, .. })) if !evidence.marked_its_end => {
            (NODE_FAILED, "srun has said that a node of the job failed")
        }
        (_, Some(ExitCode { code: script::EXIT_BEGUN, .. })) => {
            ("begun-before", "Slurm forgot that it had started the job, and started it again")
        }
        // ESLURMD_…: the step daemon could not open the logs (src/common/slurm_errno.c).
        (_, Some(ExitCode { code: 0, signal: 53 })) => {
            ("log-unopened", "the node could not open the job's log")
        }
        _ => return None,
    };
    // Of several nodes the log names the one.
    let line = if signature == NODE_FAILED { matches(evidence.logs) } else { Vec::new() };
    let line = line.into_iter().find(|(rule, _)| rule.id == "slurm-step").map(|(_, line)| line);
    Some(Diagnosis {
        cause: Cause::Infrastructure,
        signature: signature.to_owned(),
        why: why.to_owned(),
        nodes: blamed(evidence, line.as_deref()),
        line,
    })
}

const NODE_FAILED: &str = "node-failed";

/// What our script returns when SIGTERM has ended it.
pub(crate) const ENDED_BY_TERM: u8 = 128 + SIGTERM;
pub(crate) const SIGTERM: u8 = 15;

fn by_logs_and_nodes(evidence: &Evidence<'_>) -> Option<Diagnosis> {
    let found = matches(evidence.logs);
    let of = |cause: Cause| found.iter().find(|(rule, _)| rule.cause == cause);
    let from_rule = |(rule, line): &(&Rule, String)| Diagnosis {
        cause: rule.cause,
        signature: rule.id.to_owned(),
        why: rule.why.to_owned(),
        nodes: blamed(evidence, Some(line)),
        line: Some(line.clone()),
    };
    if let Some(user) = of(Cause::User) {
        return Some(from_rule(user));
    }
    if let [sick, ..] = evidence.sick {
        return Some(Diagnosis {
            cause: Cause::Infrastructure,
            signature: "node-unhealthy".to_owned(),
            why: format!("Slurm says that {} is {}", sick.name, sick.state),
            line: None,
            nodes: evidence.sick.iter().map(|node| node.name.clone()).collect(),
        });
    }
    of(Cause::Infrastructure).map(from_rule)
}

/// The rules that match, each with the first line that it matches, in the order of the logs.
fn matches(logs: &[&[u8]]) -> Vec<(&'static Rule, String)> {
    static ALL: LazyLock<RegexSet> = LazyLock::new(|| {
        // The test below builds each pattern, so that this cannot fail.
        RegexSet::new(RULES.iter().map(|rule| rule.pattern)).unwrap_or_else(|_| RegexSet::empty())
    });
    let mut found: Vec<(&Rule, String)> = Vec::new();
    for log in logs {
        let text = String::from_utf8_lossy(log);
        let lines: Vec<&str> = text.lines().collect();
        for line in &lines[lines.len().saturating_sub(LINES)..] {
            if line.len() > LINE_BYTES {
                continue;
            }
            for index in ALL.matches(line) {
                let rule = &RULES[index];
                if found.iter().all(|(known, _)| known.id != rule.id) {
                    found.push((rule, shown(line)));
                }
            }
        }
    }
    found
}

fn shown(line: &str) -> String {
    line.trim().chars().take(SHOWN).map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// Which nodes a failure is laid to: the one that the line names, the only one, or those that are sick.
fn blamed(evidence: &Evidence<'_>, line: Option<&str>) -> Vec<NodeName> {
    let nodes: Vec<NodeName> =
        node_list::expand(evidence.nodes).iter().filter_map(|name| name.parse().ok()).collect();
    let sick = || evidence.sick.iter().map(|node| node.name.clone()).collect();
    match (nodes.as_slice(), line) {
        ([_], _) => nodes,
        (_, Some(line)) => {
            let named: Vec<NodeName> =
                nodes.iter().filter(|node| names(line, node.as_str())).cloned().collect();
            if named.is_empty() { sick() } else { named }
        }
        (_, None) => sick(),
    }
}

/// Whether a line has the name as a word of its own: `node1` is not in `node10`.
fn names(line: &str, node: &str) -> bool {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '-';
    line.match_indices(node).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + node.len()..].chars().next();
        // slurmstepd writes its node's name after a dash: `slurmstepd-node01:`.
        before.is_none_or(|c| !c.is_ascii_alphanumeric()) && after.is_none_or(|c| !word(c))
    })
}

/// Whether a pattern is one that the table may hold.
#[cfg(test)]
fn compiles(pattern: &str) -> bool {
    regex::Regex::new(pattern).is_ok()
}

#[cfg(test)]
mod tests;

//! The diagnosis of a failed attempt: whether the job or the infrastructure is at fault.
//!
//! The most reliable evidence decides: Slurm's state, then the exit code, then the health of the nodes and the last lines
//! of the logs, by the rules in [`RULES`] that name a fault. In the logs a fault of the job overrides one of the infrastructure: the first
//! usually causes the second, and a broken job must not run ten times. A failure without a diagnosis is not retried.

mod image;
mod matching;
mod rule;
mod rules;
mod signature;

use remote::script;
use slurm::{ExitCode, NodeName, SlurmState, node_list};

use crate::{
    request::restart::RestartCause,
    run::evidence::{ENDED_BY_TERM, SIGTERM},
};

use matching::{Matched, matches};

pub use image::{FileFault, cached_file_faults};
pub(crate) use image::{ImageSource, registry_refusal};
pub(crate) use rule::{Fault, Rule, Standing};
pub(crate) use rules::{RULES, rule_with_id};
pub(crate) use signature::explanation;

/// What is at fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cause {
    /// The job itself: it would fail again anywhere.
    User,
    /// A file of the image cache, which is made again.
    CachedFile,
    /// A retry, elsewhere or later, may succeed.
    Infrastructure,
}

/// A node that Slurm currently considers unhealthy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnhealthyNode {
    pub name: NodeName,
    /// Slurm's state of it: `down`, `drained`, `fail`, …
    pub state: String,
}

/// The evidence of a failure.
#[derive(Debug, Clone, Copy, Default)]
#[expect(clippy::struct_excessive_bools, reason = "they are independent facts")]
pub(crate) struct Evidence<'a> {
    pub state: Option<&'a SlurmState>,
    pub exit: Option<ExitCode>,
    /// The attempt's nodes, as Slurm writes them.
    pub nodes: &'a str,
    pub unhealthy: &'a [UnhealthyNode],
    /// The ends of the logs: standard error, standard output ([`STDOUT`]), that of the component that ended the job, and those of all
    /// ([`ALL`]).
    pub logs: &'a [&'a [u8]],
    /// The job's program may have begun on a node, so that the logs are its own too.
    pub began: bool,
    /// Its script has not left its start marker in the job's directory, which is readable.
    pub never_started: bool,
    /// Whether Slurm has last ended its processes for a job of higher priority, as its log says.
    pub was_preempted: bool,
    /// Its exit record says that SIGTERM ended it.
    pub terminated: bool,
    /// Its script has left its exit record.
    pub has_exit_record: bool,
    /// Its readable logs are empty, and it has written no status line.
    pub wrote_nothing: bool,
    /// A service of the job ended it.
    pub service_failed: bool,
    pub image: ImageSource,
}

/// The cause of a failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Diagnosis {
    pub cause: Cause,
    /// What a restart policy calls the failure.
    pub end: RestartCause,
    /// The rule, or Slurm's state in lower case: failures with the same signature are the same fault.
    pub signature: String,
    pub why: String,
    pub line: Option<String>,
    /// The nodes at fault; empty if it is none, or may be any of several.
    pub nodes: Vec<NodeName>,
}

impl Diagnosis {
    fn of(
        evidence: &Evidence<'_>,
        (cause, end): (Cause, RestartCause),
        signature: &str,
        why: &str,
        line: Option<String>,
    ) -> Self {
        let nodes = blamed(evidence, line.as_deref());
        Self { cause, end, signature: signature.to_owned(), why: why.to_owned(), line, nodes }
    }
}

/// Diagnoses a failure; `None` if the evidence does not show the cause.
pub(crate) fn diagnose(evidence: &Evidence<'_>) -> Option<Diagnosis> {
    by_state(evidence)
        .or_else(|| by_exit(evidence))
        .or_else(|| by_logs_and_nodes(evidence))
        .or_else(|| by_signal(evidence))
        .or_else(|| by_service(evidence))
}

/// The Slurm states that show the cause by themselves.
const CONCLUSIVE_STATES: [(SlurmState, (Cause, RestartCause), &str); 6] = {
    use Cause::{Infrastructure, User};
    use RestartCause::{BootFailure, LaunchFailure, NodeFailure};
    [
        (SlurmState::NodeFail, (Infrastructure, NodeFailure), "a node of the job failed"),
        (SlurmState::BootFail, (Infrastructure, BootFailure), "a node could not be booted"),
        (
            SlurmState::LaunchFailed,
            (Infrastructure, LaunchFailure),
            "Slurm could not start the job on its nodes",
        ),
        (SlurmState::ReconfigFail, (Infrastructure, LaunchFailure), "Slurm could not configure its nodes"),
        (SlurmState::OutOfMemory, (User, LaunchFailure), "the job used more memory than it requested"),
        (SlurmState::Deadline, (User, LaunchFailure), "its deadline has passed"),
    ]
};

fn by_state(evidence: &Evidence<'_>) -> Option<Diagnosis> {
    let (state, cause, why) =
        CONCLUSIVE_STATES.into_iter().find(|(state, ..)| Some(state) == evidence.state)?;
    Some(Diagnosis::of(evidence, cause, &state.as_str().to_ascii_lowercase(), why, None))
}

/// The exit codes of our script and of slurmstepd: the job's program did not run, or was ended.
fn by_exit(evidence: &Evidence<'_>) -> Option<Diagnosis> {
    let (signature, why) = match (evidence.state, evidence.exit) {
        (None, _) if evidence.never_started => {
            ("forgotten", "Slurm lost the job before it started, for instance when a controller was killed")
        }
        (Some(SlurmState::Failed), _) if evidence.never_started => (
            "never-began",
            "its script was ended before it started, or could not write to its directory on the cluster",
        ),
        // A controller that was killed just after it had requeued a job shows it as running, without nodes, until its time limit.
        (Some(SlurmState::Timeout), _) if evidence.was_preempted => (
            "lost-requeue",
            "Slurm took the job's nodes for a job of higher priority, and then lost that it had requeued it",
        ),
        // The script handles SIGTERM before it starts a program, and then leaves its exit record.
        (Some(SlurmState::Failed), Some(ExitCode { code: 0, signal: SIGTERM }))
            if !evidence.has_exit_record =>
        {
            ("never-began", "its script was ended before it started its program")
        }
        // slurmctld aborts jobs on its nodes that it does not know.
        (None, Some(ExitCode { code: ENDED_BY_TERM, .. })) => {
            ("forgotten", "Slurm lost the job while it ran, and ended its processes")
        }
        // A job that fails by its own fault usually prints why. Jobs that a killed controller forgot end like this.
        (None, Some(ExitCode { code: 1, signal: 0 })) if evidence.wrote_nothing => {
            ("forgotten", "Slurm lost the job, and it failed without any output, as jobs do that Slurm ends")
        }
        (_, Some(ExitCode { code: script::EXIT_NO_ENV_FILE, .. })) => {
            ("env-file-missing", "a file that was staged for the job was not visible on the node")
        }
        (_, Some(ExitCode { code: script::EXIT_NO_RENDEZVOUS, .. })) => {
            ("no-rendezvous", "the names of the job's nodes could not be determined")
        }
        // After a program that returns one of these codes, the script leaves its exit record.
        (_, Some(ExitCode { code: script::EXIT_NO_MARKS, .. })) if !evidence.has_exit_record => {
            ("no-marks", "its script could not write to its directory on the cluster")
        }
        (_, Some(ExitCode { code: script::EXIT_NODE_FAILED, .. })) if !evidence.has_exit_record => {
            (NODE_FAILED, "srun reported that a node of the job failed")
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
    // The log names the node.
    let line = if signature == NODE_FAILED { matches(evidence.logs) } else { Vec::new() };
    let line = line.into_iter().find(|found| found.rule.id == "slurm-step").map(|found| found.line);
    let end = if signature == NODE_FAILED { RestartCause::NodeFailure } else { RestartCause::LaunchFailure };
    Some(Diagnosis::of(evidence, (Cause::Infrastructure, end), signature, why, line))
}

/// The script returned another code: this is the signal with which Slurm ended its step, when it requeued the job twice within a
/// second. Or the script was ended before it removed the exit record of the run before. It looks the same if the container of a task
/// failed and srun ended the other tasks; then the log says why.
fn by_signal(evidence: &Evidence<'_>) -> Option<Diagnosis> {
    let by_sigterm = [ExitCode { code: SIGTERM, signal: 0 }, ExitCode { code: 0, signal: SIGTERM }];
    let is_it = evidence.state == Some(&SlurmState::Failed)
        && evidence.exit.is_some_and(|exit| by_sigterm.contains(&exit))
        && evidence.terminated;
    let cause = (Cause::Infrastructure, RestartCause::LaunchFailure);
    is_it.then(|| {
        Diagnosis::of(evidence, cause, "ended-by-slurm", "Slurm ended its script without a request", None)
    })
}

/// Nothing shows a fault of the infrastructure, and the steps may have failed because of the service.
fn by_service(evidence: &Evidence<'_>) -> Option<Diagnosis> {
    let cause = (Cause::User, RestartCause::LaunchFailure);
    evidence.service_failed.then(|| {
        let why = "a service of the job failed, and there is no sign of an infrastructure failure";
        Diagnosis::of(evidence, cause, "service-failed", why, None)
    })
}

const NODE_FAILED: &str = "node-failed";

/// The place of standard output among the logs.
const STDOUT: usize = 1;
/// The place of the logs of all components.
const ALL: usize = 3;

fn by_logs_and_nodes(evidence: &Evidence<'_>) -> Option<Diagnosis> {
    // Once the program has begun on a node, that node has read the image, and the program may have printed the line. Another
    // component may have begun.
    let is_evidence = |found: &Matched| {
        !matches!(found.fault, Fault::MissingFile | Fault::DamagedFile)
            || !evidence.began && ![STDOUT, ALL].contains(&found.place)
    };
    let cause = |found: &Matched| found.fault.cause(evidence.image);
    let found: Vec<_> = matches(evidence.logs).into_iter().filter(is_evidence).collect();
    let from_rule = |found: &Matched| {
        let end = (cause(found), RestartCause::Infrastructure);
        Diagnosis::of(evidence, end, found.rule.id, found.rule.why, Some(found.line.clone()))
    };
    if let Some(certain) = found.iter().find(|found| cause(found) != Cause::Infrastructure) {
        return Some(from_rule(certain));
    }
    if let [node, ..] = evidence.unhealthy {
        return Some(Diagnosis {
            cause: Cause::Infrastructure,
            end: RestartCause::NodeFailure,
            signature: "node-unhealthy".to_owned(),
            why: format!("Slurm reports node {} as {}", node.name, node.state),
            line: None,
            nodes: evidence.unhealthy.iter().map(|node| node.name.clone()).collect(),
        });
    }
    let says_more = |found: &&Matched| found.fault != Fault::Consequence;
    found.iter().find(says_more).or(found.first()).map(from_rule)
}

/// The nodes at fault: the one that the line names, the only one, or the unhealthy ones.
fn blamed(evidence: &Evidence<'_>, line: Option<&str>) -> Vec<NodeName> {
    let nodes: Vec<NodeName> =
        node_list::expand(evidence.nodes).iter().filter_map(|name| name.parse().ok()).collect();
    let unhealthy = || evidence.unhealthy.iter().map(|node| node.name.clone()).collect();
    match (nodes.as_slice(), line) {
        ([_], _) => nodes,
        (_, Some(line)) => {
            let named: Vec<NodeName> =
                nodes.iter().filter(|node| names(line, node.as_str())).cloned().collect();
            if named.is_empty() { unhealthy() } else { named }
        }
        (_, None) => unhealthy(),
    }
}

/// Whether a line contains the name as a whole word: `node1` is not in `node10`.
fn names(line: &str, node: &str) -> bool {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '-';
    line.match_indices(node).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + node.len()..].chars().next();
        // slurmstepd writes its node's name after a dash: `slurmstepd-node01:`.
        before.is_none_or(|c| !c.is_ascii_alphanumeric()) && after.is_none_or(|c| !word(c))
    })
}

#[cfg(test)]
mod tests;

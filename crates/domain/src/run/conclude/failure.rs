//! Why a run failed: what its logs show first, or what else proves it.

use slurm::{NodeName, SlurmState, node_list};

use super::Findings;
use crate::{
    job::{
        failure::{Failure, FailureCategory, FollowedLine},
        logs::LogFile,
        stored::Job,
    },
    run::{
        diagnosis::{Cause, Diagnosis, explanation, rule_with_id},
        first_cause::first_cause,
    },
};

/// Why the run failed, which ended in an error.
pub(super) fn failure(job: &Job, diagnosis: Option<Diagnosis>, found: &Findings<'_>) -> Failure {
    let nodes = nodes_of(job);
    let by_logs = first_cause(found.errors, &nodes);
    let has_gaps = found.errors.iter().any(|log| log.has_gaps) || found.errors.is_empty();
    let failure = match (by_logs, diagnosis) {
        // Slurm knows it, and the logs show what followed.
        (by_logs, Some(diagnosis)) if is_certain(&diagnosis, by_logs.as_ref()) => {
            of_diagnosis(diagnosis, by_logs)
        }
        (Some(by_logs), _) => by_logs,
        (None, Some(diagnosis)) => of_diagnosis(diagnosis, None),
        (None, None) if job.run.state == Some(SlurmState::Timeout) => of_rule("time-limit"),
        (None, None) => Failure::unknown(),
    };
    let node = failure.node.clone().or_else(|| node_of(job, &failure, &nodes));
    Failure { node, has_gaps, ..failure }
}

/// Whether other evidence than a log proves the cause, and the logs do not show the same.
fn is_certain(diagnosis: &Diagnosis, by_logs: Option<&Failure>) -> bool {
    let category = explanation(&diagnosis.signature).0;
    let is_of_logs = rule_with_id(&diagnosis.signature).is_some() || diagnosis.line.is_some();
    let is_proven = diagnosis.cause != Cause::User || diagnosis.signature == "out_of_memory";
    is_proven && !is_of_logs && by_logs.is_none_or(|by_logs| by_logs.category != category)
}

fn of_diagnosis(diagnosis: Diagnosis, by_logs: Option<Failure>) -> Failure {
    let (category, advice) = explanation(&diagnosis.signature);
    let node = match <[NodeName; 1]>::try_from(diagnosis.nodes) {
        Ok([node]) => Some(node),
        Err(_) => None,
    };
    let followed = by_logs.map(|by_logs| {
        let first = by_logs.line.map(|at| FollowedLine { rule: by_logs.rule, at });
        first.into_iter().chain(by_logs.followed).take(5).collect()
    });
    Failure {
        rule: diagnosis.signature,
        category,
        why: diagnosis.why,
        advice: advice.to_owned(),
        node,
        followed: followed.unwrap_or_default(),
        ..Failure::unknown()
    }
}

/// The failure of a run that succeeded and lacks a required result.
pub(super) fn of_lack(lack: &str) -> Failure {
    Failure {
        rule: "result-missing".to_owned(),
        category: FailureCategory::Code,
        why: lack.trim_end_matches('.').to_owned(),
        advice: "Check the rule of the result, and what the program writes.".to_owned(),
        ..Failure::unknown()
    }
}

/// The sentence that quotes the first error, unless `quoted` is the same line.
pub(super) fn first_error(failure: Option<&Failure>, quoted: Option<&str>) -> Option<String> {
    let failure = failure?;
    let first = failure.line.as_ref().filter(|first| Some(first.text.as_str()) != quoted)?;
    let rank = failure.rank.map_or(String::new(), |rank| format!(", rank {rank}"));
    let node = failure.node.as_ref().map_or(String::new(), |node| format!(", {node}"));
    Some(format!("The first error ({} at byte {}{rank}{node}): {}", first.log, first.offset, first.text))
}

fn of_rule(id: &str) -> Failure {
    let Some(rule) = rule_with_id(id) else { return Failure::unknown() };
    Failure {
        rule: rule.id.to_owned(),
        category: rule.category,
        why: rule.why.to_owned(),
        advice: rule.advice.to_owned(),
        ..Failure::unknown()
    }
}

fn nodes_of(job: &Job) -> Vec<NodeName> {
    let list = job.run.nodes.as_deref().unwrap_or_default();
    node_list::expand(list).iter().filter_map(|name| name.parse().ok()).collect()
}

/// The node of the process that wrote the line: the job's only one, or that of a component on one node.
fn node_of(job: &Job, failure: &Failure, nodes: &[NodeName]) -> Option<NodeName> {
    if failure.category == FailureCategory::TimeLimit {
        return None;
    }
    if let [only] = nodes {
        return Some(only.clone());
    }
    let LogFile::Task { role, .. } = failure.line.as_ref()?.log.parse().ok()? else { return None };
    let component =
        job.spec.components().iter().find(|component| component.name.as_str() == role.as_str())?;
    let first = usize::try_from(component.first_node).ok()?;
    nodes.get(first).filter(|_| component.nodes == 1).cloned()
}

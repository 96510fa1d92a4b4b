//! The first cause of a failure: of all lines that look like errors in the logs of one run, the earliest that is not the consequence
//! of another.
//!
//! [`Line`](line::Line) reads the marks before a line: rank, node, level and time. [`judge`](judge::judge) gives each line its rule. The
//! best [`Standing`] wins, then the earliest line: by time where logs show times, else by place. What follows is listed with it.

mod choose;
mod judge;
mod line;
mod order;
mod origin;
mod step;

use remote::LogErrors;
use slurm::NodeName;

use crate::{
    job::{
        failure::{Failure, FollowedLine, LogPlace},
        logs::LogFile,
    },
    request::results::LogStream,
    run::{
        diagnosis::{Rule, Standing},
        log_lines::printable,
    },
};

use judge::Judged;

/// The most lines that are listed as consequences.
const FOLLOWED: usize = 5;
/// How much of a line is stored, in characters.
const SHOWN: usize = 300;

/// Finds the first cause in what was found in the logs; `None` if nothing in them can be blamed.
pub(crate) fn first_cause(found: &[LogErrors], nodes: &[NodeName]) -> Option<Failure> {
    // Standard error first: where nothing else orders two logs, it tells more.
    let stream = |log: &LogErrors| log.log.parse::<LogFile>().ok().map(|file| file.stream());
    let mut logs: Vec<_> = found.iter().filter(|log| stream(log).is_some()).collect();
    logs.sort_by_key(|log| stream(log) != Some(LogStream::Err));
    let judged = judge::judge(&logs);
    let (first, rule) = choose::choose(&judged)?;
    let origin = origin::origin(&judged, first);
    Some(Failure {
        rule: rule.id.to_owned(),
        category: rule.category,
        why: rule.why.to_owned(),
        advice: rule.advice.to_owned(),
        line: Some(place(&logs, first)),
        rank: origin.rank,
        node: origin.node.and_then(|name| known(&name, nodes)),
        followed: followed(&logs, &judged, first, rule),
        has_gaps: logs.iter().any(|log| log.has_gaps),
    })
}

/// The node of the run with this name: the log's text may have its full name, or anything else.
fn known(name: &str, nodes: &[NodeName]) -> Option<NodeName> {
    let short = |name: &str| name.split('.').next().unwrap_or_default().to_ascii_lowercase();
    nodes.iter().find(|node| short(node.as_str()) == short(name)).cloned()
}

fn place(logs: &[&LogErrors], line: &Judged<'_>) -> LogPlace {
    let text = line::plain(&line.found.text);
    LogPlace {
        log: logs.get(line.log).map(|log| log.log.clone()).unwrap_or_default(),
        offset: line.found.offset,
        text: printable(text.trim(), SHOWN),
    }
}

/// The first line of each other rule after the first cause.
fn followed(
    logs: &[&LogErrors],
    judged: &[Judged<'_>],
    first: &Judged<'_>,
    cause: &Rule,
) -> Vec<FollowedLine> {
    let mut known = vec![cause.id];
    let mut followed = Vec::new();
    let mut after: Vec<_> = judged.iter().filter(|line| order::compare(first, line).is_lt()).collect();
    after.sort_by(|a, b| order::compare(a, b));
    for line in after {
        let Some(rule) = line.rule.filter(|rule| is_told(rule)) else { continue };
        if followed.len() < FOLLOWED && !known.contains(&rule.id) {
            known.push(rule.id);
            followed.push(FollowedLine { rule: rule.id.to_owned(), at: place(logs, line) });
        }
    }
    followed
}

/// Whether a line of the rule tells something about what followed.
fn is_told(rule: &Rule) -> bool {
    !matches!(rule.standing, Standing::Noise | Standing::Hint) && rule.id != judge::FRAME
}

#[cfg(test)]
mod tests;

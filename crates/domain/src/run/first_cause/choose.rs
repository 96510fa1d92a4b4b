//! The choice among the lines that can be blamed.

use super::{judge::Judged, order::compare};
use crate::job::failure::FailureCategory;
use crate::run::diagnosis::{Rule, Standing};

/// The line to blame, and the rule that explains it.
pub(super) fn choose<'j, 't>(judged: &'j [Judged<'t>]) -> Option<(&'j Judged<'t>, &'static Rule)> {
    let can_be_blamed =
        |line: &'j Judged<'t>| Some((line, line.rule.filter(|rule| rule.standing < Standing::Consequence)?));
    let blamable: Vec<_> = judged.iter().filter_map(can_be_blamed).collect();
    let is_marked = |line: &Judged<'_>| line.line.rank.is_some() || line.line.task.is_some();
    let ranks_raise = blamable
        .iter()
        .any(|(line, rule)| line.is_exception && is_marked(line) && rule.standing == Standing::Cause);
    let standing = |line: &Judged<'_>, rule: &Rule| {
        // Where the processes of the job mark their lines, an exception without a mark is of another program: one that the batch
        // script called before and went on, or one whose failure its parent handles.
        let is_beside = line.is_exception && ranks_raise && !is_marked(line);
        if is_beside { rule.standing.max(Standing::Symptom) } else { rule.standing }
    };
    let (first, rule) = *blamable.iter().min_by(|(a, rule), (b, other)| {
        standing(a, rule).cmp(&standing(b, other)).then_with(|| compare(a, b))
    })?;
    let first = blamable.iter().map(|(line, _)| *line).find(|line| completes(first, line)).unwrap_or(first);
    Some(explained(&blamable, first, rule))
}

/// Whether a line has the message of an exception whose name stands alone in another: several processes wrote into one another.
fn completes(first: &Judged<'_>, line: &Judged<'_>) -> bool {
    let name = first.line.body.trim_end_matches([':', ' ']);
    let message = line.line.body.strip_prefix(name).and_then(|rest| rest.strip_prefix(": "));
    first.is_exception && first.log == line.log && message.is_some_and(|message| !message.trim().is_empty())
}

/// The same failure may be reported before its reason is: then the report is the earlier line, and the reason the better rule. And an
/// environment that could not be entered explains what is missing afterwards.
fn explained<'j, 't>(
    blamable: &[(&'j Judged<'t>, &'static Rule)],
    first: &'j Judged<'t>,
    rule: &'static Rule,
) -> (&'j Judged<'t>, &'static Rule) {
    let earlier = |id: &str| {
        let known = blamable.iter().filter(|(line, rule)| rule.id == id && compare(line, first).is_lt());
        known.min_by(|(a, _), (b, _)| compare(a, b)).copied()
    };
    let is_report = rule.category == FailureCategory::HostMemory
        && rule.standing == Standing::Cause
        && !first.is_exception;
    if is_report && let Some((report, _)) = earlier("killed") {
        return (report, rule);
    }
    if rule.category == FailureCategory::Environment
        && let Some(entered) = earlier("environment")
    {
        return entered;
    }
    (first, rule)
}

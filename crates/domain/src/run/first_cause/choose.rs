//! The choice among the lines that can be blamed.

use super::{
    judge::{Blamable, Judged},
    order::compare,
    step::failed_before,
};
use crate::job::failure::FailureCategory;
use crate::run::diagnosis::{Rule, Standing};

/// The line to blame, and the rule that explains it.
pub(super) fn choose<'j, 't>(judged: &'j [Judged<'t>]) -> Option<Blamable<'j, 't>> {
    let can_be_blamed =
        |line: &'j Judged<'t>| Some((line, line.rule.filter(|rule| rule.standing < Standing::Consequence)?));
    let blamable: Vec<_> = judged.iter().filter_map(can_be_blamed).collect();
    let is_marked = |line: &Judged<'_>| line.line.rank.is_some() || line.line.task.is_some();
    let ranks_raise = blamable
        .iter()
        .any(|(line, rule)| line.is_exception && is_marked(line) && rule.standing == Standing::Cause);
    let driver_reports = blamable.iter().any(|(_, rule)| reports_of_the_driver(rule));
    let standing = |line: &Judged<'_>, rule: &Rule| {
        // Where the processes of the job mark their lines, an exception without a mark is of another program: one that the batch
        // script called before and went on, or one whose failure its parent handles.
        let is_beside = line.is_exception && ranks_raise && !is_marked(line);
        // CUDA reports a GPU that failed as an error of the kernel that ran.
        let is_of_the_gpu = driver_reports && !reports_of_the_driver(rule) && is_of_cuda(line, rule);
        if is_beside || is_of_the_gpu { rule.standing.max(Standing::Symptom) } else { rule.standing }
    };
    let (first, rule) = *blamable.iter().min_by(|(a, rule), (b, other)| {
        standing(a, rule).cmp(&standing(b, other)).then_with(|| compare(a, b))
    })?;
    let (first, rule) = blamable
        .iter()
        .find(|(line, _)| completes(first, line))
        .map_or((first, rule), |(line, _)| (*line, rule));
    let (first, rule) = detail(judged, first).unwrap_or((first, rule));
    Some(explained(&blamable, first, rule))
}

/// Whether the driver of the GPU says by a line of the rule that the hardware failed.
fn reports_of_the_driver(rule: &Rule) -> bool {
    matches!(rule.id, "xid" | "gpu-lost")
}

fn is_of_cuda(line: &Judged<'_>, rule: &Rule) -> bool {
    matches!(rule.id, "gpu-code" | "watchdog") || line.line.body.contains("CUDA error")
}

/// Whether a line has the message of an exception whose name stands alone in another: several processes wrote into one another.
fn completes(first: &Judged<'_>, line: &Judged<'_>) -> bool {
    let name = first.line.body.trim_end_matches([':', ' ']);
    let message = line.line.body.strip_prefix(name).and_then(|rest| rest.strip_prefix(": "));
    first.is_exception && first.log == line.log && message.is_some_and(|message| !message.trim().is_empty())
}

/// The next line, if an exception ends with a colon and says there what is wrong.
fn detail<'j, 't>(judged: &'j [Judged<'t>], first: &Judged<'t>) -> Option<Blamable<'j, 't>> {
    if !(first.is_exception && first.line.body.trim_end().contains(": ") && first.line.body.ends_with(':')) {
        return None;
    }
    let mut next = judged.iter().filter(|line| {
        line.log == first.log
            && line.found.offset > first.found.offset
            && line.line.source == first.line.source
    });
    let next = next.next()?;
    let rule = next.rule.filter(|rule| rule.standing == Standing::Cause)?;
    Some((next, rule)).filter(|_| next.line.body.starts_with([' ', '\t']))
}

/// The same failure may be reported before its reason is: then the report is the earlier line, and the reason the better rule. And a
/// step that failed explains what is missing afterwards.
fn explained<'j, 't>(
    blamable: &[Blamable<'j, 't>],
    first: &'j Judged<'t>,
    rule: &'static Rule,
) -> Blamable<'j, 't> {
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
    failed_before(blamable, first, rule).unwrap_or((first, rule))
}

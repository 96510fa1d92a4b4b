//! Why a job failed, and why it waits: the first thing that its page shows.

use maud::{Markup, html};

use super::{needs::needs, path};
use crate::{
    client::Query,
    layout::{Icon, Kind, clock, facts, icon, kind, until},
    model::{Attempt, Diagnosis, Job, Moment, Pending},
    pages::jobs::{only, what_happens},
};

/// `diagnosis`: why it failed, if it has failed.
pub(super) fn panel(now: Moment, job: &Job, diagnosis: Option<&Diagnosis>) -> Markup {
    let summary = &job.summary;
    match (kind(summary.status.raw()), &summary.pending) {
        (Kind::Bad, _) => failed(job, diagnosis),
        (_, Some(pending)) => waits(now, job, pending),
        _ => html! { p.message { (what_happens(summary)) } },
    }
}

fn failed(job: &Job, diagnosis: Option<&Diagnosis>) -> Markup {
    let attempt = job.details.attempt_details.as_ref();
    html! {
        section.cause.bad aria-labelledby="cause" {
            h2 #cause { (icon(Icon::Cross)) "Why it failed" }
            @if let Some(diagnosis) = diagnosis { (first(job, diagnosis)) }
            @if let Some(attempt) = attempt { (evidence(attempt)) }
            p { (job.summary.message) }
            p.ways {
                a.button href=(path(&job.summary.id, "/logs?stream=err")) { "Standard error" }
                a.button href=(path(&job.summary.id, "/logs")) { "Standard output" }
                @if job.details.array.is_some() { a.button href=(path(&job.summary.id, "/tasks?status=error")) { "Failed tasks" } }
            }
        }
    }
}

/// The first cause, its line in the log, and what followed from it.
fn first(job: &Job, diagnosis: &Diagnosis) -> Markup {
    let Diagnosis { rule, category, why, advice, node, rank, first, followed, has_gaps, .. } = diagnosis;
    html! {
        p.message.strong { (why) }
        @if let Some(first) = first {
            pre.line tabindex="0" aria-label="The line of the log that shows the cause" { (first.line.file()) }
            p { a href=(place(job, diagnosis, first.log.raw(), first.offset)) { "Show it in " (first.log) } }
        }
        p { (advice) }
        (facts([
            ("Rule", Some(html! { a href=(only("rule", rule.raw())) { (rule) } span.hint { " " (category) } })),
            ("Node", node.as_ref().map(|node| html! { (node) })),
            ("Rank", rank.map(|rank| html! { (rank) })),
            ("Task", job.details.array.as_ref().map(|_| html! { (diagnosis.task) })),
        ]))
        @if !followed.is_empty() {
            details #followed {
                summary { "What followed" }
                ul {
                    @for line in followed {
                        li { a href=(place(job, diagnosis, line.log.raw(), line.offset)) { (line.rule) } " " code { (line.line) } }
                    }
                }
            }
        }
        @if *has_gaps { p.hint { "The logs were too large to be searched whole, or not all of them could be read." } }
    }
}

/// The address of a line in a log such as `main.err` or `policy/0.out`.
fn place(job: &Job, diagnosis: &Diagnosis, log: &str, offset: u64) -> String {
    let (role, file) = log.split_once('/').map_or((None, log), |(role, file)| (Some(role), file));
    let (process, stream) = file.rsplit_once('.').unwrap_or((file, "out"));
    let task = match (&job.details.array, role) {
        (Some(_), _) => Some(diagnosis.task),
        (None, Some(_)) => process.parse().ok(),
        (None, None) => None,
    };
    let query = Query::new().with("stream", stream).with_if("role", role).with_if("task", task);
    let attempt = (diagnosis.attempt != job.summary.attempt).then_some(diagnosis.attempt);
    let query = query.with_if("attempt", attempt).with("offset", offset);
    format!("{}#b{offset}", query.after(&path(&job.summary.id, "/logs")))
}

fn evidence(attempt: &Attempt) -> Markup {
    facts([
        ("Decided", attempt.outcome_reason.as_ref().map(|reason| html! { (reason) })),
        (
            "Exit code",
            attempt.exit_code.map(|code| html! { (code) @if let Some(signal @ 1..) = attempt.exit_signal { ", signal " (signal) } }),
        ),
        ("Slurm", attempt.slurm_state.as_ref().map(|state| html! { (state) })),
        ("Nodes", (!attempt.nodes.is_empty()).then(|| super::attempts::nodes(&attempt.nodes))),
    ])
}

fn waits(now: Moment, job: &Job, pending: &Pending) -> Markup {
    html! {
        section class={ "cause " (if pending.needs_action { "bad" } else { "waits" }) } aria-labelledby="cause" {
            h2 #cause { (icon(Icon::Clock)) "Why it waits" }
            p.message { (pending.meaning.as_ref().unwrap_or(&job.summary.message)) }
            @if pending.needs_action { p.strong { "It does not start by itself: somebody has to act." } }
            @if let Some(advice) = &pending.advice { p { (advice) } }
            (facts([
                ("Slurm's reason", pending.reason.as_ref().map(|reason| html! { code { (reason) } })),
                ("Held by", pending.held_by.as_ref().map(|holder| html! { (holder) })),
                ("Limit", pending.limit.as_ref().map(|limit| html! { code { (limit) } })),
                ("In the queue since", pending.queued_on.map(|at| html! { (clock(at)) })),
                ("Estimated start", pending.estimated_start_on.map(|at| html! { (clock(at)) " (" (until(now, at)) ")" })),
            ]))
            @if !job.details.needs.is_empty() { (needs(job)) }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use test_case::test_case;

    use super::*;
    use crate::tests::{diagnosis, job};

    #[test_case("main.err", false => "/logs?stream=err&attempt=1&offset=7#b7"; "of a job of one program")]
    #[test_case("policy/3.out", false => "/logs?stream=out&role=policy&task=3&attempt=1&offset=7#b7"; "of a process of a role")]
    #[test_case("main.err", true => "/logs?stream=err&task=2&attempt=1&offset=7#b7"; "of a task of an array")]
    #[test_case("odd", false => "/logs?stream=out&attempt=1&offset=7#b7"; "of a log with another name")]
    fn a_line_has_an_address(log: &str, is_array: bool) -> String {
        let array =
            if is_array { json!({"tasks": 3, "indices": "0-2", "max_parallel": null}) } else { json!(null) };
        let job = job(&json!({ "array": array }));
        let address = place(&job, &diagnosis(), log, 7);
        address.split_once(&job.summary.id).unwrap().1.to_owned()
    }
}

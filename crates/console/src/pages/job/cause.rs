//! Why a job failed, and why it waits: the first thing that its page shows.

use maud::{Markup, html};

use super::{needs::needs, path};
use crate::{
    layout::{Icon, Kind, clock, facts, icon, kind, until},
    model::{Attempt, Job, Moment, Pending},
    pages::jobs::what_happens,
};

pub(super) fn panel(now: Moment, job: &Job) -> Markup {
    let summary = &job.summary;
    match (kind(summary.status.raw()), &summary.pending) {
        (Kind::Bad, _) => failed(job),
        (_, Some(pending)) => waits(now, job, pending),
        _ => html! { p.message { (what_happens(summary)) } },
    }
}

/// The first cause is what the rule of the verdict found. `GET /jobs/{id}/diagnosis` will tell more.
fn failed(job: &Job) -> Markup {
    let attempt = job.details.attempt_details.as_ref();
    html! {
        section.cause.bad aria-labelledby="cause" {
            h2 #cause { (icon(Icon::Cross)) "Why it failed" }
            p.message { (job.summary.message) }
            @if let Some(line) = attempt.and_then(|attempt| attempt.matched_line.as_ref()) {
                pre.line tabindex="0" aria-label="The line of the log that decided" { (line.file()) }
            }
            @if let Some(attempt) = attempt { (evidence(attempt)) }
            p.ways {
                a.button href=(path(&job.summary.id, "/logs?stream=err")) { "Standard error" }
                a.button href=(path(&job.summary.id, "/logs")) { "Standard output" }
                @if job.details.array.is_some() { a.button href=(path(&job.summary.id, "/tasks?status=error")) { "Failed tasks" } }
            }
        }
    }
}

fn evidence(attempt: &Attempt) -> Markup {
    facts([
        ("Decided", attempt.outcome_reason.as_ref().map(|reason| html! { (reason) })),
        ("Rule", attempt.rule.as_ref().map(|rule| html! { code { (rule) } })),
        ("Exit code", attempt.exit_code.map(|code| html! { (code) @if let Some(signal @ 1..) = attempt.exit_signal { ", signal " (signal) } })),
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

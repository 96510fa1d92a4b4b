//! The attempts of a job: a bar for each on one scale of time, and what is known of each.

use axum::response::Response;
use maud::{Markup, html};

use super::path;
use crate::{
    client::{Failure, JOB_ATTEMPTS, Query},
    frame::{IdPath, Visit},
    layout::{badge, between, clock, facts, since},
    model::{Attempt, AttemptList, Job, Moment, Text},
};

pub(crate) async fn attempts(visit: Visit, IdPath(id): IdPath) -> Result<Response, Failure> {
    let job = super::read(&visit, &id).await?;
    let list = visit.api.get(&JOB_ATTEMPTS, &[&id], &Query::new()).await?;
    Ok(super::page(&visit, &job, "Attempts", &content(visit.now, &job, &list)))
}

fn content(now: Moment, job: &Job, AttemptList { attempts }: &AttemptList) -> Markup {
    html! {
        h2 { "Attempts" }
        @if attempts.is_empty() { p.empty { "There is no attempt yet." } }
        @if attempts.len() > 1 { (scale(now, attempts)) }
        ol.attempts {
            @for attempt in attempts.iter().rev() { li id={ "attempt-" (attempt.number) } { (one(now, job, attempt)) } }
        }
    }
}

fn one(now: Moment, job: &Job, attempt: &Attempt) -> Markup {
    let logs = Query::new().with("attempt", attempt.number).after(&path(&job.summary.id, "/logs"));
    html! {
        div.title-row {
            h3 { "Attempt " (attempt.number) }
            @if let Some(outcome) = &attempt.outcome { (badge(outcome)) }
            @if job.details.array.is_none() { a href=(logs) { "Its logs" } }
        }
        @if let Some(reason) = &attempt.outcome_reason { p.message { (reason) } }
        @if let Some(line) = &attempt.matched_line { pre.line tabindex="0" aria-label="The line of the log that decided" { (line.file()) } }
        (facts([
            ("Slurm job", attempt.slurm_job_id.as_ref().map(|id| html! { code { (id) } @if let Some(state) = &attempt.slurm_state { " " (state) } })),
            ("Partition", attempt.partition.as_ref().map(|partition| html! { (partition) })),
            ("Nodes", (!attempt.nodes.is_empty()).then(|| nodes(&attempt.nodes))),
            ("Created", Some(html! { (clock(attempt.created_on)) })),
            ("Waited", attempt.submitted_on.map(|at| attempt.started_on.or(attempt.ended_on).map_or_else(|| since(now, at), |end| between(at, end)))),
            ("Ran", attempt.started_on.map(|at| attempt.ended_on.map_or_else(|| since(now, at), |end| between(at, end)))),
            ("Concluded", attempt.concluded_on.map(|at| html! { (clock(at)) })),
            ("Exit code", attempt.exit_code.map(|code| html! { (code) @if let Some(signal @ 1..) = attempt.exit_signal { ", signal " (signal) } })),
            ("Rule", attempt.rule.as_ref().map(|rule| html! { code { (rule) } })),
            ("Requeued by Slurm", (attempt.requeues > 0).then(|| html! { (attempt.requeues) " times" })),
            ("Excluded nodes", (!attempt.excluded_nodes.is_empty()).then(|| nodes(&attempt.excluded_nodes))),
        ]))
    }
}

/// A list of nodes; a long one with its beginning.
pub(super) fn nodes(nodes: &[Text]) -> Markup {
    const SHOWN: usize = 8;
    html! {
        @for (place, node) in nodes.iter().take(SHOWN).enumerate() { @if place > 0 { ", " } (node) }
        @if nodes.len() > SHOWN { " and " (nodes.len() - SHOWN) " more" }
    }
}

/// One attempt's wait and run, in thousandths of the time of all attempts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Span {
    from: i64,
    began: i64,
    to: i64,
}

fn spans(now: Moment, attempts: &[Attempt]) -> Vec<Span> {
    let end_of = |attempt: &Attempt| attempt.ended_on.or(attempt.concluded_on).unwrap_or(now);
    let first = attempts.iter().map(|attempt| attempt.created_on).min().unwrap_or(now);
    let last = attempts.iter().map(end_of).max().unwrap_or(now);
    let whole = (last - first).num_milliseconds().max(1);
    let place = |at: Moment| ((at - first).num_milliseconds().saturating_mul(1000) / whole).clamp(0, 1000);
    let span = |attempt: &Attempt| {
        let (from, to) = (place(attempt.created_on), place(end_of(attempt)));
        Span { from, began: attempt.started_on.map_or(to, place).clamp(from, to.max(from)), to: to.max(from) }
    };
    attempts.iter().map(span).collect()
}

fn scale(now: Moment, attempts: &[Attempt]) -> Markup {
    const LINE: usize = 18;
    let height = attempts.len() * LINE;
    html! {
        figure.scale {
            svg viewBox={ "0 0 1000 " (height) } preserveAspectRatio="none" height=(height) role="img" aria-label="When each attempt waited and ran" {
                @for (place, span) in spans(now, attempts).iter().enumerate() {
                    @let y = place * LINE + 4;
                    rect.waits x=(span.from) y=(y) width=((span.began - span.from).max(2)) height=(LINE - 8) {}
                    @if span.to > span.began { rect.runs x=(span.began) y=(y) width=(span.to - span.began) height=(LINE - 8) {} }
                }
            }
            figcaption { "From top to bottom: attempts 1 to " (attempts.len()) ". Pale: waited; strong: ran." }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn attempt(created: &str, started: Option<&str>, ended: Option<&str>) -> Attempt {
        let at = |time: &str| format!("2026-11-28T00:{time}Z");
        serde_json::from_value(json!({
            "number": 1, "nodes": [], "created_on": at(created), "requeues": 0, "excluded_nodes": [],
            "started_on": started.map(at), "ended_on": ended.map(at),
        }))
        .unwrap()
    }

    #[test]
    fn the_spans_share_one_scale() {
        let attempts = [
            attempt("00:00", Some("10:00"), Some("20:00")),
            attempt("20:00", None, Some("30:00")),
            attempt("30:00", Some("35:00"), None),
        ];
        let now = "2026-11-28T00:40:00Z".parse().unwrap();
        let expected = [(0, 250, 500), (500, 750, 750), (750, 875, 1000)];
        assert_eq!(spans(now, &attempts), expected.map(|(from, began, to)| Span { from, began, to }));
    }

    #[test]
    fn times_that_contradict_each_other_give_spans_that_can_be_drawn() {
        let odd = [attempt("30:00", Some("00:00"), Some("10:00"))];
        for span in spans("2026-11-28T00:05:00Z".parse().unwrap(), &odd) {
            assert!(span.from <= span.began && span.began <= span.to, "{span:?}");
        }
    }
}

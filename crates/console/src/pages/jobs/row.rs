//! One job in a list.

use maud::{Markup, html};

use super::only;
use crate::{
    ROOT,
    layout::{Kind, ago, badge, between, counts, kind, meter, since, until},
    model::{JobSummary, Moment, Text},
};

/// The end of an id, by which people tell jobs apart. Its beginning is a time.
pub(crate) fn short_id(id: &str) -> &str {
    id.len().checked_sub(8).and_then(|start| id.get(start..)).unwrap_or(id)
}

/// Whether its owner has given it a name.
fn is_named(job: &JobSummary) -> bool {
    job.name.as_ref().is_some_and(|name| !name.raw().trim().is_empty()) || job.network_arch.is_some()
}

/// What a job is called.
pub(crate) fn title(job: &JobSummary) -> Text {
    match (&job.name, &job.network_arch, &job.action) {
        (Some(name), _, _) if !name.raw().trim().is_empty() => name.clone(),
        (_, Some(network), Some(action)) => Text::new(format!("{} {}", network.raw(), action.raw())),
        _ => Text::new(format!("job {}", short_id(&job.id))),
    }
}

/// What happens now and why, in words.
pub(crate) fn what_happens(job: &JobSummary) -> &Text {
    let meaning = job.pending.as_ref().and_then(|pending| pending.meaning.as_ref());
    meaning.unwrap_or(&job.message)
}

/// The time that matters: of the wait, of the run, or of both until the end.
pub(super) fn time(now: Moment, job: &JobSummary) -> Markup {
    let estimated = job.pending.as_ref().and_then(|pending| pending.estimated_start_on);
    match (job.started_on, job.finished_on) {
        (Some(started), Some(finished)) => html! { "took " (between(started, finished)) },
        (None, Some(_)) => html! { "never ran" },
        (Some(started), None) if kind(job.status.raw()) == Kind::Runs => html! {
            "runs " (since(now, started))
            @if let Some(eta) = &job.progress.eta { span.hint { (eta) " left" } }
        },
        (_, None) => html! {
            "waits " (since(now, job.submitted_on.unwrap_or(job.created_on)))
            @if let Some(at) = estimated { span.hint { "starts " (until(now, at)) } }
        },
    }
}

/// The partition; of several that a job may run in, the first one and the number of the others.
fn partitions(names: &Text) -> Markup {
    let others = names.raw().matches(',').count();
    let first = Text::new(names.raw().split(',').next().unwrap_or_default());
    html! {
        span.hint title=[(others > 0).then(|| names.plain())] { " / " (first) @if others > 0 { " +" (others) } }
    }
}

pub(super) fn table(now: Moment, with_owner: bool, jobs: &[JobSummary]) -> Markup {
    html! {
        table.jobs {
            caption.unseen { "Jobs, newest first" }
            thead {
                tr {
                    th.pick { input type="checkbox" data-pick-all="job" aria-label="Select all jobs of this page"; }
                    th scope="col" { "Job" }
                    th scope="col" { "Status" }
                    th scope="col" { "What happens" }
                    th scope="col" { "Where" }
                    th scope="col" { "GPUs" }
                    th scope="col" { "Progress" }
                    th scope="col" { "Time" }
                    th scope="col" { "Age" }
                    @if with_owner { th scope="col" { "Owner" } }
                }
            }
            tbody { @for job in jobs { (row(now, with_owner, job)) } }
        }
    }
}

fn row(now: Moment, with_owner: bool, job: &JobSummary) -> Markup {
    let name = title(job);
    html! {
        tr id={ "job-" (job.id) } {
            td.pick {
                input type="checkbox" name="job" value=(job.id) data-keep="" id={ "pick-" (job.id) } aria-label={ "Select " (name.plain()) };
            }
            th.name scope="row" {
                a href={ (ROOT) "/jobs/" (job.id) } { (name) }
                @if is_named(job) { span.id { (short_id(&job.id)) } } @else { " " }
                @for (key, value) in job.labels.iter().take(3) { a.label href=(only("label", &format!("{}:{}", key.raw(), value.raw()))) { (key) ":" (value) } }
            }
            td data-name="Status" {
                (badge(&job.status))
                @if job.stale { span.stale title="The cluster has not answered for three polls." { "stale" } }
            }
            td.words data-name="What happens" {
                div { (what_happens(job)) }
                @if let Some(failure) = &job.failure { a.label href=(only("rule", failure.rule.raw())) title=(failure.advice.plain()) { (failure.rule) } }
            }
            td data-name="Where" {
                (job.cluster)
                @if let Some(partition) = &job.partition { (partitions(partition)) }
            }
            td.number data-name="GPUs" { @if job.gpus > 0 { (job.gpus) span.unit { " GPUs" } @if let Some(percent) = job.gpu_percent { span.hint { (format!("{percent:.0} % used")) } } } }
            td data-name="Progress" {
                @if let Some(tasks) = &job.tasks { (counts(tasks)) }
                @else if let Some(percent) = job.progress.percent { (meter(percent, "Progress")) }
            }
            td.time data-name="Time" { (time(now, job)) }
            td.time data-name="Age" { (ago(now, job.created_on)) }
            @if with_owner { td data-name="Owner" { (job.owner) } }
        }
    }
}

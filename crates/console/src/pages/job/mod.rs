//! One job, in several pages.

mod actions;
mod attempts;
mod cause;
mod charts;
mod components;
mod events;
mod needs;
mod overview;
mod results;
mod stepper;
mod tasks;
mod texts;
mod timeline;
mod usage;
mod webhook;

use axum::response::Response;
use maud::{Markup, html};

pub(crate) use actions::act;
pub(crate) use attempts::attempts;
pub(crate) use charts::charts;
pub(crate) use events::events;
pub(crate) use overview::{overview, warnings};
pub(crate) use results::results;
pub(crate) use tasks::tasks;
pub(crate) use texts::{script, spec};
pub(crate) use timeline::timeline;
pub(crate) use usage::usage;
pub(crate) use webhook::webhook;

use crate::{
    ROOT,
    client::{Failure, GET_JOB, Query},
    frame::{Page, Visit, wakes},
    layout::{Section, Tab, badge, tabs},
    model::Job,
    pages::jobs::{short_id, title},
};

/// The address of a job's page.
pub(super) fn path(id: &str, rest: &str) -> String {
    format!("{ROOT}/jobs/{id}{rest}")
}

pub(super) async fn read(visit: &Visit, id: &str) -> Result<Job, Failure> {
    visit.api.get(&GET_JOB, &[id], &Query::new()).await
}

/// A page of a job: its head with the actions, the ways to its other pages, and `content`.
pub(super) fn page(visit: &Visit, job: &Job, tab: &str, content: &Markup) -> Response {
    Page {
        title: format!("{} · {}", job.summary.status.plain(), title(&job.summary).plain()),
        section: Section::Jobs,
        wakes: Some(wakes(Some(("job", &job.summary.id)))),
        live: around(visit, job, tab, content),
        fixed: None,
    }
    .answer(visit)
}

pub(super) fn around(visit: &Visit, job: &Job, tab: &str, content: &Markup) -> Markup {
    let summary = &job.summary;
    html! {
        div.job-head {
            div.title-row {
                h1 { (title(summary)) }
                (badge(&summary.status))
                @if summary.stale { span.stale title="The cluster has not answered for three polls." { "stale" } }
                span.id { (short_id(&summary.id)) }
            }
            @if visit.who.may_write() { (actions::bar(job)) }
        }
        (tabs("Parts of the job", &parts(job), tab))
        (content)
    }
}

fn parts(job: &Job) -> Vec<Tab<'static>> {
    let id = &job.summary.id;
    let tab = |name, rest: &str, count: Option<u64>| Tab { name, path: path(id, rest), count };
    let mut parts = vec![tab("Overview", "", None), tab("Logs", "/logs", None)];
    if let Some(array) = &job.details.array {
        parts.push(tab("Tasks", "/tasks", Some(array.tasks.into())));
    }
    parts.push(tab("Attempts", "/attempts", Some(job.summary.attempt.into())));
    if !job.details.results.is_empty() {
        parts.push(tab("Results", "/results", Some(job.details.results.len() as u64)));
    }
    parts.extend([
        tab("Events", "/events", None),
        tab("Commands", "/timeline", None),
        tab("Spec", "/spec", None),
        tab("Script", "/script", None),
        tab("Webhook", "/webhook", None),
    ]);
    parts
}

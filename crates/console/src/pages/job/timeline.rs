//! The remote commands that the service ran for a job.

use axum::response::Response;
use maud::{Markup, html};

use super::path;
use crate::{
    client::{Failure, JOB_TIMELINE, Query},
    frame::{IdPath, Visit},
    layout::{badge, bytes, clock, pager},
    model::{Entry, Timeline},
};

pub(crate) async fn timeline(visit: Visit, IdPath(id): IdPath) -> Result<Response, Failure> {
    let job = super::read(&visit, &id).await?;
    let query = visit.query.only(&["class", "page_token"]);
    let list = visit.api.get(&JOB_TIMELINE, &[&id], &query.clone().with("limit", 100)).await?;
    Ok(super::page(&visit, &job, "Commands", &content(&id, &query, &list)))
}

fn content(id: &str, query: &Query, list: &Timeline) -> Markup {
    html! {
        h2 { "Commands on the cluster" }
        p.hint { "Polls are one command for all jobs of the cluster. Newest 100 of each class, newest 2000 polls." }
        @if list.entries.is_empty() { p.empty { "No command ran for this job yet." } } @else {
            div.scroll tabindex="0" role="region" aria-label="Commands" {
                table {
                    caption.unseen { "Remote commands, oldest first" }
                    thead {
                        tr {
                            th scope="col" { "Began" } th scope="col" { "Class" } th scope="col" { "Result" } th scope="col" { "Effect" }
                            th scope="col" { "Took" } th scope="col" { "Host" } th scope="col" { "Attempt" } th scope="col" { "Jobs" } th scope="col" { "Answer" }
                        }
                    }
                    tbody { @for entry in &list.entries { (row(id, entry)) } }
                }
            }
        }
        (pager(&path(id, "/timeline"), query, list.next_page_token.as_deref()))
    }
}

fn row(id: &str, entry: &Entry) -> Markup {
    let only = Query::new().with("class", entry.class.raw()).after(&path(id, "/timeline"));
    html! {
        tr {
            td.time { (clock(entry.started_on)) }
            td { a href=(only) { (entry.class) } }
            td { (badge(&entry.result)) }
            td { @if let Some(outcome) = &entry.outcome { (outcome) } }
            td.number { (entry.duration_ms) " ms" }
            td { @if let Some(host) = &entry.host { (host) } }
            td.number { @if let Some(attempt) = entry.attempt { (attempt) } }
            td.number { (entry.jobs) }
            td.number { @if let Some(size) = entry.bytes { (bytes(size)) } }
        }
    }
}

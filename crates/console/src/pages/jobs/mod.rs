//! The list of jobs.

mod filters;
mod row;
mod selection;

use axum::response::Response;
use maud::{Markup, html};

use crate::{
    ROOT,
    client::{Failure, LIST_CLUSTERS, LIST_JOBS, Query},
    frame::{Page, Visit, wakes},
    layout::{Section, pager},
    model::{ClusterList, JobList},
};

pub(crate) use row::{short_id, title, what_happens};
pub(crate) use selection::selected;

use filters::Filters;

/// The jobs of a page.
const LISTED: u32 = 50;

fn path() -> String {
    format!("{ROOT}/jobs")
}

/// The jobs that the filters in the address select.
pub(crate) async fn list(visit: Visit) -> Result<Response, Failure> {
    let filters = Filters::of(&visit.query);
    let query = filters.query().with("limit", LISTED);
    let none = Query::new();
    let (jobs, clusters) =
        tokio::join!(visit.api.get(&LIST_JOBS, &[], &query), visit.api.get(&LIST_CLUSTERS, &[], &none));
    let live = content(&visit, &filters, &jobs?, &clusters?);
    let page = Page {
        title: "Jobs".to_owned(),
        section: Section::Jobs,
        wakes: Some(wakes(None)),
        live,
        fixed: None,
    };
    Ok(page.answer(&visit))
}

fn content(visit: &Visit, filters: &Filters, jobs: &JobList, clusters: &ClusterList) -> Markup {
    html! {
        div.with-side {
            (filters.side(clusters))
            div.content {
                div.title-row {
                    h1 { "Jobs" }
                    (filters.chosen())
                }
                @if jobs.jobs.is_empty() {
                    p.empty {
                        @if filters.is_empty() {
                            "There are no jobs yet." @if visit.who.may_write() { " " a href={ (ROOT) "/new" } { "Submit one" } "." }
                        } @else {
                            "No job matches these filters. " a href=(path()) { "Show all jobs" } "."
                        }
                    }
                } @else {
                    (selection::form(visit.who.may_write(), &row::table(visit.now, &jobs.jobs)))
                }
                (pager(&path(), &filters.query(), jobs.next_page_token.as_deref()))
            }
        }
    }
}

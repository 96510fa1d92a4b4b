//! The list of jobs.

mod filters;
mod row;
mod selection;

use axum::response::Response;
use maud::{Markup, html};

use crate::{
    ROOT,
    client::{Failure, LIST_JOBS, Query},
    frame::{Page, Visit, wakes},
    layout::{Section, pager},
    model::JobList,
};

pub(crate) use row::{short_id, title, what_happens};
pub(crate) use selection::selected;

use filters::Filters;

/// The jobs of a page.
const LISTED: u32 = 50;

fn path() -> String {
    format!("{ROOT}/jobs")
}

/// The list with this filter alone.
pub(crate) fn only(name: &str, value: &str) -> String {
    Query::new().with(name, value).after(&path())
}

/// The jobs that the filters in the address select.
pub(crate) async fn list(visit: Visit) -> Result<Response, Failure> {
    let filters = Filters::of(&visit.query);
    let jobs = visit.api.get(&LIST_JOBS, &[], &filters.listing().with("limit", LISTED)).await?;
    let live = content(&visit, &filters, &jobs);
    let page = Page {
        title: "Jobs".to_owned(),
        section: Section::Jobs,
        wakes: Some(wakes(None)),
        live,
        fixed: None,
    };
    Ok(page.answer(&visit))
}

fn content(visit: &Visit, filters: &Filters, jobs: &JobList) -> Markup {
    html! {
        div.with-side {
            (filters.side(jobs.facets.as_ref(), visit.who.is_admin()))
            div.content {
                div.title-row {
                    h1 { "Jobs" }
                    (filters.chosen())
                    (filters.orders())
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
                    (selection::form(visit.who.may_write(), &row::table(visit.now, visit.who.is_admin(), &jobs.jobs)))
                }
                (pager(&path(), &filters.query(), jobs.next_page_token.as_deref()))
            }
        }
    }
}

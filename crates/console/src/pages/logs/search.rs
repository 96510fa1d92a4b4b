//! The search in a log: a field, and what the cluster has found.

use axum::http::StatusCode;
use maud::{Markup, html};

use super::choice::Choice;
use crate::{
    client::{Failure, Query, SEARCH_LOGS},
    frame::Visit,
    layout::bytes,
    model::{Job, LogHit, LogSearch},
    pages::job::path,
};

/// What is searched for, and how, under the API's names.
const NAMES: [&str; 3] = ["q", "regex", "ignore_case"];

pub(super) fn is_asked(query: &Query) -> bool {
    query.one("q").is_some()
}

/// The field, and the hits if there is something to search for.
pub(super) async fn panel(visit: &Visit, job: &Job, choice: &Choice) -> Result<Markup, Failure> {
    let asked = visit.query.only(&NAMES);
    let field = field(job, choice, &asked);
    if !is_asked(&asked) {
        return Ok(field);
    }
    // Places are places in one file.
    let from = visit.query.one("from").and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
    let query = with_pattern(choice.query(), &asked).with("from", from);
    let found = match visit.api.get(&SEARCH_LOGS, &[&job.summary.id], &query).await {
        Ok(found) => hits(job, choice, &asked, from, visit.query.one("at"), &found),
        Err(failure) if may_be_shown(failure.status) => html! { p.problem role="alert" { (failure.detail) } },
        Err(failure) => return Err(failure),
    };
    Ok(html! { (field) (found) })
}

/// A pattern that is none, a log that is not there yet, a cluster that does not answer: the rest of the page is as without a search.
fn may_be_shown(status: StatusCode) -> bool {
    matches!(status, StatusCode::BAD_REQUEST | StatusCode::NOT_FOUND | StatusCode::SERVICE_UNAVAILABLE)
}

fn field(job: &Job, choice: &Choice, asked: &Query) -> Markup {
    let is = |name| asked.one(name) == Some("true");
    html! {
        form.log-search role="search" method="get" action=(path(&job.summary.id, "/logs")) {
            @for (name, value) in choice.query().pairs() { input type="hidden" name=(name) value=(value); }
            label for="log-q" { "Search" }
            input #log-q type="search" name="q" maxlength="500" required value=[asked.one("q")];
            label { input type="checkbox" name="regex" value="true" checked[is("regex")]; "Regular expression" }
            label { input type="checkbox" name="ignore_case" value="true" checked[is("ignore_case")]; "Any case" }
            button { "Search" }
            @if is_asked(asked) { a href=(choice.query().after(&path(&job.summary.id, "/logs"))) { "Leave the search" } }
        }
    }
}

fn hits(job: &Job, choice: &Choice, asked: &Query, from: u64, at: Option<&str>, found: &LogSearch) -> Markup {
    // The attempt of now: another one may begin.
    let same = with_pattern(choice.query().without("attempt").with("attempt", found.attempt), asked);
    let there = |query: &Query| query.after(&path(&job.summary.id, "/logs"));
    let here = same.clone().with_if("from", (from > 0).then_some(from));
    let to = |hit: &LogHit| format!("{}#hit", there(&here.clone().with("at", hit.offset)));
    let log = found.logs.first();
    html! {
        section aria-label="Hits" {
            p role="status" {
                @match found.hits.len() { 0 => "No hit", 1 => "1 hit", number => { (number) " hits" } }
                @if let Some(log) = log {
                    " in bytes " (from) " to " (log.to) " of " (bytes(log.size)) ". "
                    @if log.to <= from && !log.complete { "The cluster was too slow to search here. " }
                    @if !log.complete { a href=(there(&same.clone().with("from", log.to))) { "Search further" } }
                }
            }
            @if !found.hits.is_empty() {
                ol.hits {
                    @for hit in &found.hits {
                        @let [before, matched, after] = hit.parts();
                        li {
                            a href=(to(hit)) aria-current=[(at == Some(hit.offset.to_string().as_str())).then_some("true")] {
                                span.hint { (hit.offset) } (before) mark { (matched) } (after)
                            }
                        }
                    }
                }
            }
        }
    }
}

fn with_pattern(query: Query, asked: &Query) -> Query {
    asked.pairs().fold(query, |query, (name, value)| query.with(name, value))
}

//! The events of a job: its transitions, and the lines of its status files.

use axum::response::Response;
use maud::{Markup, Render, html};
use serde_json::Value;

use super::path;
use crate::{
    client::{Failure, JOB_EVENTS, Query},
    frame::{IdPath, Visit},
    layout::{badge, clock},
    model::{Event, EventList, Text},
};

const LISTED: usize = 200;

pub(crate) async fn events(visit: Visit, IdPath(id): IdPath) -> Result<Response, Failure> {
    let job = super::read(&visit, &id).await?;
    let query = visit.query.only(&["kind", "after"]);
    let list = visit.api.get(&JOB_EVENTS, &[&id], &query.clone().with("limit", LISTED)).await?;
    Ok(super::page(&visit, &job, "Events", &content(&id, &query, &list)))
}

fn content(id: &str, query: &Query, list: &EventList) -> Markup {
    let kinds = [("all", None), ("transitions", Some("transition")), ("status lines", Some("status"))];
    html! {
        div.title-row {
            h2 { "Events" }
            nav.choice aria-label="Kinds of events" {
                @for (name, kind) in kinds {
                    a href=(Query::new().with_if("kind", kind).after(&path(id, "/events"))) aria-current=[(query.one("kind") == kind).then_some("true")] { (name) }
                }
            }
        }
        @if list.events.is_empty() { p.empty { "No further event." } } @else {
            div.scroll tabindex="0" role="region" aria-label="Events" {
                table {
                    caption.unseen { "Events, oldest first" }
                    thead { tr { th scope="col" { "#" } th scope="col" { "Time" } th scope="col" { "Attempt" } th scope="col" { "Event" } } }
                    tbody { @for event in &list.events { (row(event)) } }
                }
            }
        }
        @if list.events.len() >= LISTED {
            nav.pager aria-label="Pages of the list" {
                a href=(query.clone().without("after").with("after", list.next_after).after(&path(id, "/events"))) { "Later events" }
            }
        }
    }
}

fn row(event: &Event) -> Markup {
    html! {
        tr {
            td.number { (event.seq) }
            td.time { (clock(event.at)) }
            td.number { (event.attempt) }
            td { (what(event)) }
        }
    }
}

fn what(event: &Event) -> Markup {
    let text = |name: &str| event.data.get(name).and_then(Value::as_str).map(Text::from);
    match event.kind.raw() {
        "transition" => html! {
            @if let Some(status) = text("status") { (badge(&status)) " " }
            @if let Some(message) = text("message") { (message) }
        },
        "status" => html! {
            @if let Some(file) = &event.file { code { (file) } " " }
            code { (Text::new(event.data.to_string())) }
        },
        _ => {
            html! { (event.kind) " " (text("message").unwrap_or_else(|| Text::new(event.data.to_string())).render()) }
        }
    }
}

//! `GET /events`: what happens to all jobs that the caller may see, as pages or as a stream.

use axum::{
    Json,
    extract::State,
    http::{HeaderMap, HeaderValue, Uri, header},
    response::{IntoResponse, Response},
};
use serde::Serialize;
use utoipa::ToSchema;

mod filter;

pub(crate) use filter::EventKind;
use filter::{Asked, EventParameters};

use crate::{
    auth::Caller,
    calls::event_id::EventId,
    http::{
        extract::{Query, wants_stream},
        sse::LAST_EVENT_ID,
    },
    ports::link,
    problem::{Problem, problems},
    state::App,
    view::{EventPageView, EventView},
    watchers::{
        feed::Outlook,
        watcher::{EventEnd, EventReset, Scope, Start, Turn, Watcher},
    },
};

problems!(Problems = SECURED, WatchersBusy);

/// The data of one event of a stream. The event's own name says which of them it is.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "it is the document; each stream writes its own")]
pub(crate) enum StreamedEvent {
    /// Named like its `kind`.
    Event(EventView),
    /// `reset`.
    Reset(EventReset),
    /// `end`.
    End(EventEnd),
}

/// Read or watch the events of all jobs
///
/// What happens to the caller's jobs, in one order; with scope `admin`, to everybody's. As JSON by pages, oldest first; with
/// `Accept: text/event-stream` as server-sent events that go on and on, from now, or after the event that `after` or
/// `Last-Event-ID` names. Each event comes once, in order, also over a broken connection, a restart of the service and on
/// another of its processes, if the client comes back with `Last-Event-ID`. The stream first sends an id without an event:
/// the place at which it begins. An id that is not known here (the database was restored from a backup) is answered
/// with the event `reset`, and the stream goes on from now.
///
/// Events are kept as long as their job. When it is deleted, they go with it, and one event `deleted` remains in their place.
/// After an hour, and when the service stops, the stream ends; the client is expected to come back. It ends, too, within seconds
/// after the token has expired or was revoked.
#[utoipa::path(
    get,
    path = "/events",
    tag = "jobs",
    operation_id = "list_events",
    params(
        EventParameters,
        ("Last-Event-ID" = Option<String>, Header, description = "Of a stream: the id of the last event that was received. It is stronger than `after`.")
    ),
    security(("bearer" = ["read"])),
    responses(
        (status = 200, description = "The events; or the stream of them, the schema being that of the data of one.",
            content((EventPageView = "application/json"), (StreamedEvent = "text/event-stream")),
            headers(
                ("Link" = String, description = "The next page (`rel=\"next\"`), when there is one. A page may be short, or empty, and have a next one."),
                ("Vary" = String, description = "`accept`."),
                ("X-Accel-Buffering" = String, description = "`no`, of the stream: proxies are to pass it on at once."),
                ("Cache-Control" = String, description = "`no-cache`, of the stream.")
            )),
        Problems
    )
)]
pub(crate) async fn list_events(
    State(app): State<App>,
    caller: Caller,
    Query(asked): Query<Asked>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    if wants_stream(&headers) {
        return stream(&app, &caller, asked, last_event(&headers)?).await;
    }
    let after = asked.after.unwrap_or(EventId(0));
    let head = app.store.place_events().await?;
    let page = app.store.feed(&caller.viewer(), &asked.filter, after.0, head, asked.limit).await?;
    let next = EventId(page.through).to_string();
    let link = page.more.then(|| link::next(&uri, "after", &next)).flatten();
    let events = page.events.into_iter().map(EventView::from).collect();
    Ok(listed(Json(EventPageView { events, next_after: next }), link))
}

/// A page of events, with the way to the next.
pub(crate) fn listed(page: impl IntoResponse, link: Option<HeaderValue>) -> Response {
    let mut response = page.into_response();
    response.headers_mut().insert(header::VARY, HeaderValue::from_static("accept"));
    if let Some(link) = link {
        response.headers_mut().insert(header::LINK, link);
    }
    response
}

async fn stream(
    app: &App,
    caller: &Caller,
    asked: Asked,
    last: Option<EventId>,
) -> Result<Response, Problem> {
    let turn = Turn::take(app, "all")?;
    // What has happened by now is not told, though nobody has read it yet.
    let head = EventId(app.store.place_events().await?);
    let after = last.or(asked.after).unwrap_or(head);
    let start = Start { after: after.min(head), seq: 0, is_reset: after > head };
    let watcher = Watcher::new(app, Scope::All(caller.viewer()), asked.filter, turn).await;
    Ok(watcher.respond(caller.standing, start, Outlook::Unchanged))
}

/// An empty one is that of a client that has not received any.
pub(crate) fn last_event(headers: &HeaderMap) -> Result<Option<EventId>, Problem> {
    let Some(id) = headers.get(LAST_EVENT_ID).filter(|id| !id.is_empty()) else { return Ok(None) };
    let parsed = id.to_str().ok().and_then(|id| id.parse().ok());
    let wrong = || Problem::parameter("Last-Event-ID", "invalid", "must be the id of an event");
    parsed.map(Some).ok_or_else(wrong)
}

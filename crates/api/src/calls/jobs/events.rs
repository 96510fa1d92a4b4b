//! `GET /jobs/{id}/events`: the events of a job, as pages or as a stream.

use axum::{
    Json,
    http::{HeaderMap, StatusCode, Uri},
    response::{IntoResponse, Response},
};
use domain::{Job, Phase};
use persistence::FeedFilter;
use utoipa::IntoParams;

use crate::{
    auth::Caller,
    calls::{
        event_id::EventId,
        events::{EventKind, StreamedEvent, listed},
    },
    http::{
        extract::{Call, FromQuery, JobInPath, Parameters, STREAMED},
        link,
        sse::{self, Permit, wants_stream},
    },
    problem::{Problem, problems},
    state::App,
    view::{EventListView, EventView},
    watchers::{
        feed::Outlook,
        watcher::{Scope, Start, Watcher},
    },
};

problems!(Problems = SECURED, JobNotFound, WatchersBusy);

/// Selects events.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Range {
    /// Only events after this number: the `next_after` of the previous answer.
    #[param(value_type = Option<u64>, default = 0)]
    after: u64,
    /// The maximum number of events in a page; a stream ends with its job.
    #[param(value_type = Option<u32>, minimum = 1, maximum = 1000, default = 100)]
    limit: u32,
    /// Only events of this kind. Repeatable.
    #[param(value_type = Option<Vec<EventKind>>, style = Form, explode, inline)]
    kind: Vec<String>,
}

impl FromQuery for Range {
    const KNOWN: &'static [&'static str] = &["after", "limit", "kind"];

    fn from_query(parameters: &Parameters) -> Result<Self, Problem> {
        Ok(Self {
            after: parameters.number("after", 0..=i64::MAX.unsigned_abs())?.unwrap_or(0),
            limit: parameters.limit(STREAMED)?,
            kind: EventKind::all_in(parameters)?,
        })
    }
}

/// Read or stream a job's events
///
/// Returns every change of status, phase or attempt and every line of the job's status files, oldest first. As JSON, the
/// answer is a page: to continue, set `after` to `next_after`, or follow `Link`.
///
/// With `Accept: text/event-stream` the answer is a stream of server-sent events: all past events, then new ones until the job has
/// finished. The event `end` follows the last one. A client that reconnects after `end` gets a 204, unless the job was
/// retried. A client that reconnects with `Last-Event-ID` gets each event once and in order, even after a broken connection, a
/// restart of the service or on another of its processes. If the service does not know the id (the database was restored from a
/// backup), it sends the event `reset` and starts again. Events are stored as long as their job.
#[utoipa::path(
    get,
    path = "/jobs/{id}/events",
    params(
        ("id" = domain::JobId, Path, description = "The job's id."),
        Range,
        ("Last-Event-ID" = Option<String>, Header, description = "For a stream: the id of the last received event. It overrides `after`.")
    ),
    security(("bearer" = ["read"])),
    responses(
        (status = 200, description = "The events; or a stream, where the schema describes the data of one event.",
            content((EventListView = "application/json"), (StreamedEvent = "text/event-stream")),
            headers(
    ("Link" = String, description = "The next page (`rel=\"next\"`) if this one is full."),
    ("Vary" = String, description = "`accept`."),
    ("X-Accel-Buffering" = String, description = "`no` for a stream: proxies must not buffer it."),
    ("Cache-Control" = String, description = "`no-cache` for a stream.")
                )),
                (status = 204, description = "For a stream: the job has finished, and `Last-Event-ID` is its last event."),
        Problems
    )
)]
pub(crate) async fn get_job_events(
    Call(app, caller, JobInPath(id), range): Call<JobInPath, Range>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let job = super::find(&app, &caller, id).await?;
    if wants_stream(&headers) {
        return stream(&app, &caller, &job, range, sse::last_event(&headers)?).await;
    }
    let _turn = app.page_turn().await;
    app.store.place_events().await?;
    let events = app.store.job_feed(job.id, range.after, 0, &range.kind, range.limit).await?;
    let is_full = events.len() >= usize::try_from(range.limit).unwrap_or(usize::MAX);
    let next_after = events.last().map_or(range.after, |event| event.event.seq);
    let link = is_full.then(|| link::next(&uri, "after", &next_after.to_string())).flatten();
    let events = events.into_iter().map(EventView::from).collect();
    Ok(listed(Json(EventListView { job_id: job.id, events, next_after }), link))
}

async fn stream(
    app: &App,
    caller: &Caller,
    job: &Job,
    range: Range,
    last: Option<EventId>,
) -> Result<Response, Problem> {
    let permit = Permit::to_watch(app, "job")?;
    // After the read of the job: if it has finished by then, its last event is already readable.
    let head = EventId(app.store.place_events().await?);
    let outlook = if job.phase == Phase::Ended { Outlook::Ended(job.status) } else { Outlook::Unchanged };
    let start = match last {
        Some(last) if last <= head => {
            let is_all =
                job.phase == Phase::Ended && app.store.job_feed(job.id, 0, last.0, &[], 1).await?.is_empty();
            if is_all {
                return Ok(StatusCode::NO_CONTENT.into_response());
            }
            Start { after: last, seq: 0, is_reset: false }
        }
        Some(_) => Start { after: EventId(0), seq: 0, is_reset: true },
        None => Start { after: EventId(0), seq: range.after, is_reset: false },
    };
    let filter = FeedFilter { kinds: range.kind, ..FeedFilter::default() };
    let watcher = Watcher::new(app, Scope::One(job.id), filter, permit).await;
    Ok(watcher.respond(caller.standing, start, outlook))
}

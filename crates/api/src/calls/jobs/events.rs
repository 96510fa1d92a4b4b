//! `GET /jobs/{id}/events`: what happened to a job, in order, as pages or as a stream.

use axum::{
    Json,
    extract::State,
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
        events::{EventKind, StreamedEvent, last_event, listed},
    },
    http::extract::{FromQuery, JobInPath, Parameters, Query, wants_stream},
    ports::link,
    problem::{Problem, problems},
    state::App,
    view::{EventListView, EventView},
    watchers::{
        feed::Outlook,
        watcher::{Scope, Start, Turn, Watcher},
    },
};

problems!(Problems = SECURED, JobNotFound, WatchersBusy);

const DEFAULT_LIMIT: u32 = 100;
const MOST: u64 = 1000;

/// Which events.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Range {
    /// Only events after this number: the `next_after` of the answer before.
    #[param(value_type = Option<u64>, default = 0)]
    after: u64,
    /// At most so many; a stream ends with its job.
    #[param(value_type = Option<u32>, minimum = 1, maximum = 1000, default = 100)]
    limit: u32,
    /// Only events of this kind. May be repeated.
    #[param(value_type = Option<Vec<EventKind>>, style = Form, explode, inline)]
    kind: Vec<String>,
}

impl FromQuery for Range {
    const KNOWN: &'static [&'static str] = &["after", "limit", "kind"];

    fn from_query(parameters: &Parameters) -> Result<Self, Problem> {
        let limit = parameters.number("limit", 1, MOST)?;
        Ok(Self {
            after: parameters.number("after", 0, i64::MAX.unsigned_abs())?.unwrap_or(0),
            limit: limit.and_then(|limit| u32::try_from(limit).ok()).unwrap_or(DEFAULT_LIMIT),
            kind: EventKind::all_in(parameters)?,
        })
    }
}

/// Read or watch a job's events
///
/// Every change of its status, phase or attempt and every line of its status files, oldest first, each once. As JSON by
/// pages: to go on, ask again with `after` set to `next_after`, or follow `Link`.
///
/// With `Accept: text/event-stream`: server-sent events, all that were and all that come, until the job has ended: after its last
/// event comes `end`, and nothing more; to come back after that is answered with 204, unless the job was sent again meanwhile.
/// Each event comes once, in order, also over a broken connection, a restart of the service and on another of its
/// processes, if the client comes back with `Last-Event-ID`. An id that is not known here (the database was restored from
/// a backup) is answered with the event `reset`, and the stream begins anew. Events are kept as long as their job.
#[utoipa::path(
    get,
    path = "/jobs/{id}/events",
    tag = "jobs",
    operation_id = "get_job_events",
    params(
        ("id" = domain::JobId, Path, description = "The job's id."),
        Range,
        ("Last-Event-ID" = Option<String>, Header, description = "Of a stream: the id of the last event that was received. It is stronger than `after`.")
    ),
    security(("bearer" = ["read"])),
    responses(
        (status = 200, description = "The events; or the stream of them, the schema being that of the data of one.",
            content((EventListView = "application/json"), (StreamedEvent = "text/event-stream")),
            headers(
                ("Link" = String, description = "The next page (`rel=\"next\"`), when this one is full."),
                ("Vary" = String, description = "`accept`."),
                ("X-Accel-Buffering" = String, description = "`no`, of the stream: proxies are to pass it on at once."),
                ("Cache-Control" = String, description = "`no-cache`, of the stream.")
            )),
        (status = 204, description = "Of a stream: the job has ended, and `Last-Event-ID` is that of its last event."),
        Problems
    )
)]
pub(crate) async fn get_job_events(
    State(app): State<App>,
    caller: Caller,
    JobInPath(id): JobInPath,
    Query(range): Query<Range>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let job = super::find(&app, &caller, id).await?;
    if wants_stream(&headers) {
        return stream(&app, &caller, &job, range, last_event(&headers)?).await;
    }
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
    let turn = Turn::take(app, "job")?;
    // After the job was read: if it has ended by then, its last event is among those that can be read.
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
    let watcher = Watcher::new(app, Scope::One(job.id), filter, turn).await;
    Ok(watcher.respond(caller.standing, start, outlook))
}

//! `GET /events`: the events of all jobs that the caller may see, as pages or as a stream.

use axum::{
    Json,
    http::{HeaderMap, HeaderValue, Uri, header},
    response::{IntoResponse, Response},
};
use domain::{ClusterName, JobId, PipelineId};
use persistence::FeedFilter;
use serde::Serialize;
use strum::{EnumString, IntoStaticStr, VariantNames};
use utoipa::{IntoParams, ToSchema};

use crate::{
    auth::Caller,
    calls::{event_id::EventId, pipelines},
    http::{
        extract::{Call, FromQuery, NoPlace, Parameters, STREAMED},
        link::{self, Link},
        sse::{self, Permit, wants_stream},
    },
    problem::{Problem, problems},
    state::App,
    view::{EventPageView, EventView},
    watchers::{
        feed::Outlook,
        watcher::{EventEnd, EventReset, Scope, Start, Watcher},
    },
};

/// A client with more jobs should read the events of all jobs.
const MOST_JOBS: usize = 200;

/// The kind of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, EnumString, IntoStaticStr, VariantNames, ToSchema)]
#[strum(serialize_all = "snake_case")]
#[schema(rename_all = "snake_case")]
pub(crate) enum EventKind {
    /// The status, the phase or the newest attempt of the job changed.
    Transition,
    /// A line of one of the job's status files.
    Status,
    /// The job has written more lines than the service stores; later lines are missing.
    EventsTruncated,
    /// A Slurm job with the job's name does not belong to its newest attempt; the service cancels it.
    Orphan,
    /// The job and its events were deleted.
    Deleted,
}

impl EventKind {
    /// The kinds in the query, each once.
    pub(crate) fn all_in(parameters: &Parameters) -> Result<Vec<String>, Problem> {
        let must = format!("one of {}", Self::VARIANTS.join(", "));
        let mut kinds: Vec<Self> = parameters.parse_all("kind", must)?;
        kinds.dedup();
        Ok(kinds.into_iter().map(|kind| <&str>::from(kind).to_owned()).collect())
    }
}

/// Selects events. Different parameters must all match; of a repeated parameter, any value.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct EventQuery {
    /// Only events after this id: the `next_after` of the previous answer. `0` means from the start. Default: `0` for JSON, the
    /// newest event for a stream.
    #[param(value_type = Option<String>, pattern = "^(?:0|[0-7][0-9a-f]{15})$", example = "00000000000004d2")]
    after: Option<EventId>,
    /// The maximum number of events in a page; streams have no maximum.
    #[param(value_type = Option<u32>, minimum = 1, maximum = 1000, default = 100)]
    limit: u32,
    /// Only events of this job. Repeatable.
    #[param(value_type = Option<Vec<JobId>>, style = Form, explode)]
    job: Vec<JobId>,
    /// Only events of the jobs of this pipeline.
    #[param(value_type = Option<uuid::Uuid>)]
    pipeline: Option<PipelineId>,
    /// Only events of jobs on this cluster. Repeatable.
    #[param(value_type = Option<Vec<String>>, style = Form, explode)]
    cluster: Vec<ClusterName>,
    /// Only events of this kind. Repeatable.
    #[param(value_type = Option<Vec<EventKind>>, style = Form, explode, inline)]
    kind: Vec<String>,
}

impl EventQuery {
    async fn filter(self, app: &App, caller: &Caller) -> Result<FeedFilter, Problem> {
        let mut jobs = self.job;
        if let Some(id) = self.pipeline {
            let members = pipelines::jobs_of(app, caller, id).await?;
            let is_asked = |job: &JobId| jobs.is_empty() || jobs.contains(job);
            let both: Vec<JobId> = members.into_iter().filter(is_asked).collect();
            // Without a job the filter would let all pass: no job has this id.
            jobs = if both.is_empty() { vec![JobId::new(id.get())] } else { both };
        }
        Ok(FeedFilter { jobs, clusters: self.cluster, kinds: self.kind })
    }
}

impl FromQuery for EventQuery {
    const KNOWN: &'static [&'static str] = &["after", "limit", "job", "pipeline", "cluster", "kind"];

    fn from_query(parameters: &Parameters) -> Result<Self, Problem> {
        let after = match parameters.one("after")? {
            Some("0") => Some(EventId(0)),
            _ => parameters.parse("after", "the id of an event, or 0")?,
        };
        let job = parameters.parse_all("job", "the id of a job, a UUID")?;
        if job.len() > MOST_JOBS {
            let detail = format!("must be given at most {MOST_JOBS} times");
            return Err(Problem::parameter("job", "too_many", detail));
        }
        Ok(Self {
            after,
            limit: parameters.limit(STREAMED)?,
            job,
            pipeline: parameters.parse("pipeline", "the id of a pipeline, a UUID")?,
            cluster: parameters.parse_all("cluster", "the name of a cluster")?,
            kind: EventKind::all_in(parameters)?,
        })
    }
}

problems!(Problems = SECURED, PipelineNotFound, WatchersBusy);

/// The data of one streamed event. The event's name, which is also its `kind`, selects the variant.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "it is the document; each stream writes its own")]
pub(crate) enum StreamedEvent {
    Event(EventView),
    Reset(EventReset),
    End(EventEnd),
}

/// Read or stream the events of all jobs
///
/// Returns the events of the caller's jobs in one order; with the scope `admin`, those of all jobs. As JSON, the answer is a page,
/// oldest first. With `Accept: text/event-stream` it is a stream of server-sent events from now on, or after the event that
/// `after` or `Last-Event-ID` names.
///
/// A client that reconnects with `Last-Event-ID` gets each event once and in order, even after a broken connection, a restart of
/// the service or on another of its processes. The stream begins with an id without an event, the position at which it
/// starts. If the service does not know the id (the database was restored from a backup), it sends the event `reset` and
/// continues from now.
///
/// Events are stored as long as their job. When a job is deleted, its events are deleted too, and one event `deleted` replaces
/// them. The stream ends after an hour and when the service stops; clients should reconnect. It also ends within seconds after the
/// token has expired or was revoked.
#[utoipa::path(
    get,
    path = "/events",
    params(
        EventQuery,
        ("Last-Event-ID" = Option<String>, Header, description = "For a stream: the id of the last received event. It overrides `after`.")
    ),
    security(("bearer" = ["read"])),
    responses(
        (status = 200, description = "The events; or a stream, where the schema describes the data of one event.",
            content((EventPageView = "application/json"), (StreamedEvent = "text/event-stream")),
            headers(
                ("Link" = String, description = "The next page (`rel=\"next\"`) if there is one. A page can be short or empty and still have a next page."),
                ("Vary" = String, description = "`accept`."),
                ("X-Accel-Buffering" = String, description = "`no` for a stream: proxies must not buffer it."),
                ("Cache-Control" = String, description = "`no-cache` for a stream.")
            )),
        Problems
    )
)]
pub(crate) async fn list_events(
    Call(app, caller, NoPlace, query): Call<NoPlace, EventQuery>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    if wants_stream(&headers) {
        return stream(&app, &caller, query, sse::last_event(&headers)?).await;
    }
    let _turn = app.page_turn().await;
    let (after, limit) = (query.after.unwrap_or(EventId(0)), query.limit);
    let head = app.store.place_events().await?;
    let filter = query.filter(&app, &caller).await?;
    let page = app.store.feed(&caller.viewer(), &filter, after.0, head, limit).await?;
    let next = EventId(page.through).to_string();
    let link = page.more.then(|| link::next(&uri, "after", &next)).flatten();
    let events = page.events.into_iter().map(EventView::from).collect();
    Ok(listed(Json(EventPageView { events, next_after: next }), link))
}

/// A page of events with the link to the next page.
pub(crate) fn listed(page: impl IntoResponse, link: Link) -> Response {
    ([(header::VARY, HeaderValue::from_static("accept"))], link, page).into_response()
}

async fn stream(
    app: &App,
    caller: &Caller,
    query: EventQuery,
    last: Option<EventId>,
) -> Result<Response, Problem> {
    let permit = Permit::to_watch(app, "all")?;
    // Events until now are not part of the stream, even if no reader has placed them yet.
    let head = EventId(app.store.place_events().await?);
    let after = last.or(query.after).unwrap_or(head);
    let start = Start { after: after.min(head), seq: 0, is_reset: after > head };
    let filter = query.filter(app, caller).await?;
    let watcher = Watcher::new(app, Scope::All(caller.viewer()), filter, permit).await;
    Ok(watcher.respond(caller.standing, start, Outlook::Unchanged))
}

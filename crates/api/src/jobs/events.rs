//! `GET /jobs/{id}/events`: what happened to a job, in order.

use axum::{Json, extract::State};
use strum::{EnumString, IntoStaticStr};
use utoipa::{IntoParams, ToSchema};

use crate::{
    auth::Caller,
    extract::{FromQuery, JobInPath, Parameters, Query},
    problem::{Problem, problems},
    state::App,
    view::{EventListView, EventView},
};

problems!(Problems = SECURED, JobNotFound);

const DEFAULT_LIMIT: u32 = 100;
const MOST: u64 = 1000;

/// What an event is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, EnumString, IntoStaticStr, ToSchema)]
#[strum(serialize_all = "snake_case")]
#[schema(rename_all = "snake_case")]
enum EventKind {
    /// The job's status, phase or newest attempt has changed.
    Transition,
    /// A line of one of its status files.
    Status,
    /// From here on the job has written more lines than are kept.
    EventsTruncated,
    /// A Slurm job of its name that does not belong to its newest attempt was found, and is cancelled.
    Orphan,
}

/// Which events.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Range {
    /// Only events after this number: the `next_after` of the answer before.
    #[param(value_type = Option<u64>, default = 0)]
    after: u64,
    /// At most so many.
    #[param(value_type = Option<u32>, minimum = 1, maximum = 1000, default = 100)]
    limit: u32,
    /// Only events of this kind. May be repeated.
    #[param(value_type = Option<Vec<EventKind>>, style = Form, explode, inline)]
    kind: Vec<EventKind>,
}

impl FromQuery for Range {
    const KNOWN: &'static [&'static str] = &["after", "limit", "kind"];

    fn from_query(parameters: &Parameters) -> Result<Self, Problem> {
        let must = "must be one of transition, status, events_truncated, orphan";
        let kind = |text: &str| text.parse().map_err(|_| Problem::parameter("kind", "invalid", must));
        let limit = parameters.number("limit", 1, MOST)?;
        Ok(Self {
            after: parameters.number("after", 0, i64::MAX.unsigned_abs())?.unwrap_or(0),
            limit: limit.and_then(|limit| u32::try_from(limit).ok()).unwrap_or(DEFAULT_LIMIT),
            kind: parameters.all("kind").map(kind).collect::<Result<_, _>>()?,
        })
    }
}

/// Read a job's events
///
/// Every change of its status, phase or attempt and every line of its status files, oldest first, each once. To go on,
/// ask again with `after` set to `next_after`.
#[utoipa::path(
    get,
    path = "/jobs/{id}/events",
    tag = "jobs",
    operation_id = "get_job_events",
    params(("id" = domain::JobId, Path, description = "The job's id."), Range),
    security(("bearer" = [])),
    responses((status = 200, description = "The events.", body = EventListView), Problems)
)]
pub(crate) async fn get_job_events(
    State(app): State<App>,
    caller: Caller,
    JobInPath(id): JobInPath,
    Query(range): Query<Range>,
) -> Result<Json<EventListView>, Problem> {
    let job = super::find(&app, &caller, id).await?;
    let kinds: Vec<&str> = range.kind.iter().map(|kind| <&str>::from(*kind)).collect();
    let events = app.store.events(job.id, range.after, &kinds, range.limit).await?;
    Ok(Json(EventListView {
        job_id: job.id,
        next_after: events.last().map_or(range.after, |event| event.seq),
        events: events.into_iter().map(EventView::from).collect(),
    }))
}

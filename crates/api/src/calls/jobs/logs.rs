//! `GET /jobs/{id}/logs`: a part of a job's logs as it is, or all that comes as a stream of events.

use axum::{
    extract::State,
    http::HeaderMap,
    response::{IntoResponse, Response},
};

use crate::{
    auth::Caller,
    calls::clusters::is_there,
    http::{
        extract::{JobInPath, Query},
        sse::LAST_EVENT_ID,
    },
    problem::{Problem, problems},
    state::App,
};

mod cursor;
mod event;
mod follow;
mod pace;
mod pieces;
mod place;
mod read;
mod selection;
mod watched;

use cursor::Cursor;
pub(crate) use event::LogEvent;
use selection::{LogParameters, Selection};

problems!(
    Problems = SECURED,
    JobNotFound,
    AttemptNotFound,
    NoLogYet,
    LogUnreadable,
    ClusterGone,
    ClusterUnusable,
    ClusterUnavailable,
    LogsBusy
);

/// Read or follow a job's logs
///
/// Without `follow`: a part of the logs, its bytes as they are in the files, whatever they are. The `Range` header is
/// not heeded; `offset` and `limit` say the same. An answer may be shorter than `limit`: the next part begins at
/// `X-Log-Next-Offset`, and an empty part says that the log has no more now. Several logs come one after the other,
/// each on a new line; the logs of several tasks each under a line `==> policy/0.out <==`.
///
/// A log that is empty is an empty answer. A log that does not exist, because the job has not run yet or never ran, is
/// a 404 `no_log_yet` that says why.
///
/// With `follow=true`: server-sent events from the place that `tail` or `offset` says, or from the beginning, that go
/// on until the job has ended: `log` with the next bytes, `attempt` when the job was sent to Slurm once more and the
/// log of the next attempt begins, `reset` when a log was emptied or replaced and begins anew, `waiting`, `stale` and
/// `live` with a sentence why nothing comes, `end` after the last byte. The id of each event is the place after it,
/// `<attempt>;<file>=<offset>@<inode>`: with it in `Last-Event-ID` the stream goes on there and nothing comes twice.
/// A stream that stops without `end` is to be taken up again like that. After `end` the answer is 204.
#[utoipa::path(
    get,
    path = "/jobs/{id}/logs",
    tag = "jobs",
    operation_id = "get_job_logs",
    params(
        ("id" = domain::JobId, Path, description = "The job's id."),
        LogParameters,
        ("Last-Event-ID" = Option<String>, Header, description = "With `follow`: the id of the last event that was received. It is stronger than `attempt`, `tail` and `offset`.")
    ),
    security(("bearer" = ["read"])),
    responses(
        (status = 200, description = "The part; or, with `follow`, the events, the schema being that of the data of one.",
            content((String = "text/plain"), (LogEvent = "text/event-stream")),
            headers(
                ("X-Log-Attempt" = u32, description = "Which attempt wrote it."),
                ("X-Log-Size" = u64, description = "The size of the whole log (of several: of all of them), in bytes."),
                ("X-Log-Offset" = u64, description = "Where this part begins; of one log only."),
                ("X-Log-Next-Offset" = u64, description = "Where the next part begins; of one log only."),
                ("X-Content-Type-Options" = String, description = "`nosniff`: it is no page, whatever it looks like."),
                ("X-Accel-Buffering" = String, description = "`no`, of events: proxies are to pass them on at once."),
                ("Cache-Control" = String, description = "`private, no-store`; of events `no-cache`."),
                ("Vary" = String, description = "`accept`, of events.")
            )),
        (status = 204, description = "Everything was passed on before: `Last-Event-ID` is that of the `end`."),
        Problems
    )
)]
pub(crate) async fn get_job_logs(
    State(app): State<App>,
    caller: Caller,
    JobInPath(id): JobInPath,
    Query(selection): Query<Selection>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let job = super::find(&app, &caller, id).await?;
    is_there(&app, &job)?;
    if !selection.follow {
        return read::respond(&app, &job, &selection).await;
    }
    let cursor = last_event(&headers)?;
    let stream = follow::respond(&app, &caller, &job, selection, cursor).await?;
    Ok(stream.into_response())
}

/// An empty one is that of a client that has not received any.
fn last_event(headers: &HeaderMap) -> Result<Option<Cursor>, Problem> {
    let Some(id) = headers.get(LAST_EVENT_ID).filter(|id| !id.is_empty()) else { return Ok(None) };
    let cursor = id.to_str().ok().and_then(|id| id.parse().ok());
    let wrong =
        || Problem::parameter("Last-Event-ID", "invalid", "must be the id of an event of this stream");
    cursor.map(Some).ok_or_else(wrong)
}

//! `GET /jobs/{id}/logs`: a part of a job's logs, or all of them as a stream of events.

use axum::{
    http::HeaderMap,
    response::{IntoResponse, Response},
};

use crate::{
    calls::clusters::is_there,
    http::{
        extract::{Call, JobInPath},
        sse,
    },
    problem::{Problem, problems},
};

mod cursor;
mod event;
mod follow;
mod pace;
mod pieces;
mod place;
mod read;
pub(crate) mod search;
mod selection;
mod watched;

pub(crate) use event::LogEvent;
use selection::{LogParameters, Selection};

problems!(
    Problems = SECURED,
    JobNotFound,
    TaskNotFound,
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
/// Without `follow` the answer is a part of the logs, byte for byte. It can be shorter than `limit`: the next part begins at
/// `X-Log-Next-Offset`, and an empty part means that the log has no more bytes now. The `Range` header is ignored; use
/// `offset` and `limit`. Several logs follow one another, each on a new line; the logs of several tasks each have a heading
/// `==> policy/0.out <==`.
///
/// An empty log is an empty answer. A log that does not exist, because the job has not started or never ran, is a 404
/// `no_log_yet` with the reason.
///
/// With `follow=true` the answer is a stream of server-sent events from `tail`, `offset` or the beginning until the job
/// has finished: `log` with the next bytes, `attempt` when the log of a new attempt begins, `reset` when a log was truncated or
/// replaced and starts again, `waiting`, `stale` and `live` with the reason for a pause, `end` after the last byte. The
/// id of each event is the position after it, `<attempt>;<file>=<offset>@<inode>`. A client that reconnects with it in
/// `Last-Event-ID` continues there and gets no byte twice. Reconnect if the stream stops without `end`. After `end` the
/// answer is a 204.
#[utoipa::path(
    get,
    path = "/jobs/{id}/logs",
    params(
        ("id" = domain::JobId, Path, description = "The job's id."),
        LogParameters,
        ("Last-Event-ID" = Option<String>, Header, description = "With `follow`: the id of the last received event. It overrides `attempt`, `tail` and `offset`.")
    ),
    security(("bearer" = ["read"])),
    responses(
        (status = 200, description = "The part; or, with `follow`, a stream, where the schema describes the data of one event.",
            content((String = "text/plain"), (LogEvent = "text/event-stream")),
            headers(
    ("X-Log-Attempt" = u32, description = "The attempt that wrote the log."),
    ("X-Log-Size" = u64, description = "The total size of the selected logs, in bytes."),
    ("X-Log-Offset" = u64, description = "Where this part begins; for a single log only."),
    ("X-Log-Next-Offset" = u64, description = "Where the next part begins; for a single log only."),
    ("X-Content-Type-Options" = String, description = "`nosniff`: browsers must not interpret the content."),
    ("X-Accel-Buffering" = String, description = "`no` for a stream: proxies must not buffer it."),
    ("Cache-Control" = String, description = "`private, no-store`; for a stream `no-cache`."),
    ("Vary" = String, description = "`accept`, for a stream.")
                )),
                (status = 204, description = "`Last-Event-ID` is the id of the event `end`; no event follows."),
        Problems
    )
)]
pub(crate) async fn get_job_logs(
    Call(app, caller, JobInPath(id), selection): Call<JobInPath, Selection>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let job = super::find(&app, &caller, id).await?;
    is_there(&app, &job)?;
    let selection = selection.of(&job)?;
    if !selection.follow {
        return read::respond(&app, &job, &selection).await;
    }
    let cursor = sse::last_event(&headers)?;
    let stream = follow::respond(&app, &caller, &job, selection, cursor).await?;
    Ok(stream.into_response())
}

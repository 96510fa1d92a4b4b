//! `GET /jobs/{id}/logs`: a part of a log, read on the cluster, its bytes as they are.

use axum::{
    extract::State,
    http::{HeaderName, HeaderValue, header},
    response::{IntoResponse, Response},
};
use domain::{Job, JobPaths, Phase};
use slurm::LogFrom;
use strum::EnumString;
use tokio::{sync::SemaphorePermit, time::timeout};
use utoipa::{IntoParams, ToSchema};

use crate::{
    auth::Caller,
    extract::{FromQuery, JobInPath, Parameters, Query},
    log_source::{LogBytes, LogRequest},
    problem::{Kind, Problem, problems},
    state::App,
};

problems!(
    Problems = SECURED,
    BadRequest,
    InvalidParameter,
    JobNotFound,
    NoLogYet,
    ClusterUnavailable,
    LogsBusy
);

const SIZE: HeaderName = HeaderName::from_static("x-log-size");
const OFFSET: HeaderName = HeaderName::from_static("x-log-offset");

const DEFAULT_TAIL: u32 = 500;
const LONGEST_TAIL: u64 = 10_000;

/// Which log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, EnumString, ToSchema)]
#[strum(serialize_all = "lowercase")]
#[schema(rename_all = "lowercase")]
enum Stream {
    /// `main.out`.
    Out,
    /// `main.err`.
    Err,
    /// `main.out`, then `main.err`.
    All,
}

impl Stream {
    const fn files(self) -> &'static [&'static str] {
        match self {
            Self::Out => &["main.out"],
            Self::Err => &["main.err"],
            Self::All => &["main.out", "main.err"],
        }
    }
}

/// Which part of which log.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Part {
    /// Default: `all`; with `offset`, `out`.
    #[param(value_type = Option<Stream>, inline)]
    stream: Stream,
    /// The last so many lines of each. Default 500.
    #[param(value_type = Option<u32>, minimum = 1, maximum = 10_000)]
    tail: Option<u32>,
    /// From this byte on, of one stream. `X-Log-Offset` plus the length of an answer is where the next part begins.
    #[param(value_type = Option<u64>)]
    offset: Option<u64>,
    /// At most so many bytes; only with `offset`.
    #[param(value_type = Option<u64>, minimum = 1)]
    limit: Option<u64>,
}

impl FromQuery for Part {
    const KNOWN: &'static [&'static str] = &["stream", "tail", "offset", "limit"];

    fn from_query(parameters: &Parameters) -> Result<Self, Problem> {
        let stream: Option<Stream> = parameters.parse("stream", "one of out, err, all")?;
        let tail = parameters.number("tail", 1, LONGEST_TAIL)?;
        let offset = parameters.number("offset", 0, i64::MAX.unsigned_abs())?;
        let limit = parameters.number("limit", 1, i64::MAX.unsigned_abs())?;
        let contradiction = |name, detail: &str| Err(Problem::parameter(name, "contradiction", detail));
        if tail.is_some() && (offset.is_some() || limit.is_some()) {
            return contradiction("tail", "counts lines from the end; give it without offset and limit");
        }
        if limit.is_some() && offset.is_none() {
            return contradiction("limit", "counts bytes from an offset; give the offset too");
        }
        // Two files that both grow have no common place in bytes.
        if offset.is_some() && stream == Some(Stream::All) {
            return contradiction("offset", "is a place in one file; choose stream=out or stream=err");
        }
        let default = if offset.is_some() { Stream::Out } else { Stream::All };
        let tail = tail.and_then(|lines| u32::try_from(lines).ok());
        Ok(Self { stream: stream.unwrap_or(default), tail, offset, limit })
    }
}

impl Part {
    fn from(&self, most: u64) -> LogFrom {
        match self.offset {
            Some(offset) => LogFrom::Offset { offset, limit: self.limit.unwrap_or(most).min(most) },
            None => LogFrom::TailLines(self.tail.unwrap_or(DEFAULT_TAIL)),
        }
    }
}

/// Read a job's logs
///
/// A part of the newest attempt's log, its bytes as they are in the file.
#[utoipa::path(
    get,
    path = "/jobs/{id}/logs",
    tag = "jobs",
    operation_id = "get_job_logs",
    params(("id" = domain::JobId, Path, description = "The job's id."), Part),
    security(("bearer" = [])),
    responses(
        (status = 200, description = "The part.", content_type = "text/plain", body = String,
            headers(
                ("X-Log-Size" = u64, description = "The size of the whole log (of both, for `all`), in bytes."),
                ("X-Log-Offset" = u64, description = "Where this part begins; not for `all`.")
            )),
        Problems
    )
)]
pub(crate) async fn get_job_logs(
    State(app): State<App>,
    caller: Caller,
    JobInPath(id): JobInPath,
    Query(part): Query<Part>,
) -> Result<Response, Problem> {
    let job = super::find(&app, &caller, id).await?;
    let _turn = turn(&app).await?;
    let mut read = Vec::new();
    for file in part.stream.files() {
        read.extend(read_file(&app, &job, file, part.from(app.limits.log_bytes)).await?);
    }
    if read.is_empty() {
        return Err(Problem::new(Kind::NoLogYet, why_no_log(&job)));
    }
    Ok(answer(read, part.stream))
}

/// Waits for the right to read. A crowd of readers must neither queue up on a login host nor fill our memory.
async fn turn(app: &App) -> Result<SemaphorePermit<'_>, Problem> {
    let waited = timeout(app.limits.log_patience, app.log_turns().acquire()).await;
    waited.ok().and_then(Result::ok).ok_or_else(|| {
        let most = app.limits.log_reads;
        let detail = format!("{most} requests read logs already, which is the most at a time. Ask again.");
        Problem::unavailable(Kind::LogsBusy, detail)
    })
}

async fn read_file(app: &App, job: &Job, file: &str, from: LogFrom) -> Result<Option<LogBytes>, Problem> {
    let Some(attempt) = &job.attempt else { return Ok(None) };
    let Some(cluster) = app.cluster(&job.cluster) else {
        let detail =
            format!("The cluster `{}` is no longer configured, so its logs cannot be read.", job.cluster);
        return Err(Problem::unavailable(Kind::ClusterUnavailable, detail));
    };
    let paths = JobPaths::new(&attempt.job_dir, job.id).and_then(|paths| paths.log(attempt, file));
    let paths = paths.map_err(|error| {
        tracing::error!(%error, job.id = %job.id, "the paths of a job are not valid");
        Problem::internal()
    })?;
    let request = LogRequest { cluster: cluster.name.clone(), paths, from, max_bytes: app.limits.log_bytes };
    app.logs.read(request).await.map_err(|unavailable| {
        let detail = format!("The log cannot be read now: {}", unavailable.detail);
        Problem::unavailable(Kind::ClusterUnavailable, detail)
    })
}

fn answer(read: Vec<LogBytes>, stream: Stream) -> Response {
    let size: u64 = read.iter().map(|part| part.size).sum();
    let offset = read.first().filter(|_| stream != Stream::All).map(|part| part.start);
    let mut bytes = Vec::with_capacity(read.iter().map(|part| part.bytes.len()).sum());
    for part in read {
        // The first file may end within a line; the second must not go on in it.
        if bytes.last().is_some_and(|last| *last != b'\n') {
            bytes.push(b'\n');
        }
        bytes.extend(part.bytes);
    }
    let mut response = bytes.into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    // A log is anybody's text: no browser may take it for a page.
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-store"));
    headers.insert(SIZE, HeaderValue::from(size));
    if let Some(offset) = offset {
        headers.insert(OFFSET, HeaderValue::from(offset));
    }
    response
}

fn why_no_log(job: &Job) -> String {
    match (&job.attempt, job.phase) {
        (None, Phase::Ended) => "The job ended before it was sent to Slurm, so it never wrote a log.".to_owned(),
        (None, _) => "The job has not been sent to Slurm yet; it writes its log once it runs.".to_owned(),
        (Some(_), Phase::Ended) => {
            "The job has ended, and no log of its newest attempt is on the cluster: it never ran, or the log was removed."
                .to_owned()
        }
        (Some(_), _) => {
            format!("The newest attempt has not written a log yet; it will once it runs. Now: {}", job.message)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(bytes: &[u8]) -> LogBytes {
        LogBytes { size: 100, start: 7, bytes: bytes.to_vec() }
    }

    #[test]
    fn one_stream_says_where_its_part_begins() {
        let response = answer(vec![chunk(b"x")], Stream::Err);
        assert_eq!(response.headers()[SIZE], "100");
        assert_eq!(response.headers()[OFFSET], "7");
    }

    #[test]
    fn both_streams_have_a_size_and_no_place() {
        let response = answer(vec![chunk(b"x"), chunk(b"y")], Stream::All);
        assert_eq!(response.headers()[SIZE], "200");
        assert!(!response.headers().contains_key(OFFSET));
    }
}

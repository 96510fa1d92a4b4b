//! `get_status`: how a job is, at once or at its next change.

use std::time::Duration;

use axum::http::{HeaderValue, StatusCode, header};
use loopback::{Api, Query};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::{Refused, answer::Of};
use crate::client::{JOB_STATUS, JobStatus};

pub(super) const ABOUT: &str = "Returns a job's status, what happens now and why, its progress, and why it waits. With wait_seconds the \
    answer comes when the status or the phase changes, or after that time. A job with Done, Error or Canceled has ended.";

/// Clients give up after a minute.
const LONGEST_WAIT: u64 = 50;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// The id of the job.
    job_id: String,
    /// How long to wait for a change of the status: 0 to 50.
    #[serde(default)]
    #[schemars(range(min = 0, max = 50))]
    wait_seconds: u64,
    /// The status that you know. With `wait_seconds` the answer comes at once if the job has another one already.
    known_status: Option<String>,
}

/// The status of a job.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Seen {
    pub(super) job: JobStatus,
    /// Whether the job has ended.
    pub(super) ended: bool,
    /// Whether the status or the phase changed during the wait.
    changed: bool,
}

impl Seen {
    pub(super) fn new(job: JobStatus) -> Self {
        Self { ended: is_final(&job), changed: false, job }
    }
}

pub(super) fn is_final(job: &JobStatus) -> bool {
    matches!(job.status.as_str(), "Done" | "Error" | "Canceled")
}

/// The status, and what its version is called.
async fn read(
    api: &Api,
    id: &str,
    query: &Query,
) -> Result<Option<(JobStatus, Option<HeaderValue>)>, Refused> {
    let answer = api.exchange(&JOB_STATUS, &[id], query, None).await?;
    if answer.status == StatusCode::NOT_MODIFIED {
        return Ok(None);
    }
    Ok(Some((answer.json(&JOB_STATUS)?, answer.headers.get(header::ETAG).cloned())))
}

pub(super) async fn run(api: Api, arguments: Arguments) -> Result<Of<Seen>, Refused> {
    let Arguments { job_id, wait_seconds, known_status } = arguments;
    if wait_seconds > LONGEST_WAIT {
        return Err(Refused::arguments("wait_seconds is more than 50"));
    }
    let until = Instant::now() + Duration::from_secs(wait_seconds);
    let first = read(&api, &job_id, &Query::new()).await?;
    let (mut job, mut version) = first.ok_or_else(|| Refused::from(loopback::Failure::Unreadable))?;
    let (status, phase) = (job.status.clone(), job.phase.clone());
    let is_known = known_status.is_none_or(|known| known.eq_ignore_ascii_case(status.as_str()));
    while is_known && !is_final(&job) && (&job.status, &job.phase) == (&status, &phase) {
        let left = until.saturating_duration_since(Instant::now()).as_secs();
        let Some(known) = version.clone().filter(|_| left > 0) else { break };
        let waiting = api.clone().with(header::IF_NONE_MATCH, known);
        let Some(newer) = read(&waiting, &job_id, &Query::new().with("wait", left)).await? else { break };
        (job, version) = newer;
    }
    let changed = !is_known || (&job.status, &job.phase) != (&status, &phase);
    let seen = Seen { changed, ..Seen::new(job) };
    Ok(Of::new(said(&seen), &seen))
}

pub(super) fn said(seen: &Seen) -> String {
    let (id, status) = (seen.job.id.as_str(), seen.job.status.as_str());
    let next = match status {
        "Error" => " Call explain_job for the cause.",
        "Done" => " It succeeded.",
        "Canceled" => "",
        _ if seen.job.stale => " The cluster has not answered for some time, so this may be old.",
        "Pending" => " It waits; explain_job says why.",
        _ => " It has not ended.",
    };
    format!("The job {id} is {status}, in attempt {}.{next}", seen.job.attempt)
}

//! `cancel_job`.

use loopback::{Api, Query};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{Refused, answer::Of, status::Seen};
use crate::client::CANCEL_JOB;

pub(super) const ABOUT: &str = "Cancels a job, or some tasks of its array. The job is Canceling until the cluster confirms it. The call can \
    be repeated; a job that has ended stays as it is. A canceled job does not go on: ask your user first.";

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// The id of the job.
    job_id: String,
    /// Only these tasks of the job's array: numbers such as `3,7-9`, or `pending` or `running`.
    tasks: Option<String>,
}

/// The job after the call.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Canceled {
    #[serde(flatten)]
    seen: Seen,
}

pub(super) async fn cancel(api: Api, arguments: Arguments) -> Result<Of<Canceled>, Refused> {
    let body = arguments.tasks.map(|tasks| json!({"tasks": tasks}));
    let job = api.call(&CANCEL_JOB, &[&arguments.job_id], &Query::new(), body.as_ref()).await?;
    let seen = Seen::new(job);
    let (id, status) = (seen.job.id.as_str(), seen.job.status.as_str());
    let said = if seen.ended && status != "Canceled" {
        format!("The job {id} had ended with {status}, so nothing was canceled.")
    } else {
        format!("The cancellation is stored. The job {id} is {status}.")
    };
    Ok(Of::new(said, &Canceled { seen }))
}

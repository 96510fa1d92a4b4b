//! `retry_job`: the same job again, or a new one like it with changes.

use loopback::{Api, NOT_COPIED, Query, request_like, shown_in_part};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::{Refused, answer::Of, changes, status::Seen, submit};
use crate::{
    client::{GET_JOB, RETRY_JOB},
    text::Text,
};

pub(super) const ABOUT: &str = "Runs a job that ended in Error or Canceled again. Without changes the same job goes again in a new attempt, \
    with its checkpoints. With changes, such as more memory, a new job like it is stored, with an id of its own; use dry_run=true first. The \
    same call never makes a second job.";

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// The id of the job.
    job_id: String,
    #[schemars(schema_with = "super::job::changes")]
    #[serde(default)]
    changes: Map<String, Value>,
    /// With `changes`: whether to check the new job only.
    #[serde(default)]
    dry_run: bool,
    /// Without `changes`: only these tasks of the job's array, `failed`, `canceled` or numbers.
    tasks: Option<String>,
    /// Without `changes`: the values of the job's secret variables, which were deleted when it ended.
    #[serde(default)]
    secret_env_vars: Map<String, Value>,
    /// A text of your own for this retry. Default: with changes, one that follows from the job and the changes.
    idempotency_key: Option<String>,
}

/// The job that goes again.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Retried {
    /// The id to follow; null for a dry run.
    job_id: Option<Text<64>>,
    /// Whether it is another job than the one before.
    is_new_job: bool,
    /// The same job after the call; null for a new one.
    same_job: Option<Seen>,
    /// The new job, or what it would be; null for the same job.
    new_job: Option<submit::Submitted>,
}

pub(super) async fn run(api: Api, arguments: Arguments) -> Result<Of<Retried>, Refused> {
    if arguments.changes.is_empty() {
        if arguments.dry_run {
            return Err(Refused::arguments("dry_run needs changes: a retry without them checks nothing"));
        }
        return again(&api, arguments).await;
    }
    if arguments.tasks.is_some() || !arguments.secret_env_vars.is_empty() {
        let message = "tasks and secret_env_vars go with a retry of the same job; put them into changes";
        return Err(Refused::arguments(message));
    }
    like(&api, arguments).await
}

async fn again(api: &Api, arguments: Arguments) -> Result<Of<Retried>, Refused> {
    let api = match &arguments.idempotency_key {
        Some(key) => submit::keyed(api, key)?,
        None => api.clone(),
    };
    let mut body = Map::new();
    body.extend(arguments.tasks.map(|tasks| ("tasks".to_owned(), json!(tasks))));
    if !arguments.secret_env_vars.is_empty() {
        body.insert("secret_env_vars".to_owned(), Value::Object(arguments.secret_env_vars));
    }
    let job = api.call(&RETRY_JOB, &[&arguments.job_id], &Query::new(), Some(&Value::Object(body))).await?;
    let said =
        format!("The job {} goes again under the same id. Follow it with get_status.", job.id.as_str());
    let id = job.id.clone();
    let data = Retried { job_id: Some(id), is_new_job: false, same_job: Some(Seen::new(job)), new_job: None };
    Ok(Of::new(said, &data))
}

async fn like(api: &Api, arguments: Arguments) -> Result<Of<Retried>, Refused> {
    let job: Value = api.get(&GET_JOB, &[&arguments.job_id], &Query::new()).await?;
    if !matches!(job["status"].as_str(), Some("Error" | "Canceled" | "Done")) {
        let message = "The job has not ended. A second one like it would run beside it.";
        return Err(Refused::new("wrong_state", message, "Wait until it has ended, or cancel it first."));
    }
    let is_given = |name: &&str| arguments.changes.contains_key(*name);
    let lost: Vec<_> = shown_in_part(&job).filter(|name| !is_given(name)).collect();
    if !lost.is_empty() {
        let message =
            format!("The service does not return these fields of the job in full: {}.", lost.join(", "));
        let what = "Give them in changes, null to leave one out; or send the whole job with submit_job.";
        return Err(Refused::new("not_in_full", &message, what));
    }
    let key = arguments.idempotency_key.unwrap_or_else(|| key(&arguments.job_id, &arguments.changes));
    let mut request = request_like(&job);
    changes::merge(&mut request, arguments.changes);
    // The same changes in another order are the same request.
    let request = changes::sorted(request);
    let new = if arguments.dry_run {
        submit::check(api, &request, false).await?
    } else {
        submit::store(api, &request, &key).await?
    };
    let said = match &new.job_id {
        Some(id) => {
            format!(
                "The new job {} is stored. Follow it with get_status. {NOT_COPIED} Give them in changes.",
                id.as_str()
            )
        }
        None => format!(
            "The new job is valid, and nothing was stored. Call the tool again without dry_run to run it. {NOT_COPIED} Give them in changes."
        ),
    };
    let data = Retried { job_id: new.job_id.clone(), is_new_job: true, same_job: None, new_job: Some(new) };
    Ok(Of::new(said, &data))
}

/// The same retry has the same key, so a repeated call makes no second job.
fn key(id: &str, changed: &Map<String, Value>) -> String {
    let text = changes::sorted(json!([id.to_ascii_lowercase(), changed])).to_string();
    let hash = Sha256::digest(text.as_bytes());
    let part = hash.first_chunk().copied().map_or(0, u128::from_be_bytes);
    format!("retry-{part:032x}")
}

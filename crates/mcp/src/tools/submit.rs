//! `submit_job`: what a job would be, or the job itself.

use axum::http::{HeaderName, HeaderValue};
use loopback::{Api, Query};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Refused, answer::Of};
use crate::{
    client::{CREATE_JOB, Job, Live, VALIDATE_JOB, Validation, Warning},
    text::{Few, Text},
};

pub(super) const ABOUT: &str = "Checks a job and returns what would run, with warnings and the batch script. By default nothing is \
    stored (dry_run=true). With dry_run=false and an idempotency_key the job is stored and will run: the same key with the same job never \
    makes a second one, so repeat the call after a lost answer.";

const REPLAYED: &str = "idempotency-replayed";

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    #[schemars(schema_with = "super::job::schema")]
    job: Map<String, Value>,
    /// Whether to check only. With false the job is stored and uses the cluster.
    #[serde(default = "yes")]
    dry_run: bool,
    /// A text of your own for this submission, such as `train-clip-2026-11-28-1`. Needed with `dry_run` of false.
    idempotency_key: Option<String>,
    /// With `dry_run`: also ask the cluster whether sbatch would accept the job, and whether its files exist. It takes seconds.
    #[serde(default)]
    ask_cluster: bool,
}

const fn yes() -> bool {
    true
}

/// What was stored, or would be.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Submitted {
    pub(super) dry_run: bool,
    /// The id of the stored job; null for a dry run.
    pub(super) job_id: Option<Text<64>>,
    /// Whether an earlier call with this key stored the job.
    pub(super) stored_before: bool,
    /// The job with all defaults.
    pub(super) job: Job,
    /// How often sbatch is called; null for a stored job.
    submissions: Option<u32>,
    /// Settings that may be mistakes.
    warnings: Few<Warning, 20>,
    /// The beginning of the batch script; null for a stored job.
    batch_script: Option<Text<6000>>,
    /// What the cluster says; null if it was not asked.
    live: Option<Live>,
}

pub(super) async fn run(api: Api, arguments: Arguments) -> Result<Of<Submitted>, Refused> {
    let request = Value::Object(arguments.job);
    if arguments.dry_run {
        let checked = check(&api, &request, arguments.ask_cluster).await?;
        return Ok(Of::new(said(&checked), &checked));
    }
    let key = arguments.idempotency_key.ok_or_else(|| {
        let message = "dry_run=false needs an idempotency_key, so that a repeated call makes no second job.";
        Refused::new(
            "invalid_arguments",
            message,
            "Choose a text for this submission, and call the tool again.",
        )
    })?;
    let stored = store(&api, &request, &key).await?;
    Ok(Of::new(said(&stored), &stored))
}

/// What would run.
pub(super) async fn check(api: &Api, request: &Value, ask_cluster: bool) -> Result<Submitted, Refused> {
    let query = Query::new().with_if("live", ask_cluster.then_some("true"));
    let validation = api.call(&VALIDATE_JOB, &[], &query, Some(request)).await?;
    let Validation { job, batch_script, submissions, warnings, live } = validation;
    Ok(Submitted {
        dry_run: true,
        job_id: None,
        stored_before: false,
        job,
        submissions: Some(submissions),
        warnings,
        batch_script: Some(batch_script),
        live,
    })
}

/// The API with a key for one change.
pub(super) fn keyed(api: &Api, key: &str) -> Result<Api, Refused> {
    let value = HeaderValue::from_str(key)
        .map_err(|_| Refused::arguments("idempotency_key has characters that a header cannot have"))?;
    Ok(api.clone().with(HeaderName::from_static("idempotency-key"), value))
}

/// Stores the job.
pub(super) async fn store(api: &Api, request: &Value, key: &str) -> Result<Submitted, Refused> {
    let answer = keyed(api, key)?.exchange(&CREATE_JOB, &[], &Query::new(), Some(request)).await?;
    let job = answer.json(&CREATE_JOB)?;
    Ok(Submitted {
        dry_run: false,
        job_id: Some(job.id.clone()),
        stored_before: answer.headers.contains_key(REPLAYED),
        job,
        submissions: None,
        warnings: Vec::new().into(),
        batch_script: None,
        live: None,
    })
}

pub(super) fn said(submitted: &Submitted) -> String {
    let Some(id) = &submitted.job_id else {
        let warnings = submitted.warnings.items.len() + submitted.warnings.more;
        let refused = submitted
            .live
            .as_ref()
            .is_some_and(|live| !live.accepted || !live.missing_paths.items.is_empty());
        let cluster = if refused { " The cluster would not run it: read `live`." } else { "" };
        return format!(
            "The job is valid, and nothing was stored. It has {warnings} warnings.{cluster} To run it, call the tool again with \
             dry_run=false and an idempotency_key."
        );
    };
    let before = if submitted.stored_before { " by an earlier call with this key" } else { "" };
    format!("The job {} is stored{before}. Follow it with get_status.", id.as_str())
}

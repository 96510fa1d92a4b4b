//! `POST /jobs/validate`: the checks of `POST /jobs` without storing anything.

use axum::Json;
use domain::{DEFAULT_MAX_ARRAY_SIZE, JobRequest, Note, Warning, plan_submission};
use remote::{TestOnly, TestOnlyAnswer, TestVerdict};
use serde::Serialize;
use slurm::{RemotePath, TaskSet};
use utoipa::ToSchema;

use super::accept::{Accepted, accept, needs_unknown};
use crate::{
    calls::clusters::unavailable,
    http::extract::{Body, Call, FromQuery, NoPlace, Parameters},
    problem::{Problem, problems},
    view::{Freshness, JobView, Surroundings},
};

problems!(Problems = SECURED | BODY, ClusterBusy, ClusterUnavailable);

/// The result of a validation.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ValidationView {
    /// The job that the request would create, with all defaults. Secrets appear by name only.
    pub job: JobView,
    /// The batch script of the first attempt. It contains no secrets.
    pub batch_script: String,
    /// How many times sbatch is called: once for each part of an array that fits Slurm's `MaxArraySize`.
    pub submissions: u32,
    /// Accepted settings that may be mistakes.
    pub warnings: Vec<Note>,
    /// The cluster's checks; null unless `live=true`.
    pub live: Option<LiveView>,
}

/// The cluster's checks of a job that was not submitted.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LiveView {
    /// Whether `sbatch --test-only` accepts the batch script.
    pub accepted: bool,
    /// The output of sbatch: when and where the job would start, or why it would not.
    pub sbatch_output: String,
    /// Required paths that do not exist. The job would end in `Error`.
    pub missing_paths: Vec<String>,
    /// Paths that the file system did not report in time.
    pub unknown_paths: Vec<String>,
}

impl From<TestOnlyAnswer> for LiveView {
    fn from(answer: TestOnlyAnswer) -> Self {
        let (accepted, sbatch_output) = match answer.script {
            Some(TestVerdict::Accepted(output)) => (true, output),
            Some(TestVerdict::Refused(failure)) => (false, failure.excerpt),
            None => (false, "sbatch printed nothing".to_owned()),
        };
        let texts = |paths: Vec<RemotePath>| paths.iter().map(ToString::to_string).collect();
        let (missing_paths, unknown_paths) = (texts(answer.missing), texts(answer.unknown));
        Self { accepted, sbatch_output, missing_paths, unknown_paths }
    }
}

/// Whether to check against the cluster too.
#[derive(Debug)]
pub(crate) struct ValidateQuery {
    live: bool,
}

impl FromQuery for ValidateQuery {
    const KNOWN: &'static [&'static str] = &["live"];

    fn from_query(parameters: &Parameters) -> Result<Self, Problem> {
        Ok(Self { live: parameters.parse("live", "`true` or `false`")?.unwrap_or(false) })
    }
}

/// Validate a job
///
/// Runs every check of `POST /jobs`, stores nothing, and returns the job that the request would create. With `live=true` the
/// cluster also checks the script and the required paths, which takes seconds.
#[utoipa::path(
    post,
    path = "/jobs/validate",
    params(("live" = Option<bool>, Query, description = "Also check against the cluster. Default: false.")),
    request_body = JobRequest,
    security(("bearer" = ["write"])),
    responses((status = 200, description = "The request is valid.", body = ValidationView), Problems)
)]
pub(crate) async fn validate_job(
    Call(app, caller, NoPlace, ValidateQuery { live }): Call<NoPlace, ValidateQuery>,
    Body(sent): Body<JobRequest>,
) -> Result<Json<ValidationView>, Problem> {
    let viewer = caller.viewer();
    let named = sent.value.id.is_some();
    let Accepted { mut job, secrets, cluster, .. } = accept(&app, caller, sent).await?;
    let unknown = app.store.unknown_needs(&job).await?;
    if !unknown.is_empty() {
        return Err(needs_unknown(&unknown));
    }
    let mut warnings = job.spec.warnings(&cluster);
    if named && app.store.find_job(job.id, &viewer).await?.is_some() {
        warnings.push(Warning::new(
            "/id",
            "id_exists",
            "a job with this id exists: the request that created it would return that job, any other request is refused",
        ));
    }
    let defect = |error: &dyn std::fmt::Display| {
        tracing::error!(error = %error, "cannot write a valid request as files");
        Problem::internal()
    };
    let known = app.partitions().await?;
    let reported = known.get(&cluster.name).and_then(|known| known.max_array_size);
    let max_array_size = reported.unwrap_or(DEFAULT_MAX_ARRAY_SIZE);
    let mut attempt =
        job.new_attempt(cluster.base_dir.clone(), job.created_at).map_err(|error| defect(&error))?;
    let mut first = job.clone();
    if let Some(array) = &mut first.array {
        // Tasks that wait for tasks of other jobs are shown, too.
        array.release(&array.open(), &TaskSet::default());
    }
    first.assign_tasks(&mut attempt, max_array_size);
    let submission = plan_submission(&job, &attempt, &cluster, &secrets).map_err(|error| defect(&error))?;
    let script = submission.files.iter().find(|file| file.path == submission.script_path);
    let batch_script =
        script.map(|file| String::from_utf8_lossy(&file.bytes).into_owned()).unwrap_or_default();
    "The request is valid; nothing was stored.".clone_into(&mut job.message);
    let live = if live {
        let command = TestOnly { script: Some(batch_script.clone()), paths: submission.inputs };
        let answer = app.ops.test_only(&cluster.name, command).await;
        Some(LiveView::from(answer.map_err(|error| unavailable(&cluster, error))?))
    } else {
        None
    };
    let around = Surroundings { cluster: Some(&cluster), freshness: Freshness::default(), earlier: &[] };
    Ok(Json(ValidationView {
        job: JobView::new(&job, around),
        batch_script,
        submissions: job.spec.submissions(max_array_size),
        warnings: warnings.into_iter().map(Note::from).chain(job.spec.notes.iter().cloned()).collect(),
        live,
    }))
}

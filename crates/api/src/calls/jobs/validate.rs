//! `POST /jobs/validate`: everything that `POST /jobs` would say of a request, and nothing stored.

use axum::{Json, extract::State};
use domain::{JobRequest, Warning, plan_submission};
use remote::{TestOnly, TestOnlyAnswer, TestVerdict};
use serde::Serialize;
use slurm::RemotePath;
use utoipa::ToSchema;

use super::accept::{Accepted, accept};
use crate::{
    auth::Caller,
    calls::clusters::unavailable,
    http::extract::{Body, FromQuery, Parameters, Query},
    problem::{Problem, problems},
    state::App,
    view::{Freshness, JobView, Surroundings},
};

problems!(
    Problems = SECURED,
    MalformedJson,
    BodyTooLarge,
    RequestTimeout,
    UnsupportedMediaType,
    InvalidRequest,
    TooDeep,
    ClusterBusy,
    ClusterUnavailable
);

/// What a request would become.
#[derive(Debug, Serialize, ToSchema)]
pub struct ValidationView {
    /// The job as sending the request would answer it, with every default filled in. Of secrets there are names only.
    pub job: JobView,
    /// The batch script of its first attempt. It holds no secret.
    pub batch_script: String,
    /// What is allowed and may not be what was meant.
    pub warnings: Vec<WarningView>,
    /// What the cluster says; null when it was not asked (`live=true`).
    pub live: Option<LiveView>,
}

/// What the cluster says to a job that was not submitted.
#[derive(Debug, Serialize, ToSchema)]
pub struct LiveView {
    /// Whether `sbatch --test-only` takes the batch script.
    pub accepted: bool,
    /// What it says: when and where the job would start, or why it would not.
    pub sbatch: String,
    /// Paths that must be there and are not.
    pub missing: Vec<String>,
    /// Paths that the file system did not tell about in time.
    pub unknown: Vec<String>,
}

impl From<TestOnlyAnswer> for LiveView {
    fn from(answer: TestOnlyAnswer) -> Self {
        let (accepted, sbatch) = match answer.script {
            Some(TestVerdict::Accepted(said)) => (true, said),
            Some(TestVerdict::Refused(failure)) => (false, failure.excerpt),
            None => (false, "sbatch said nothing".to_owned()),
        };
        let texts = |paths: Vec<RemotePath>| paths.iter().map(ToString::to_string).collect();
        Self { accepted, sbatch, missing: texts(answer.missing), unknown: texts(answer.unknown) }
    }
}

/// Whether the cluster is asked too.
#[derive(Debug)]
pub(crate) struct Asked {
    live: bool,
}

impl FromQuery for Asked {
    const KNOWN: &'static [&'static str] = &["live"];

    fn from_query(parameters: &Parameters) -> Result<Self, Problem> {
        Ok(Self { live: parameters.parse("live", "`true` or `false`")?.unwrap_or(false) })
    }
}

/// Something that is allowed and may not be what was meant.
#[derive(Debug, Serialize, ToSchema)]
pub struct WarningView {
    /// JSON pointer to the field of the request.
    pub pointer: String,
    /// Stable name of the rule.
    pub code: String,
    /// What happens, and what would be otherwise.
    pub detail: String,
}

impl From<Warning> for WarningView {
    fn from(warning: Warning) -> Self {
        Self { pointer: warning.pointer, code: warning.code.to_owned(), detail: warning.detail }
    }
}

/// Validate a job
///
/// Makes every check of sending a job, stores nothing, and shows what the request would become. With `live=true` the
/// cluster is asked too, which takes seconds: whether Slurm would take the script, and whether the data are there.
#[utoipa::path(
    post,
    path = "/jobs/validate",
    tag = "jobs",
    operation_id = "validate_job",
    params(("live" = Option<bool>, Query, description = "Ask the cluster too. Default: false.")),
    request_body = JobRequest,
    security(("bearer" = ["write"])),
    responses((status = 200, description = "The request is valid.", body = ValidationView), Problems)
)]
pub(crate) async fn validate_job(
    State(app): State<App>,
    caller: Caller,
    Query(Asked { live }): Query<Asked>,
    Body(sent): Body<JobRequest>,
) -> Result<Json<ValidationView>, Problem> {
    let viewer = caller.viewer();
    let named = sent.value.id.is_some();
    let Accepted { mut job, secrets, cluster, .. } = accept(&app, caller, sent).await?;
    let mut warnings = job.spec.warnings(&cluster);
    if named && app.store.find_job(job.id, &viewer).await?.is_some() {
        warnings.push(Warning::new(
            "/id",
            "id_exists",
            "a job has this id: the request that made it would be answered with that job, any other one refused",
        ));
    }
    let defect = |error: &dyn std::fmt::Display| {
        tracing::error!(error = %error, "a valid request cannot be put into files");
        Problem::internal()
    };
    let attempt =
        job.new_attempt(cluster.base_dir.clone(), job.created_at).map_err(|error| defect(&error))?;
    let submission = plan_submission(&job, &attempt, &cluster, &secrets).map_err(|error| defect(&error))?;
    let script = submission.files.iter().find(|file| file.path == submission.script_path);
    let batch_script =
        script.map(|file| String::from_utf8_lossy(&file.bytes).into_owned()).unwrap_or_default();
    "Valid; nothing was stored.".clone_into(&mut job.message);
    let live = if live {
        let command = TestOnly { script: Some(batch_script.clone()), paths: job.spec.required_paths.clone() };
        let answer = app.ops.test_only(&cluster.name, command).await;
        Some(LiveView::from(answer.map_err(|error| unavailable(&cluster, error))?))
    } else {
        None
    };
    let around = Surroundings { cluster: Some(&cluster), freshness: Freshness::default(), earlier: &[] };
    Ok(Json(ValidationView {
        job: JobView::new(&job, around),
        batch_script,
        warnings: warnings.into_iter().map(WarningView::from).collect(),
        live,
    }))
}

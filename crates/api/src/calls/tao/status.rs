//! `GET /api/v1/internal/container_job:status`: where a job stands, asked by the directory of its results.

use axum::{Json, extract::State};
use domain::{Job, JobId, ResultsDir, Status};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::{
    auth::Caller,
    http::{
        extract::{FromQuery, Parameters, Query},
        layers,
    },
    problem::{Kind, Problem, problems},
    state::App,
};

problems!(Problems = SECURED, JobNotFound);

/// Where a job stands, as TAO reads it.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ContainerJobStatusView {
    /// The status that `/jobs/{id}/status` has, too.
    #[schema(value_type = String)]
    status: Status,
    /// The job's id.
    job_id: Uuid,
    /// What happens now, or how it ended and why.
    message: String,
}

impl From<Job> for ContainerJobStatusView {
    fn from(job: Job) -> Self {
        Self { status: job.status, job_id: job.id.get(), message: job.message }
    }
}

/// Which job is meant.
#[derive(Debug)]
pub(crate) struct Asked {
    results_dir: String,
}

impl FromQuery for Asked {
    const KNOWN: &'static [&'static str] = &["results_dir"];

    fn from_query(parameters: &Parameters) -> Result<Self, Problem> {
        match parameters.one("results_dir")? {
            Some(text) if !text.is_empty() => Ok(Self { results_dir: text.to_owned() }),
            _ => Err(Problem::parameter(
                "results_dir",
                "required",
                "is required: the `results_dir` of the job's specification",
            )),
        }
    }
}

/// Read a job's status as TAO does
///
/// Finds the newest job whose specification has this `results_dir`; without one, the job whose id is the last part
/// of it, as in `/results/<job id>`.
#[utoipa::path(
    get,
    path = "/api/v1/internal/container_job:status",
    tag = "tao",
    operation_id = "get_container_job_status",
    params(("results_dir" = String, Query, min_length = 1, description = "The `results_dir` of the job's specification.")),
    security(("bearer" = ["read"]), ("basic" = ["read"])),
    responses((status = 200, description = "The status.", body = ContainerJobStatusView), Problems)
)]
pub(crate) async fn get_container_job_status(
    State(app): State<App>,
    caller: Caller,
    Query(Asked { results_dir }): Query<Asked>,
) -> Result<Json<ContainerJobStatusView>, Problem> {
    let wanted = ResultsDir::new(&results_dir);
    let viewer = caller.viewer();
    let mut found = app.store.find_job_of_results_dir(&wanted.as_stored, &viewer).await?;
    if let (None, Some(id)) = (&found, wanted.id) {
        found = app.store.find_job(JobId::new(id), &viewer).await?;
    }
    let job = found.ok_or_else(|| {
        let shown: String = results_dir.chars().take(200).collect();
        Problem::new(Kind::JobNotFound, format!("There is no job whose results_dir is `{shown}`."))
    })?;
    layers::name_job(job.id);
    Ok(Json(job.into()))
}

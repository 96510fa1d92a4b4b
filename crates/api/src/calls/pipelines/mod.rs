//! The calls about pipelines, and what they share.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use domain::{Job, Pipeline, PipelineId};

use crate::{
    auth::Caller,
    http::extract::text_in_path,
    problem::{Kind, Problem},
    state::App,
};

pub(crate) mod control;
pub(crate) mod create;
pub(crate) mod read;

/// The pipeline in the path.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PipelineInPath(PipelineId);

impl FromRequestParts<App> for PipelineInPath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let text: String = text_in_path(parts, app).await?;
        text.parse().map(Self).map_err(|_| no_such_pipeline(&text))
    }
}

/// Also for pipelines of other owners: their existence is not revealed.
fn no_such_pipeline(id: &dyn std::fmt::Display) -> Problem {
    let shown: String = id.to_string().chars().take(40).collect();
    Problem::new(Kind::PipelineNotFound, format!("The pipeline `{shown}` does not exist."))
}

/// A pipeline that the caller may see, with its jobs.
async fn find(app: &App, caller: &Caller, id: PipelineId) -> Result<(Pipeline, Vec<Job>), Problem> {
    let pipeline = app.store.find_pipeline(id, &caller.viewer()).await?;
    let pipeline = pipeline.ok_or_else(|| no_such_pipeline(&id))?;
    Ok((pipeline, app.store.pipeline_jobs(id).await?))
}

/// The ids of the jobs of a pipeline that the caller may see.
pub(crate) async fn jobs_of(
    app: &App,
    caller: &Caller,
    id: PipelineId,
) -> Result<Vec<domain::JobId>, Problem> {
    let (_, jobs) = find(app, caller, id).await?;
    Ok(jobs.iter().map(|job| job.id).collect())
}

//! Pipelines, each with the jobs that were stored with it.

use std::collections::BTreeMap;

// `ToSchema` recognizes this type by its name only.
use chrono::{DateTime, Utc};
use domain::{Job, Need, Phase, Pipeline, PipelineCounts, Status};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

/// A pipeline in a list.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PipelineSummary {
    /// Its id.
    pub id: Uuid,
    /// Its display name.
    pub name: Option<String>,
    /// Its owner.
    pub owner: String,
    /// The labels from the request.
    pub labels: BTreeMap<String, String>,
    /// `Pending` until one of its jobs begins or ends, `Running` until all have ended; then `Error` if one has failed, `Canceled` if
    /// one was canceled or none is done, else `Done`.
    pub status: Status,
    /// How many of its jobs are in which state.
    pub jobs_by_status: PipelineCounts,
    /// When it was accepted.
    pub created_on: DateTime<Utc>,
}

/// A pipeline.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PipelineView {
    /// The fields of a list entry.
    #[serde(flatten)]
    pub summary: PipelineSummary,
    /// Its jobs, each after those that it needs. Deleted jobs are missing.
    pub jobs: Vec<PipelineJobView>,
}

/// A job of a pipeline.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PipelineJobView {
    /// Its name in the pipeline.
    pub name: String,
    /// Its id, for all other calls.
    pub id: Uuid,
    /// Its status.
    pub status: Status,
    /// The stage of its life.
    pub phase: Phase,
    /// What happens now, and why.
    pub message: String,
    /// Whether it was never submitted, because a job that it needs did not become what it waited for.
    pub skipped: bool,
    /// The jobs that it waits for.
    pub needs: Vec<Need>,
    /// When it began to run.
    pub started_on: Option<DateTime<Utc>>,
    /// When it ended.
    pub finished_on: Option<DateTime<Utc>>,
}

/// Pipelines, newest first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PipelineList {
    /// The pipelines of this page.
    pub pipelines: Vec<PipelineSummary>,
    /// The value of `page_token` for the next page; null on the last one.
    pub next_page_token: Option<String>,
}

impl PipelineSummary {
    pub(crate) fn new(pipeline: &Pipeline, counts: PipelineCounts) -> Self {
        Self {
            id: pipeline.id.get(),
            name: pipeline.name.as_ref().map(ToString::to_string),
            owner: pipeline.owner.to_string(),
            labels: pipeline.labels.clone(),
            status: counts.status(),
            jobs_by_status: counts,
            created_on: pipeline.created_at,
        }
    }
}

impl PipelineView {
    pub(crate) fn new(pipeline: &Pipeline, jobs: &[Job]) -> Self {
        Self {
            summary: PipelineSummary::new(pipeline, PipelineCounts::of(jobs)),
            jobs: jobs.iter().map(PipelineJobView::from).collect(),
        }
    }
}

impl From<&Job> for PipelineJobView {
    fn from(job: &Job) -> Self {
        Self {
            name: job.spec.pipeline.as_ref().map(|member| member.name.to_string()).unwrap_or_default(),
            id: job.id.get(),
            status: job.status,
            phase: job.phase,
            message: job.message.clone(),
            skipped: job.is_skipped,
            needs: job.spec.needs.clone(),
            started_on: job.started_at,
            finished_on: job.finished_at,
        }
    }
}

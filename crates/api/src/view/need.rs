//! What a job waits for, and the pipeline that it is part of.

use domain::{Need, NeedWhen, PipelineMember};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

/// A job that this one needs.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct NeedView {
    /// Names the variables about the other job: `NEEDS_<NAME>_DIR` and others.
    #[schema(example = "prep")]
    pub name: String,
    /// The id of the other job.
    pub job: Uuid,
    /// What is waited for.
    pub when: NeedWhen,
}

impl From<&Need> for NeedView {
    fn from(need: &Need) -> Self {
        Self { name: need.name.to_string(), job: need.job, when: need.when }
    }
}

/// The place of a job in a pipeline.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PipelineMemberView {
    /// The pipeline's id.
    pub id: Uuid,
    /// The job's name in the pipeline.
    pub name: String,
}

impl From<&PipelineMember> for PipelineMemberView {
    fn from(member: &PipelineMember) -> Self {
        Self { id: member.id, name: member.name.to_string() }
    }
}

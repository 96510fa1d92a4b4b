//! The pipeline that a job is part of.

use domain::PipelineMember;
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

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

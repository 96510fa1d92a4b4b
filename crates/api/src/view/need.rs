//! What a job waits for.

use domain::{Need, NeedWhen};
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

//! The orphans of a cluster: Slurm jobs with the service's job names that belong to no active attempt.

use chrono::{DateTime, Utc};
use domain::{JobId, Orphan, OrphanKind};
use serde::Serialize;
use utoipa::ToSchema;

/// The most orphans in a view.
const SHOWN: usize = 50;

/// The orphans that the last poll found.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct OrphansView {
    /// The number of orphans, at most 1000.
    pub count: usize,
    /// The oldest orphans, at most 50.
    pub jobs: Vec<OrphanView>,
}

/// A Slurm job with a name of this service that belongs to no active attempt.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct OrphanView {
    /// Its Slurm id.
    #[schema(example = "4711")]
    pub slurm_job_id: String,
    /// Its job name in Slurm.
    pub slurm_job_name: String,
    /// The job in its name.
    pub job_id: Option<JobId>,
    /// Why it is an orphan.
    pub kind: OrphanKind,
    /// Its state as Slurm reports it.
    #[schema(example = "RUNNING")]
    pub slurm_state: String,
    /// When it was first seen.
    pub first_seen_on: DateTime<Utc>,
    /// When its cancellation was last requested; null if it was not.
    pub cancel_sent_on: Option<DateTime<Utc>>,
    /// The explanation as a sentence.
    pub message: String,
}

impl OrphansView {
    pub(super) fn new(orphans: &[Orphan]) -> Self {
        Self { count: orphans.len(), jobs: orphans.iter().take(SHOWN).map(OrphanView::new).collect() }
    }
}

impl OrphanView {
    fn new(orphan: &Orphan) -> Self {
        Self {
            slurm_job_id: orphan.slurm_id.to_string(),
            slurm_job_name: orphan.name.to_string(),
            job_id: orphan.job(),
            kind: orphan.kind,
            slurm_state: orphan.state.clone(),
            first_seen_on: orphan.first_seen_at,
            cancel_sent_on: orphan.cancel_sent_at,
            message: orphan.sentence(),
        }
    }
}

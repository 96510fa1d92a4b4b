//! Slurm jobs with this service's job names that belong to no active attempt.

use chrono::{DateTime, Utc};
use domain::{JobId, Orphan};
use serde::Serialize;
use utoipa::ToSchema;

/// The most orphans in a view.
const SHOWN: usize = 50;

/// The orphans that the last poll found.
#[derive(Debug, Serialize, ToSchema)]
pub struct OrphansView {
    /// The number of orphans, at most 1000.
    pub count: usize,
    /// The oldest orphans, at most 50.
    pub jobs: Vec<OrphanView>,
}

/// A Slurm job with a name of this service that belongs to no active attempt.
#[derive(Debug, Serialize, ToSchema)]
pub struct OrphanView {
    /// Its Slurm id.
    #[schema(example = "4711")]
    pub slurm_job_id: String,
    /// Its job name in Slurm.
    pub slurm_job_name: String,
    /// The job in its name; null for an image conversion.
    pub job_id: Option<JobId>,
    /// Why it is an orphan.
    pub kind: OrphanKindView,
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

/// Why a Slurm job is an orphan, and what the service does about it.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum OrphanKindView {
    /// Its attempt is over. The service cancels it.
    Superseded,
    /// It is a second Slurm job of the active attempt. The service cancels it.
    Copy,
    /// Its job was deleted. The service cancels it.
    Deleted,
    /// Its attempt is newer than the database, which was restored. The service adopts it when the attempt is due.
    Newer,
    /// The database does not contain its job, which may belong to another service. It is left alone unless
    /// `cancel_unknown_jobs` is set.
    Unknown,
}

impl OrphansView {
    pub(crate) fn new(orphans: &[Orphan]) -> Self {
        Self { count: orphans.len(), jobs: orphans.iter().take(SHOWN).map(OrphanView::new).collect() }
    }
}

impl OrphanView {
    fn new(orphan: &Orphan) -> Self {
        Self {
            slurm_job_id: orphan.slurm_id.to_string(),
            slurm_job_name: orphan.name.to_string(),
            job_id: orphan.job(),
            kind: orphan.kind.into(),
            slurm_state: orphan.state.clone(),
            first_seen_on: orphan.first_seen_at,
            cancel_sent_on: orphan.cancel_sent_at,
            message: orphan.sentence(),
        }
    }
}

impl From<domain::OrphanKind> for OrphanKindView {
    fn from(kind: domain::OrphanKind) -> Self {
        match kind {
            domain::OrphanKind::Superseded => Self::Superseded,
            domain::OrphanKind::Copy => Self::Copy,
            domain::OrphanKind::Deleted => Self::Deleted,
            domain::OrphanKind::Newer => Self::Newer,
            domain::OrphanKind::Unknown => Self::Unknown,
        }
    }
}

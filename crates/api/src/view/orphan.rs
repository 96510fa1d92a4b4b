//! Slurm jobs with names of ours that nothing watches.

use chrono::{DateTime, Utc};
use domain::{JobId, Orphan};
use serde::Serialize;
use utoipa::ToSchema;

/// So many are shown.
const SHOWN: usize = 50;

/// What the last poll found.
#[derive(Debug, Serialize, ToSchema)]
pub struct OrphansView {
    /// How many there are; at most 1000 are counted.
    pub count: usize,
    /// The oldest of them, at most 50.
    pub jobs: Vec<OrphanView>,
}

/// A Slurm job that bears a name of ours and belongs to nothing that runs.
#[derive(Debug, Serialize, ToSchema)]
pub struct OrphanView {
    /// Its id in Slurm.
    #[schema(example = "4711")]
    pub slurm_job_id: String,
    /// Its name in Slurm.
    pub slurm_job_name: String,
    /// The job that its name speaks of; null for a conversion of an image.
    pub job_id: Option<JobId>,
    /// Why it is one.
    pub kind: OrphanKindView,
    /// Slurm's word for its state.
    #[schema(example = "RUNNING")]
    pub slurm_state: String,
    /// Since when it has been seen.
    pub first_seen_on: DateTime<Utc>,
    /// When its cancellation was last asked for; null while it was not.
    pub cancel_sent_on: Option<DateTime<Utc>>,
    /// The same in a sentence.
    pub message: String,
}

/// Why nothing watches it, and what is done about it.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum OrphanKindView {
    /// Its attempt is over. It is canceled.
    Superseded,
    /// It is a second Slurm job of the attempt that runs. It is canceled.
    Copy,
    /// Its job was deleted. It is canceled.
    Deleted,
    /// Its attempt is newer than the database, which was restored. It is adopted when its turn comes.
    Newer,
    /// The database has never heard of its job, which may be another service's. It is left alone, unless
    /// `cancel_unknown_jobs` says otherwise.
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

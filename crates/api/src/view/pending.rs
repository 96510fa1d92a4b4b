//! Why a job waits in Slurm's queue, in words.

// The macro of `ToSchema` knows a moment by this name only.
use chrono::{DateTime, Utc};
use domain::{Job, Phase, explain_wait};
use serde::Serialize;
use slurm::pending_reason::{Holder, Outlook};
use utoipa::ToSchema;

/// Why a job waits in Slurm's queue.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct PendingView {
    /// Slurm's own word for it, as in `pending_reason`; null before the first poll.
    #[schema(example = "QOSMaxGRESPerUser")]
    pub reason: Option<String>,
    /// What that means for the job; null for a word that nobody has explained.
    #[schema(
        example = "the running jobs of its user have all the GPUs or other generic resources that its QOS allows one"
    )]
    pub meaning: Option<String>,
    /// What keeps it from starting.
    pub held_by: Option<HolderView>,
    /// The limit that does, as `sacctmgr` or `scontrol show partition` calls it; null if it is none.
    #[schema(example = "MaxTRESPerUser=gres")]
    pub limit: Option<String>,
    /// What to do about it.
    pub advice: Option<String>,
    /// It does not start by waiting: somebody has to do something.
    pub needs_action: bool,
    /// Since when it is in the queue; after a requeue, since that.
    pub queued_on: Option<DateTime<Utc>>,
    /// When Slurm's scheduler expects to start it, if it says so. It changes its mind; small changes are not shown.
    pub estimated_start_on: Option<DateTime<Utc>>,
}

/// What keeps a job from starting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum HolderView {
    /// Jobs of higher priority.
    Priority,
    /// What it asks for is in use.
    Resources,
    /// Nodes that are broken, drained or promised to others.
    Nodes,
    /// A limit or the state of its partition.
    Partition,
    /// A limit of its QOS.
    Qos,
    /// A limit of its association: its account, or its user in that account.
    Association,
    /// Another job.
    Dependency,
    /// A time that has not come.
    Time,
    /// An advance reservation.
    Reservation,
    /// Licenses that are in use.
    Licenses,
    /// Somebody or something has put it on hold.
    Hold,
    /// What the job itself asks for.
    Request,
    /// Slurm is at work on it.
    Slurm,
}

impl PendingView {
    /// Nothing of a job that does not wait in Slurm's queue.
    pub(crate) fn of(job: &Job) -> Option<Self> {
        let attempt = job.attempt.as_ref().filter(|_| job.phase == Phase::InQueue)?;
        let known = explain_wait(job);
        let known = known.as_ref();
        let needs_action = known.is_some_and(|known| known.outlook != Outlook::Waits);
        Some(Self {
            reason: job.pending_reason.clone(),
            meaning: known.map(|known| known.meaning.to_string()),
            held_by: known.map(|known| known.holder.into()),
            limit: known.and_then(|known| known.limit.as_ref()).map(ToString::to_string),
            advice: known.map(|known| known.advice.to_owned()),
            needs_action,
            queued_on: attempt.queued_since.or(attempt.submitted_at),
            // What somebody has to act on does not start by itself: squeue goes on showing an estimate from before a hold.
            estimated_start_on: attempt.estimated_start.filter(|_| !needs_action),
        })
    }
}

impl From<Holder> for HolderView {
    fn from(holder: Holder) -> Self {
        match holder {
            Holder::Priority => Self::Priority,
            Holder::Resources => Self::Resources,
            Holder::Nodes => Self::Nodes,
            Holder::Partition => Self::Partition,
            Holder::Qos => Self::Qos,
            Holder::Association => Self::Association,
            Holder::Dependency => Self::Dependency,
            Holder::Time => Self::Time,
            Holder::Reservation => Self::Reservation,
            Holder::Licenses => Self::Licenses,
            Holder::Hold => Self::Hold,
            Holder::Request => Self::Request,
            Holder::Slurm => Self::Slurm,
        }
    }
}

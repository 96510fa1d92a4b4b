//! Why a job waits in Slurm's queue, or for other jobs.

// `ToSchema` recognizes this type by its name only.
use chrono::{DateTime, Utc};
use domain::{Job, Phase, explain_wait};
use serde::Serialize;
use slurm::pending_reason::{Holder, Outlook};
use utoipa::ToSchema;

/// Why a job waits in Slurm's queue, or for the jobs that it needs.
#[derive(Debug, Clone, Default, Serialize, ToSchema)]
pub(crate) struct PendingView {
    /// Slurm's reason, as in `pending_reason`; null before the first poll.
    #[schema(example = "QOSMaxGRESPerUser")]
    pub reason: Option<String>,
    /// What the reason means for the job; null for an unknown reason.
    #[schema(
        example = "the running jobs of its user have all the GPUs or other generic resources that its QOS allows one"
    )]
    pub meaning: Option<String>,
    /// What keeps it from starting.
    pub held_by: Option<Holder>,
    /// The exceeded limit, in the words of `sacctmgr` or `scontrol show partition`; null if the cause is not a limit.
    #[schema(example = "MaxTRESPerUser=gres")]
    pub limit: Option<String>,
    /// What to do about it.
    pub advice: Option<String>,
    /// Whether a person must act, because waiting does not start the job.
    pub needs_action: bool,
    /// When the job entered the queue; after a requeue, when it was requeued.
    pub queued_on: Option<DateTime<Utc>>,
    /// When Slurm's scheduler expects to start the job. Estimates change; small changes are not shown.
    pub estimated_start_on: Option<DateTime<Utc>>,
}

impl PendingView {
    /// None for a job that waits neither in Slurm's queue nor for other jobs.
    pub(crate) fn of(job: &Job, has_nodes: bool) -> Option<Self> {
        if job.phase == Phase::Waiting {
            return Some(Self::of_needs(job));
        }
        let attempt = job.attempt.as_ref().filter(|_| job.phase == Phase::InQueue)?;
        let known = explain_wait(job, has_nodes);
        let known = known.as_ref();
        let needs_action = known.is_some_and(|known| known.outlook != Outlook::Waits);
        Some(Self {
            reason: job.pending_reason.clone(),
            meaning: known.map(|known| known.meaning.to_string()),
            held_by: known.map(|known| known.holder),
            limit: known.and_then(|known| known.limit.as_ref()).map(ToString::to_string),
            advice: known.map(|known| known.advice.to_owned()),
            needs_action,
            queued_on: job.run.queued_since.or(attempt.submitted_at),
            // squeue keeps showing an estimate from before a hold; such a job does not start by itself.
            estimated_start_on: job.run.estimated_start.filter(|_| !needs_action),
        })
    }

    fn of_needs(job: &Job) -> Self {
        let (meaning, held_by) = (Some(job.message.clone()), Some(Holder::Dependency));
        Self { meaning, held_by, ..Self::default() }
    }
}

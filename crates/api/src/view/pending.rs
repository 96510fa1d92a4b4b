//! Why a job waits in Slurm's queue, or for other jobs.

// `ToSchema` recognizes this type by its name only.
use chrono::{DateTime, Utc};
use domain::{Job, Phase, explain_wait};
use serde::Serialize;
use slurm::pending_reason::{Holder, Outlook};
use utoipa::ToSchema;

/// Why a job waits in Slurm's queue, or for the jobs that it needs.
#[derive(Debug, Clone, Serialize, ToSchema)]
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
    #[schema(value_type = Option<HolderView>)]
    pub held_by: Option<&'static str>,
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

/// What keeps a job from starting.
#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
#[expect(dead_code, reason = "it documents the names of `slurm::pending_reason::Holder`")]
pub(crate) enum HolderView {
    /// Jobs with a higher priority.
    Priority,
    /// The requested resources are in use.
    Resources,
    /// Broken, drained or reserved nodes.
    Nodes,
    /// A limit or the state of the partition.
    Partition,
    /// A limit of the QOS.
    Qos,
    /// A limit of the association: an account, or a user in an account.
    Association,
    /// Another job.
    Dependency,
    /// A begin time in the future.
    Time,
    /// An advance reservation.
    Reservation,
    /// Licenses in use.
    Licenses,
    /// A hold by a user, an administrator or Slurm.
    Hold,
    /// The job's own request.
    Request,
    /// Slurm is working on the job.
    Slurm,
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
            held_by: known.map(|known| known.holder.into()),
            limit: known.and_then(|known| known.limit.as_ref()).map(ToString::to_string),
            advice: known.map(|known| known.advice.to_owned()),
            needs_action,
            queued_on: job.run.queued_since.or(attempt.submitted_at),
            // squeue keeps showing an estimate from before a hold; such a job does not start by itself.
            estimated_start_on: job.run.estimated_start.filter(|_| !needs_action),
        })
    }
}

impl PendingView {
    fn of_needs(job: &Job) -> Self {
        Self {
            reason: None,
            meaning: Some(job.message.clone()),
            held_by: Some(Holder::Dependency.into()),
            limit: None,
            advice: None,
            needs_action: false,
            queued_on: None,
            estimated_start_on: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Holder;
    use strum::IntoEnumIterator;

    #[test]
    fn the_document_lists_every_holder() {
        let document = crate::openapi();
        let names: Vec<&str> = Holder::iter().map(<&str>::from).collect();
        assert_eq!(document["components"]["schemas"]["HolderView"]["enum"], serde_json::json!(names));
    }
}

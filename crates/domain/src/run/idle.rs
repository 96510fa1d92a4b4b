//! The idle policy: what becomes of a run whose GPUs do nothing.

use std::fmt::Display;

use chrono::DateTime;

use crate::{
    clock::Timestamp,
    cluster::idle::{IdleAction, IdlePolicy},
    job::{run::Run, status::Phase, stored::DesiredState},
    run::task::Task,
};

/// Ends a run that has been idle for too long, if its policy is to cancel it. A task of an array cannot be paused, and is canceled too.
pub(super) fn watch(run: &mut Run, task: &Task<'_>) {
    let Some(policy) = task.idle_policy else { return };
    let ends = match policy.action {
        IdleAction::Cancel => true,
        IdleAction::Pause => task.is_of_array,
        IdleAction::Warn => false,
    };
    if ends && task.desired == DesiredState::Run && run.kill_reason.is_none() {
        run.kill_reason = due(run, policy).map(|why| format!("{why}."));
    }
}

/// Why a job is paused now, if its policy is to pause it.
pub(super) fn pauses(run: &Run, policy: Option<&IdlePolicy>) -> Option<String> {
    let policy = policy.filter(|policy| policy.action == IdleAction::Pause)?;
    Some(format!("{}; pausing the job. Resume it to go on from its checkpoints.", due(run, policy)?))
}

/// What the message of a running job says of idle GPUs, from half of the policy's time on.
pub(super) fn warning(run: &Run, policy: Option<&IdlePolicy>) -> Option<String> {
    let policy = policy?;
    let since = shown(idle_for(run, policy, 30)?);
    let then = match policy.action {
        IdleAction::Warn => String::new(),
        IdleAction::Pause => format!("; after {} min the job is paused", policy.minutes),
        IdleAction::Cancel => format!("; after {} min the job is canceled", policy.minutes),
    };
    Some(format!("No GPU has reached {} % since {since}{then}.", policy.below_percent))
}

/// What happened, if the GPUs have been idle for too long.
fn due(run: &Run, policy: &IdlePolicy) -> Option<String> {
    let since = shown(idle_for(run, policy, 60).filter(|_| run.phase() == Phase::Running)?);
    Some(format!("No GPU has reached {} % for {} min, since {since}", policy.below_percent, policy.minutes))
}

/// Since when the GPUs have been idle, if that is at least this many seconds for each minute of the policy.
fn idle_for(run: &Run, policy: &IdlePolicy, seconds: i64) -> Option<Timestamp> {
    let usage =
        run.usage.as_ref().filter(|usage| usage.idle_seconds() >= seconds * i64::from(policy.minutes))?;
    DateTime::from_timestamp(usage.idle_since?, 0)
}

fn shown(at: Timestamp) -> impl Display {
    at.format("%Y-%m-%d %H:%M:%S UTC")
}

#[cfg(test)]
mod tests;

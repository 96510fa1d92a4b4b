//! The next step of a job that is due.

use crate::{
    clock::Timestamp,
    job::{
        array::ArrayState,
        attempt::Attempt,
        run::Run,
        status::Phase,
        stored::{DesiredState, Job},
    },
    progress::status_files::CLOCKS_AGREE,
    run::{exclusion::relax_exclusions, graces::Graces},
};

/// The next step of a due job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Step {
    /// Nothing is on the cluster: end the job in the database.
    EndLocally,
    /// Nothing is on the cluster: pause the job in the database.
    PauseLocally,
    /// Look at the jobs that it waits for.
    AwaitNeeds,
    Submit,
    /// Look for a submission whose reply was lost.
    Locate,
    Cancel,
    /// Slurm has requeued it: find out why, and exclude nodes that failed.
    ExplainRequeue,
    /// It is pending and excludes nodes that it may use again.
    RelaxExclusions,
    /// Slurm reports it finished: collect its exit code and logs, and decide how it ended.
    Conclude,
    /// It has an array: conclude the runs that are over, and cancel those that it no longer wants.
    Tend,
    /// It is deleted: remove its files on the cluster, then the job.
    Purge,
    /// Nothing to do: the wake-up was for an earlier state.
    Rest,
}

/// The next step of a due job, from its phase and its desired state.
pub fn plan(job: &Job, graces: &Graces, now: Timestamp) -> Step {
    if let Some(array) = &job.array {
        return plan_array(job, array, now);
    }
    let attempt = job.attempt.as_ref();
    match (job.phase, job.desired) {
        (Phase::Finishing, _) => Step::Conclude,
        (Phase::SubmitUncertain, _) => Step::Locate,
        (Phase::Submitting, DesiredState::Cancel | DesiredState::Pause | DesiredState::Delete)
            if attempt.is_some_and(Attempt::is_uncertain) =>
        {
            Step::Locate
        }
        (Phase::Ended, DesiredState::Delete) => Step::Purge,
        (Phase::Running, DesiredState::Run) if released_at(&job.run, graces).is_some_and(|at| at <= now) => {
            Step::Cancel
        }
        (Phase::InQueue, DesiredState::Run) if job.has_unexplained_requeue() => Step::ExplainRequeue,
        (Phase::InQueue, DesiredState::Run) if relax_exclusions(job, &graces.retry, now).is_some() => {
            Step::RelaxExclusions
        }
        (Phase::Ended, _)
        | (Phase::InQueue | Phase::Running | Phase::Suspended, DesiredState::Run)
        | (Phase::Paused, DesiredState::Pause) => Step::Rest,
        (
            Phase::InQueue | Phase::Running | Phase::Suspended,
            DesiredState::Cancel | DesiredState::Pause | DesiredState::Delete,
        ) => Step::Cancel,
        (
            Phase::Waiting
            | Phase::Queued
            | Phase::ConvertingImage
            | Phase::Submitting
            | Phase::RetryWait
            | Phase::Paused,
            desired,
        ) => match desired {
            DesiredState::Run if job.phase == Phase::Waiting => Step::AwaitNeeds,
            DesiredState::Run => Step::Submit,
            DesiredState::Pause => Step::PauseLocally,
            DesiredState::Cancel | DesiredState::Delete => Step::EndLocally,
        },
    }
}

/// The next step of a job with an array: it tends its tasks while it submits no piece.
fn plan_array(job: &Job, array: &ArrayState, now: Timestamp) -> Step {
    let is_uncertain = job.attempt.as_ref().is_some_and(Attempt::is_uncertain);
    match (job.phase, job.desired) {
        (Phase::SubmitUncertain, _) => Step::Locate,
        (Phase::Submitting, DesiredState::Cancel | DesiredState::Pause | DesiredState::Delete)
            if is_uncertain =>
        {
            Step::Locate
        }
        (Phase::Ended, DesiredState::Delete) => Step::Purge,
        (Phase::Ended, _) | (Phase::Paused, DesiredState::Pause) => Step::Rest,
        // One whose owner has canceled all its tasks ends. One that had an attempt has files on the cluster.
        (Phase::Waiting, DesiredState::Run)
            if job.attempt.is_none() && !array.open().without(&array.withdrawn).is_empty() =>
        {
            Step::AwaitNeeds
        }
        (
            Phase::Queued | Phase::ConvertingImage | Phase::Submitting | Phase::RetryWait | Phase::Paused,
            DesiredState::Run,
        ) if job.may_submit_tasks(array, now) => Step::Submit,
        _ => Step::Tend,
    }
}

/// When a run that goes on must release its nodes: at once if there is a reason to kill it, and some time after it has reported
/// SUCCESS or FAILURE. A report from before its start is of an execution that Slurm has requeued unseen.
pub fn released_at(run: &Run, graces: &Graces) -> Option<Timestamp> {
    let at_once = run.kill_reason.as_ref().map(|_| Timestamp::UNIX_EPOCH);
    let is_earlier = |at: Timestamp| run.started_at.is_some_and(|started_at| at < started_at - CLOCKS_AGREE);
    let reported_at = run.progress.final_status_at.filter(|at| !is_earlier(*at));
    let released_at = at_once.or(reported_at.map(|at| at + graces.release));
    released_at.filter(|_| run.phase() == Phase::Running)
}

/// A job after a step, and when it is due again.
#[derive(Debug, Clone)]
pub struct Transition {
    pub job: Job,
    /// `None`: only a poll moves it.
    pub due_at: Option<Timestamp>,
}

//! Ends jobs that never started. Their staged files with secrets are removed first.

use std::collections::HashMap;

use chrono::TimeDelta;
use domain::{
    DesiredState, Job, JobId, JobPaths, Lookup, PendingCleanup, Phase, Timestamp, Transition, after_lookup,
};
use persistence::{Lane, Lease, WorkStore};
use remote::{Remove, StagedSecret};
use slurm::{RemotePath, SlurmJobId};

use crate::{
    Result,
    cluster_runtime::Runtime,
    link::cluster_link::ClusterLink,
    steps::record::{done, warn_of_each},
    worker::Worker,
};

/// After a removal that failed.
pub(super) const TRY_AGAIN: TimeDelta = TimeDelta::seconds(10);

/// A job before and after a step that may have ended it.
#[derive(Debug)]
pub(crate) struct Unsubmitted {
    before: Job,
    step: Transition,
}

impl Unsubmitted {
    pub(crate) fn new(before: &Job, step: Transition) -> Self {
        Self { before: before.clone(), step }
    }

    /// The job after the step.
    pub(crate) fn job(&self) -> &Job {
        &self.step.job
    }

    /// The step, unless something blocks it. If a Slurm job holds the attempt, that job is adopted. While files with secrets
    /// remain, the job does not end; it ends when they are removed, or after a day.
    fn unless_blocked(self, blocker: Option<CleanupBlocker>, now: Timestamp) -> Transition {
        let kept = match blocker {
            None => return self.step,
            Some(CleanupBlocker::Held(id)) => {
                let ahead = self.before.in_attempt_ahead(now);
                let of = ahead.as_ref().unwrap_or(&self.before);
                return after_lookup(of, Lookup::Found(id), now);
            }
            Some(CleanupBlocker::PendingCleanup(kept)) => kept,
        };
        if let Some(job) = self.step.job.with_pending_cleanup(&self.before, kept, now) {
            return done(job, Some(now + TRY_AGAIN));
        }
        let id = self.before.id;
        tracing::warn!(job.id = %id, "files with secrets could not be removed for a day; the job ends anyway");
        self.step
    }
}

/// Why a job cannot end yet, or not go on in another way than with the attempt that it has queued ahead.
#[derive(Debug, Clone, Copy)]
pub(super) enum CleanupBlocker {
    PendingCleanup(PendingCleanup),
    /// A Slurm job holds the attempt, or the one that it has queued ahead.
    Held(SlurmJobId),
}

impl<L: ClusterLink, S: WorkStore> Worker<L, S> {
    /// Records steps that may end or pause jobs with staged files. Files with secrets are removed first, because an ended job
    /// is not looked at again. If the attempt was submitted, its claim is taken, so that a late Slurm job does not run.
    pub(crate) async fn record_unsubmitted(
        &self,
        runtime: &Runtime<L>,
        lease: &Lease,
        steps: Vec<Unsubmitted>,
    ) -> Result {
        if steps.is_empty() {
            return Ok(());
        }
        let steps = self.unless_blocked(runtime, steps).await;
        self.record(lease, &steps).await?;
        // The next step may be due at once in either lane: a change of the desired state may have come in meanwhile.
        runtime.lane(Lane::Submit).notify_one();
        runtime.lane(Lane::Follow).notify_one();
        Ok(())
    }

    /// The steps, after the files with secrets of jobs that end were removed.
    pub(crate) async fn unless_blocked(
        &self,
        runtime: &Runtime<L>,
        steps: Vec<Unsubmitted>,
    ) -> Vec<Transition> {
        let ended: Vec<&Job> = steps.iter().map(|one| &one.step.job).filter(|job| has_ended(job)).collect();
        let failed = "files with secrets could not be removed; retrying";
        let blockers = self.clear_away(runtime, &ended, given_up, failed).await;
        let now = self.clock.now();
        let unless_blocked = |one: Unsubmitted| {
            let found = blockers.get(&one.before.id).copied();
            one.unless_blocked(found, now)
        };
        steps.into_iter().map(unless_blocked).collect()
    }

    /// Removes the files with secrets of jobs, and takes the claims in their directories `close`. Returns the jobs for which that is not
    /// certain. `failed` goes into the log if the cluster does not answer.
    pub(super) async fn clear_away(
        &self,
        runtime: &Runtime<L>,
        jobs: &[&Job],
        close: fn(&Job) -> Option<RemotePath>,
        failed: &str,
    ) -> HashMap<JobId, CleanupBlocker> {
        let files: Vec<(JobId, StagedSecret)> =
            jobs.iter().flat_map(|job| private_files(job).into_iter().map(|file| (job.id, file))).collect();
        let close: Vec<(JobId, RemotePath)> =
            jobs.iter().filter_map(|job| Some((job.id, close(job)?))).collect();
        if files.is_empty() && close.is_empty() {
            return HashMap::new();
        }
        let command = Remove {
            close: close.iter().map(|(_, dir)| dir.clone()).collect(),
            files: files.iter().map(|(_, file)| file.clone()).collect(),
        };
        let pending = |(job, _): &(JobId, StagedSecret), why| (*job, CleanupBlocker::PendingCleanup(why));
        let blockers: HashMap<JobId, CleanupBlocker> = match runtime.target.link.call(&command).await {
            Ok(answer) => {
                let kept = answer.kept.iter().filter_map(|place| files.get(*place));
                let kept = kept.map(|file| pending(file, PendingCleanup::NotRemoved));
                let held = answer.held.iter().filter_map(|(place, id)| Some((close.get(*place)?.0, *id)));
                // A held attempt keeps its files as well.
                kept.chain(held.map(|(job, id)| (job, CleanupBlocker::Held(id)))).collect()
            }
            Err(error) => {
                warn_of_each(jobs.iter().copied(), &error, failed);
                files.iter().map(|file| pending(file, PendingCleanup::Unanswered)).collect()
            }
        };
        let cleared = jobs.iter().filter(|job| !blockers.contains_key(&job.id));
        self.cancel_ahead(runtime, cleared.copied().collect()).await;
        blockers
    }
}

/// The state directory of a submitted attempt that is given up with its job, or of the one that was queued ahead. A failed attempt
/// stays open, because it may be submitted again.
fn given_up(job: &Job) -> Option<RemotePath> {
    let attempt = job.attempt.as_ref().filter(|attempt| attempt.fence.newest > 0)?;
    if attempt.slurm_id.is_some() {
        return job.state_ahead().filter(|_| has_ended(job));
    }
    let is_over = has_ended(job) && job.desired != DesiredState::Run;
    let paths = JobPaths::new(&attempt.job_dir, job.id).ok().filter(|_| is_over);
    paths?.state(attempt).ok()
}

fn has_ended(job: &Job) -> bool {
    job.status.is_final() || job.phase == Phase::Paused
}

/// The files with secrets of a job's newest attempt. They are those of the attempt that was queued ahead, too.
fn private_files(job: &Job) -> Vec<StagedSecret> {
    let Some(attempt) = &job.attempt else { return Vec::new() };
    let Ok(paths) = JobPaths::new(&attempt.job_dir, job.id) else { return Vec::new() };
    let Some(state_dir) = job.state_ahead().or_else(|| paths.state(attempt).ok()) else { return Vec::new() };
    let file = |path| StagedSecret { job: job.id.get(), state_dir: state_dir.clone(), path };
    paths.secret_files(&job.spec).into_iter().map(file).collect()
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use domain::Status;

    use super::*;

    const T0: Timestamp = DateTime::UNIX_EPOCH;

    fn sent(desired: DesiredState) -> Job {
        let mut job = testkit::command_job(1);
        let mut attempt = job.new_attempt("/lustre/tao".parse().unwrap(), T0).unwrap();
        attempt.fence.begin();
        (job.attempt, job.phase, job.desired) = (Some(attempt), Phase::Submitting, desired);
        job
    }

    #[test]
    fn an_attempt_is_given_up_with_its_job_and_not_when_it_may_be_sent_again() {
        let dir = |job: &Job| given_up(job).map(|dir| dir.to_string());
        let of_first = |job: &Job| Some(format!("/lustre/tao/state/{}/1", job.id));
        let canceled = sent(DesiredState::Cancel).canceled_locally(T0);
        assert_eq!(dir(&canceled), of_first(&canceled));
        let paused = sent(DesiredState::Pause).paused_locally(T0);
        assert_eq!(dir(&paused), of_first(&paused));
        assert_eq!(dir(&sent(DesiredState::Cancel)), None, "it is not over");
        assert_eq!(dir(&sent(DesiredState::Run).canceled_locally(T0)), None, "refused, it may stay as it is");
        let mut chained = sent(DesiredState::Run);
        chained.spec.restart.prequeue = true;
        chained.attempt.as_mut().unwrap().slurm_id = slurm::SlurmJobId::new(7);
        assert_eq!(dir(&chained), None, "it goes on");
        chained.status = Status::Error;
        let of_second = format!("/lustre/tao/state/{}/2", chained.id);
        assert_eq!(dir(&chained), Some(of_second), "what it has queued ahead");
        let mut unsent = paused;
        unsent.attempt.as_mut().unwrap().fence = domain::SubmitFence::default();
        assert_eq!(dir(&unsent), None);
    }

    #[test]
    fn a_job_whose_attempt_slurm_has_begun_after_all_does_not_end() {
        for wanted in [DesiredState::Cancel, DesiredState::Pause] {
            let before = sent(wanted);
            let ended = Unsubmitted::new(&before, done(before.canceled_locally(T0), None));
            let held = SlurmJobId::new(77).unwrap();
            let Transition { job, due_at } = ended.unless_blocked(Some(CleanupBlocker::Held(held)), T0);
            assert_eq!((job.phase, job.status, due_at), (Phase::InQueue, Status::Pending, Some(T0)));
            let attempt = job.attempt.unwrap();
            assert!(attempt.is_open() && attempt.slurm_id == Some(held));
        }
    }
}

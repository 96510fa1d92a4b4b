//! What a worker does for a job: its steps, and what its polls see.

use std::time::Duration;

use chrono::DateTime;
use domain::{Clock, Job, ObservedChange, Phase, Source, Status, Timestamp, Transition, after_needs};
use persistence::{
    DueJobs as _, Lane, LeaseTerms, Needs as _, Observations as _, PollResult, PollTurns as _,
    StepRecords as _, Viewer,
};
use uuid::Uuid;

use super::{TestApi, cluster};

impl TestApi {
    /// Does what a worker does: one step of the job, which changes it.
    pub(crate) async fn step(&self, id: &str, due_at: Option<Timestamp>, change: impl FnOnce(&mut Job)) {
        let terms = LeaseTerms { duration: Duration::from_mins(1), limit: 10, only_stopped: false };
        let dgx = "dgx".parse().unwrap();
        let mut lease = self.store.acquire_due(&dgx, Lane::Submit, Uuid::from_u128(9), terms).await.unwrap();
        if lease.jobs.is_empty() {
            lease = self.store.acquire_due(&dgx, Lane::Follow, Uuid::from_u128(9), terms).await.unwrap();
        }
        let (own, others): (Vec<_>, Vec<_>) =
            std::mem::take(&mut lease.jobs).into_iter().partition(|job| job.id.to_string() == id);
        let mut job = own.into_iter().next().unwrap();
        change(&mut job);
        let step = Transition { job, due_at };
        assert_eq!(self.store.record_steps(&lease, &[step], self.clock.now()).await.unwrap().len(), 1);
        self.store.put_off(&lease, &others, Some(Duration::ZERO)).await.unwrap();
    }

    /// Each waiting job that is due looks at those that it needs.
    pub(crate) async fn await_needs(&self) {
        let terms = LeaseTerms { duration: Duration::from_mins(1), limit: 100, only_stopped: false };
        let dgx = "dgx".parse().unwrap();
        let mut lease = self.store.acquire_due(&dgx, Lane::Submit, Uuid::from_u128(7), terms).await.unwrap();
        let (waiting, others): (Vec<_>, Vec<_>) =
            std::mem::take(&mut lease.jobs).into_iter().partition(|job| job.phase == Phase::Waiting);
        let ids: Vec<_> = waiting.iter().map(|job| job.id).collect();
        let needed = self.store.needed(&ids).await.unwrap();
        let look = |job: &Job| {
            let Transition { job, due_at } = after_needs(job, &needed[&job.id], self.clock.now());
            Transition { job, due_at }
        };
        let steps: Vec<_> = waiting.iter().map(look).collect();
        self.store.record_steps(&lease, &steps, self.clock.now()).await.unwrap();
        self.store.put_off(&lease, &others, Some(Duration::ZERO)).await.unwrap();
    }

    /// Slurm has accepted the job.
    pub(crate) async fn submit(&self, id: &str, slurm_id: u32, nodes: &str) {
        let now = self.clock.now();
        // Due in the past of the database's own clock, for the step after this one.
        self.step(id, Some(DateTime::UNIX_EPOCH), |job| {
            let mut attempt = job.new_attempt(cluster().base_dir, now).unwrap();
            attempt.slurm_id = slurm::SlurmJobId::new(slurm_id);
            attempt.submitted_at = Some(now);
            job.begin_attempt(attempt);
            job.run.nodes = Some(nodes.to_owned());
            job.submitted_at = Some(now);
            job.observed_at = Some(now);
            job.phase = Phase::InQueue;
            job.source = Source::Squeue;
        })
        .await;
    }

    /// A poll has seen it wait in the queue since an hour ago, for the reason.
    pub(crate) async fn see_waiting(&self, id: &str, reason: &str, estimated_start: Option<Timestamp>) {
        let since = self.clock.now() - chrono::TimeDelta::hours(1);
        self.see(id, |job| {
            job.pending_reason = Some(reason.to_owned());
            job.run.state = Some(slurm::SlurmState::Pending);
            job.run.queued_since = Some(since);
            job.run.estimated_start = estimated_start;
        })
        .await;
    }

    /// Does what a poll does: it changes what is known of the job.
    pub(crate) async fn see(&self, id: &str, change: impl FnOnce(&mut Job)) {
        let (now, dgx) = (self.clock.now(), "dgx".parse().unwrap());
        let id = domain::JobId::new(id.parse().unwrap());
        let mut job = self.store.find_job(id, &Viewer::All).await.unwrap().unwrap();
        job.observed_at = Some(now);
        change(&mut job);
        let lease =
            self.store.acquire_poll(&dgx, Uuid::from_u128(8), Duration::from_mins(1)).await.unwrap().unwrap();
        let seen = [ObservedChange { job, step_due: false }];
        assert_eq!(self.store.record_observations(&lease, &seen, now).await.unwrap(), 1);
        self.store.record_poll(&lease, PollResult::Idle, Duration::ZERO, now).await.unwrap();
    }

    /// An attempt failed, and another will follow.
    pub(crate) async fn fail(&self, id: &str, slurm_id: u32) {
        let now = self.clock.now();
        // Due in the past of the database's own clock.
        self.step(id, Some(DateTime::UNIX_EPOCH), |job| {
            let mut attempt = job.new_attempt(cluster().base_dir, now).unwrap();
            attempt.slurm_id = slurm::SlurmJobId::new(slurm_id);
            attempt.submitted_at = Some(now);
            job.attempt = Some(attempt);
            job.retry_count += 1;
            job.phase = Phase::RetryWait;
        })
        .await;
    }

    /// The job has failed.
    pub(crate) async fn error(&self, id: &str) {
        let now = self.clock.now();
        self.step(id, None, |job| {
            job.status = Status::Error;
            job.phase = Phase::Ended;
            job.finished_at = Some(now);
        })
        .await;
    }

    /// The job is done.
    pub(crate) async fn end(&self, id: &str) {
        let now = self.clock.now();
        self.step(id, None, |job| {
            job.status = Status::Done;
            job.phase = Phase::Ended;
            job.finished_at = Some(now);
        })
        .await;
    }
}

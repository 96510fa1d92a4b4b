//! The poll: one remote command for every active job of a cluster.

mod arrays;
mod poll_results;
mod question;
mod quiet;

use std::{collections::HashSet, time::Duration};

use chrono::TimeDelta;
use domain::{ActiveJob, JobId, Timestamp};
use persistence::{ActiveArray, PollLease, PollResult, WorkStore};
use remote::{PollAnswer, RemoteCommand as _, SqueueOutcome};

use crate::{
    Result,
    cluster_runtime::{OVERTAKEN, Runtime},
    keep_alive::keep_alive,
    link::cluster_link::{ClusterLink, LinkError},
    pace::{LastPoll, jittered},
    poll::{
        orphans::is_orphan_poll_due,
        tick::{poll_results::PollResults, question::question},
    },
    worker::Worker,
};

pub(crate) use quiet::Quiet;

/// The most jobs in memory at a time, because ten thousand would be too many. Small in tests, so that few jobs need several pages.
const PAGE: usize = if cfg!(test) { 2 } else { 128 };
/// The most runs in one statement.
const TASKS_AT_ONCE: usize = 1000;
/// The retry interval of a cluster without jobs: nothing depends on it.
const IDLE_RETRY: Duration = Duration::from_mins(1);
/// The age up to which a job is expected to change soon.
const YOUNG: TimeDelta = TimeDelta::minutes(2);

impl<L: ClusterLink, S: WorkStore> Worker<L, S> {
    /// Polls the cluster if a poll is due and no other worker has the lease. Returns the new interval.
    pub(crate) async fn poll_if_due(
        &self,
        runtime: &Runtime<L>,
        interval: Duration,
    ) -> Result<Option<Duration>> {
        let cluster = &runtime.target.cluster.name;
        let pace = runtime.target.pace;
        let since = self.clock.uptime();
        let Some(lease) = self.store.acquire_poll(cluster, self.ids.lease(), self.settings.lease).await?
        else {
            return Ok(None);
        };
        self.hear(Some(lease.granted_on), since);
        let jobs = self.store.active_jobs(cluster).await?;
        let mut arrays = self.store.active_arrays(cluster).await?;
        arrays.retain(|array| array.job.attempts_in_slurm().next().is_some());
        if !self.is_still_meant(runtime).await? {
            self.store.record_poll(&lease, PollResult::Idle, OVERTAKEN, self.clock.now()).await?;
            return Ok(None);
        }
        let idle = jobs.is_empty() && arrays.is_empty();
        if idle && !is_orphan_poll_due(&lease, self.clock.now()) {
            self.store.record_poll(&lease, PollResult::Idle, pace.min, self.clock.now()).await?;
            return Ok(Some(pace.min));
        }
        let began = tokio::time::Instant::now();
        let question = question(
            &jobs,
            &arrays,
            runtime.target.cluster.batch.usage_seconds,
            lease.polled_at,
            self.clock.now(),
        );
        let duration = self.settings.lease;
        let extend = || self.store.extend_poll(&lease, duration);
        let link = &runtime.target.link;
        let is_late = lease.polled_at.is_none_or(|at| self.clock.now() - at > lease.interval * 2);
        let poll =
            async { if is_late { link.call_late(&question).await } else { link.call(&question).await } };
        let Some(answer) = keep_alive(&*self.clock, since, duration, extend, poll).await else {
            return Ok(None);
        };
        if let Err(LinkError::OverBudget { wait }) = answer {
            self.store.record_poll(&lease, PollResult::PutOff, wait, self.clock.now()).await?;
            return Ok(None);
        }
        let took = began.elapsed();
        let rpcs = answer.as_ref().map_or(0, |answer| question.rpcs_made(answer));
        let meter = link.meter().await?;
        let budget_pace =
            meter.map_or(Duration::ZERO, |meter| meter.budget.poll_interval(meter.tokens, rpcs));
        runtime.set_budget_pace(budget_pace);
        let now = self.clock.now();
        let answer = match with_queue(answer) {
            Ok(answer) => answer,
            Err((error, auth_required)) => {
                let next = if idle { IDLE_RETRY } else { pace.after_failure(interval).max(budget_pace) };
                tracing::warn!(cluster.name = %cluster, error, "the cluster did not answer a poll");
                metrics::counter!("tao_slurm_polls_total", "cluster" => cluster.to_string(), "outcome" => "unanswered")
                    .increment(1);
                self.store
                    .record_poll(&lease, PollResult::Unanswered { error: &error, auth_required }, next, now)
                    .await?;
                return Ok(Some(next));
            }
        };
        let orphans = self.look_for_orphans(runtime, &lease, &question, &answer, now).await?;
        let results = PollResults::new(answer, lease.unreachable_for(now));
        let counts = self.compare_jobs(runtime, &lease, &jobs, &results, now).await?;
        let tasks = self.compare_tasks(runtime, &lease, &arrays, &results, now).await?;
        let young = |at: Option<Timestamp>| at.is_some_and(|at| now - at < YOUNG);
        let pieces = arrays.iter().map(|array| array.job.attempt.as_ref()?.submitted_at);
        let mut submitted = jobs.iter().map(|job| job.submitted_at).chain(pieces);
        let lively = counts.changed > 0 || tasks > 0 || submitted.any(young);
        let next = pace.after(LastPoll { interval, took, lively }).max(budget_pace);
        let waited = jittered(next, fraction(self.ids.lease().as_u128()));
        self.store.record_poll(&lease, PollResult::Answered, waited, now).await?;
        tracing::debug!(
            cluster.name = %cluster, jobs = jobs.len(), read = counts.read, changed = counts.changed, written = counts.written,
            dropped_rows = results.answer.dropped_rows, took_ms = took.as_millis(), "polled"
        );
        metrics::counter!("tao_slurm_polls_total", "cluster" => cluster.to_string(), "outcome" => "answered")
            .increment(1);
        self.cancel_orphans(runtime, orphans).await;
        Ok(Some(next))
    }

    /// Compares the jobs with the poll result, page by page, and stores the changes. Unchanged pending jobs are skipped.
    async fn compare_jobs(
        &self,
        runtime: &Runtime<L>,
        lease: &PollLease,
        asked: &[ActiveJob],
        results: &PollResults,
        now: Timestamp,
    ) -> Result<Counts> {
        let graces = self.graces(runtime);
        let asked = runtime.quiet().may_have_news(asked, results, now);
        let mut counts = Counts { read: asked.len(), ..Counts::default() };
        let mut held_since = self.clock.uptime();
        for page in asked.chunks(PAGE) {
            if self.clock.uptime() >= held_since + self.settings.lease / 3 {
                held_since = self.clock.uptime();
                self.store.extend_poll(lease, self.settings.lease).await?;
            }
            let jobs = self.store.unchanged_jobs(page).await?;
            let changed = results.changes(&jobs, &graces, now);
            let ids: HashSet<JobId> = changed.iter().map(|next| next.job.id).collect();
            runtime.quiet().note(&jobs, &ids, results, now);
            if changed.is_empty() {
                continue;
            }
            counts.changed += changed.len();
            counts.written += self.store.record_observations(lease, &changed, now).await?;
            if changed.iter().any(|next| next.step_due) {
                runtime.wake_lanes();
            }
        }
        Ok(counts)
    }

    /// Compares the tasks of arrays with the poll result, and stores the changes. Returns how many changed.
    async fn compare_tasks(
        &self,
        runtime: &Runtime<L>,
        lease: &PollLease,
        active: &[ActiveArray],
        results: &PollResults,
        now: Timestamp,
    ) -> Result<usize> {
        let graces = self.graces(runtime);
        let mut count = 0;
        for array in active {
            let changed = arrays::changes(array, results, &graces, now);
            for page in changed.chunks(TASKS_AT_ONCE) {
                self.store.record_observed_tasks(lease, page, now).await?;
            }
            count += changed.len();
        }
        if count > 0 {
            runtime.wake_lanes();
        }
        Ok(count)
    }
}

/// The numbers of jobs in a poll.
#[derive(Debug, Default)]
struct Counts {
    read: usize,
    changed: usize,
    written: u64,
}

/// Treats an answer without squeue's as an error: an empty queue would mean that all jobs are gone. The flag says whether
/// the login failed.
fn with_queue(answer: Result<PollAnswer, LinkError>) -> Result<PollAnswer, (String, bool)> {
    let answer =
        answer.map_err(|error| (error.to_string(), matches!(error, LinkError::AuthRequired { .. })))?;
    match &answer.squeue {
        SqueueOutcome::Answered(_) => Ok(answer),
        SqueueOutcome::Failed(failure) => Err((failure.excerpt.clone(), false)),
    }
}

/// A number from 0 to 1 out of random bits.
#[expect(clippy::cast_precision_loss, reason = "jitter needs no precision")]
fn fraction(bits: u128) -> f64 {
    (bits % 10_000) as f64 / 10_000.0
}

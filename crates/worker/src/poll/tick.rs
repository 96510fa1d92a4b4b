//! The poll: one remote command that asks about every active job of a cluster.

mod question;
mod quiet;
mod sight;

use std::{collections::HashSet, time::Duration};

use chrono::TimeDelta;
use domain::{ActiveJob, Conversion, JobId, Timestamp, conversion_seen};
use persistence::{PollLease, PollResult, WorkStore};
use remote::{PollAnswer, SqueueOutcome};

use crate::{
    Result,
    cluster_runtime::{ClusterRuntime, OVERTAKEN},
    conversions::say,
    keep_alive::keep_alive,
    link::cluster_link::{ClusterLink, LinkError},
    pace::{LastPoll, jittered},
    poll::{
        orphans::wants_a_look,
        tick::{question::question, sight::Sight},
    },
    worker::Worker,
};

pub(crate) use quiet::Quiet;

/// So many jobs are looked at, and stored, at a time: ten thousand whole ones are too many for the memory. Tests turn pages with few jobs.
const PAGE: usize = if cfg!(test) { 2 } else { 128 };
/// After a look at a cluster without jobs that was not answered: nothing hangs on it.
const IDLE_RETRY: Duration = Duration::from_mins(1);
/// A job this young will soon change.
const YOUNG: TimeDelta = TimeDelta::minutes(2);

impl<L: ClusterLink, S: WorkStore> Worker<L, S> {
    /// Polls the cluster if a poll is due and nobody else has the right to it. Returns the interval from now on.
    pub(crate) async fn poll_if_due(
        &self,
        runtime: &ClusterRuntime<L>,
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
        let conversions = self.store.active_conversions(cluster).await?;
        if !self.is_still_meant(runtime).await? {
            self.store.record_poll(&lease, PollResult::Idle, OVERTAKEN, self.clock.now()).await?;
            return Ok(None);
        }
        let idle = jobs.is_empty() && conversions.is_empty();
        if idle && !wants_a_look(&lease, self.clock.now()) {
            self.store.record_poll(&lease, PollResult::Idle, pace.min, self.clock.now()).await?;
            return Ok(Some(pace.min));
        }
        let began = tokio::time::Instant::now();
        let question = question(&jobs, &conversions, lease.polled_at, self.clock.now());
        let duration = self.settings.lease;
        let extend = || self.store.extend_poll(&lease, duration);
        let poll = runtime.target.link.call(&question);
        let Some(answer) = keep_alive(&*self.clock, since, duration, extend, poll).await else {
            return Ok(None);
        };
        let took = began.elapsed();
        let now = self.clock.now();
        let answer = match properly(answer) {
            Ok(answer) => answer,
            Err((error, auth_required)) => {
                let next = if idle { IDLE_RETRY } else { pace.after_failure(interval) };
                tracing::warn!(cluster.name = %cluster, error, "the cluster did not answer a poll");
                metrics::counter!("slurm_polls_total", "cluster" => cluster.to_string(), "outcome" => "unanswered")
                    .increment(1);
                self.store
                    .record_poll(&lease, PollResult::Unanswered { error: &error, auth_required }, next, now)
                    .await?;
                return Ok(Some(next));
            }
        };
        let orphans = self.look_for_orphans(runtime, &lease, &question, &answer, now).await?;
        let sight = Sight::new(answer, lease.unreachable_for(now));
        let moved = self.compare_conversions(&conversions, &sight, now);
        self.store.record_seen_conversions(cluster, &moved).await?;
        let told = self.compare_jobs(runtime, &lease, &jobs, &sight, now).await?;
        let young = |at: Option<Timestamp>| at.is_some_and(|at| now - at < YOUNG);
        let mut submitted =
            jobs.iter().map(|job| job.submitted_at).chain(conversions.iter().map(submitted_at));
        let lively = told.changed > 0 || !moved.is_empty() || submitted.any(young);
        let next = pace.after(LastPoll { interval, took, lively });
        let waited = jittered(next, fraction(self.ids.lease().as_u128()));
        self.store.record_poll(&lease, PollResult::Answered, waited, now).await?;
        tracing::debug!(
            cluster.name = %cluster, jobs = jobs.len(), read = told.read, changed = told.changed, written = told.written,
            dropped_rows = sight.answer.dropped_rows, took_ms = took.as_millis(), "polled"
        );
        metrics::counter!("slurm_polls_total", "cluster" => cluster.to_string(), "outcome" => "answered")
            .increment(1);
        self.cancel_orphans(runtime, orphans).await;
        if !moved.is_empty() {
            runtime.wake_lanes();
        }
        Ok(Some(next))
    }

    /// Compares the jobs with what was seen of them, page by page, and stores what changed. Those of which it is known that
    /// it has no news are not read.
    async fn compare_jobs(
        &self,
        runtime: &ClusterRuntime<L>,
        lease: &PollLease,
        asked: &[ActiveJob],
        sight: &Sight,
        now: Timestamp,
    ) -> Result<Told> {
        let graces = self.graces(runtime);
        let asked = runtime.quiet().may_have_news(asked, sight, now);
        let mut told = Told { read: asked.len(), ..Told::default() };
        let mut held_since = self.clock.uptime();
        for page in asked.chunks(PAGE) {
            if self.clock.uptime() >= held_since + self.settings.lease / 3 {
                held_since = self.clock.uptime();
                self.store.extend_poll(lease, self.settings.lease).await?;
            }
            let jobs = self.store.jobs_as_asked(page).await?;
            let changed = sight.changes(&jobs, &graces, now);
            let ids: HashSet<JobId> = changed.iter().map(|next| next.job.id).collect();
            runtime.quiet().note(&jobs, &ids, sight, now);
            if changed.is_empty() {
                continue;
            }
            told.changed += changed.len();
            told.written += self.store.record_observations(lease, &changed, now).await?;
            if changed.iter().any(|next| next.step_due) {
                runtime.wake_lanes();
            }
        }
        Ok(told)
    }

    fn compare_conversions(
        &self,
        conversions: &[Conversion],
        sight: &Sight,
        now: Timestamp,
    ) -> Vec<Conversion> {
        // A clock that is off by more than a day is broken, or somebody's joke.
        let ahead = sight.answer.remote_time.saturating_sub(now.timestamp()).clamp(-86_400, 86_400);
        let ahead = TimeDelta::seconds(ahead);
        let moved = conversions.iter().filter_map(|conversion| {
            let run = conversion.run.as_ref()?;
            let observation = sight.of(run.slurm_id?, run.token.as_str());
            let next = conversion_seen(conversion, &observation, ahead, &self.settings.graces, now)?;
            say(&next);
            Some(next)
        });
        moved.collect()
    }
}

/// What a poll told of the jobs.
#[derive(Debug, Default)]
struct Told {
    read: usize,
    changed: usize,
    written: u64,
}

/// An answer in which squeue itself failed is no answer: an empty queue would be read as "all gone".
/// What went wrong comes with whether it is the login.
fn properly(answer: Result<PollAnswer, LinkError>) -> Result<PollAnswer, (String, bool)> {
    let answer =
        answer.map_err(|error| (error.to_string(), matches!(error, LinkError::AuthRequired { .. })))?;
    match &answer.squeue {
        SqueueOutcome::Answered(_) => Ok(answer),
        SqueueOutcome::Failed(failure) => Err((failure.excerpt.clone(), false)),
    }
}

fn submitted_at(conversion: &Conversion) -> Option<Timestamp> {
    conversion.run.as_ref().and_then(|run| run.submitted_at)
}

/// A number from 0 to 1 out of random bits.
#[expect(clippy::cast_precision_loss, reason = "jitter needs no precision")]
fn fraction(bits: u128) -> f64 {
    (bits % 10_000) as f64 / 10_000.0
}

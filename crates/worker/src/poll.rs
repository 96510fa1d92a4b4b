//! The poll: one remote command that asks about every active job of a cluster.

use std::{collections::HashMap, time::Duration};

use chrono::TimeDelta;
use domain::{
    Conversion, Graces, Job, JobPaths, Next, OUR_NAMES, Records, Sighting, Timestamp, conversion_seen,
    observe, wants_signs_of_life,
};
use persistence::{PollResult, StoreError, WorkStore};
use slurm::{Poll, PollAnswer, SacctOutcome, SlurmJobId, SqueueOutcome, StatusChunk, Watched};

use crate::{
    conversions::say,
    keep_alive::keep_alive,
    link::{ClusterLink, LinkError},
    orphans::wants_a_look,
    pace::{LastPoll, jittered},
    worker::{OVERTAKEN, Site, Worker},
};

/// How much of one status file, and of all, one poll reads.
const STATUS_BYTES_PER_FILE: usize = 1024 * 1024;
const STATUS_BYTES_TOTAL: usize = 8 * 1024 * 1024;
/// After a look at a cluster without jobs that was not answered: nothing hangs on it.
const IDLE_RETRY: Duration = Duration::from_mins(1);
/// A job this young will soon change.
const YOUNG: TimeDelta = TimeDelta::minutes(2);

impl<L: ClusterLink, S: WorkStore> Worker<L, S> {
    /// Polls the cluster if a poll is due and nobody else has the right to it. Returns the interval from now on.
    pub(crate) async fn poll_if_due(
        &self,
        site: &Site<L>,
        interval: Duration,
    ) -> Result<Option<Duration>, StoreError> {
        let cluster = &site.target.cluster.name;
        let pace = site.target.pace;
        let since = self.clock.uptime();
        let Some(lease) = self.store.acquire_poll(cluster, self.ids.lease(), self.settings.lease).await?
        else {
            return Ok(None);
        };
        self.hear(Some(lease.granted_on), since);
        let jobs = self.store.active_jobs(cluster).await?;
        let conversions = self.store.active_conversions(cluster).await?;
        if !self.is_still_meant(site).await? {
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
        let poll = site.target.link.poll(&question);
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
        let orphans = self.look_for_orphans(site, &lease, &question, &answer, now).await?;
        let changed = compare(&jobs, &answer, &self.graces(site), lease.deaf_until(now), now);
        let moved = self.compare_conversions(&conversions, &answer, now);
        self.store.record_seen_conversions(cluster, &moved).await?;
        let young = |at: Option<Timestamp>| at.is_some_and(|at| now - at < YOUNG);
        let mut submitted =
            jobs.iter().map(|job| job.submitted_at).chain(conversions.iter().map(submitted_at));
        let lively = !changed.is_empty() || !moved.is_empty() || submitted.any(young);
        let next = pace.after(LastPoll { interval, took, lively });
        let waited = jittered(next, fraction(self.ids.lease().as_u128()));
        let written =
            self.store.record_poll(&lease, PollResult::Answered { changed: &changed }, waited, now).await?;
        tracing::debug!(
            cluster.name = %cluster, jobs = jobs.len(), changed = changed.len(), written,
            dropped_rows = answer.dropped_rows, took_ms = took.as_millis(), "polled"
        );
        metrics::counter!("slurm_polls_total", "cluster" => cluster.to_string(), "outcome" => "answered")
            .increment(1);
        self.cancel_orphans(site, orphans).await;
        if !moved.is_empty() || changed.iter().any(|next| next.step_due) {
            site.wake_lanes();
        }
        Ok(Some(next))
    }

    fn compare_conversions(
        &self,
        conversions: &[Conversion],
        answer: &PollAnswer,
        now: Timestamp,
    ) -> Vec<Conversion> {
        // A clock that is off by more than a day is broken, or somebody's joke.
        let ahead = answer.remote_time.saturating_sub(now.timestamp()).clamp(-86_400, 86_400);
        let ahead = TimeDelta::seconds(ahead);
        let moved = conversions.iter().filter_map(|conversion| {
            let run = conversion.run.as_ref()?;
            let sighting = sighting(answer, run.slurm_id?, run.token.as_str());
            let next = conversion_seen(conversion, &sighting, ahead, &self.settings.graces, now)?;
            say(&next);
            Some(next)
        });
        moved.collect()
    }
}

/// What changed of the jobs.
fn compare(jobs: &[Job], answer: &PollAnswer, graces: &Graces, deaf: TimeDelta, now: Timestamp) -> Vec<Next> {
    let mut status: HashMap<&str, Vec<StatusChunk>> = HashMap::new();
    for chunk in &answer.status {
        status.entry(chunk.key.as_str()).or_default().push(chunk.clone());
    }
    let changed = jobs.iter().filter_map(|job| {
        let attempt = job.attempt.as_ref()?;
        let id = attempt.slurm_id?;
        let key = attempt.token.as_str();
        let status = status.get(key).map_or(&[][..], Vec::as_slice);
        let signs_of_life = answer.signs_of_life.get(key);
        let sighting = Sighting { status, signs_of_life, deaf, ..sighting(answer, id, key) };
        let next = observe(job, &sighting, graces, now)?;
        tracing::info!(
            job.id = %job.id, attempt = attempt.no.get(), slurm.job_id = id.get(),
            job.status = %next.job.status, job.phase = %next.job.phase, "{}", next.job.message
        );
        Some(next)
    });
    changed.collect()
}

/// What a poll saw of one Slurm job, but for its status files.
fn sighting<'a>(answer: &'a PollAnswer, id: SlurmJobId, key: &str) -> Sighting<'a> {
    let queue = match &answer.squeue {
        SqueueOutcome::Answered(rows) => Some(rows),
        SqueueOutcome::Failed(_) => None,
    };
    let (accounting, records) = match &answer.sacct {
        SacctOutcome::Answered(rows) => (Some(rows), Records::Answered),
        SacctOutcome::Disabled => (None, Records::Off),
        SacctOutcome::NotAsked | SacctOutcome::Failed(_) => (None, Records::Unknown),
    };
    Sighting {
        queue: queue.and_then(|rows| rows.get(&id)),
        queue_answered: queue.is_some(),
        accounting: accounting.and_then(|rows| rows.get(&id)),
        records,
        markers: answer.markers.get(key),
        status: &[],
        signs_of_life: None,
        deaf: TimeDelta::zero(),
    }
}

fn question(jobs: &[Job], conversions: &[Conversion], last: Option<Timestamp>, now: Timestamp) -> Poll {
    let watched = |job: &Job| {
        let attempt = job.attempt.as_ref()?;
        let paths = JobPaths::new(&attempt.job_dir, job.id).ok()?;
        Some(Watched {
            id: attempt.slurm_id?,
            key: attempt.token.to_string(),
            results_dir: Some(paths.results.clone()),
            state_dir: paths.state(attempt).ok()?,
            status: attempt.status.cursors(),
            signs_of_life: paths
                .documented_logs(&attempt.into())
                .ok()
                .flatten()
                .filter(|_| wants_signs_of_life(job, last, now)),
        })
    };
    Poll {
        jobs: jobs.iter().filter_map(watched).chain(conversions.iter().filter_map(watched_run)).collect(),
        status_bytes_per_file: STATUS_BYTES_PER_FILE,
        status_bytes_total: STATUS_BYTES_TOTAL,
        others: OUR_NAMES.parse().ok(),
    }
}

/// A conversion is one more row of the same question.
fn watched_run(conversion: &Conversion) -> Option<Watched> {
    let run = conversion.run.as_ref()?;
    Some(Watched {
        id: run.slurm_id?,
        key: run.token.to_string(),
        results_dir: None,
        state_dir: run.state_dir.clone(),
        status: Vec::new(),
        signs_of_life: None,
    })
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

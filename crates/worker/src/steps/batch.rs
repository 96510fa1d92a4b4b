//! Taking steps: leases what is due, sorts it by what `domain` says it needs, and carries that out.

use std::{collections::HashSet, fmt};

use domain::{Job, JobId, Phase, Step, Timestamp, plan};
use persistence::{Lane, Lease, LeaseTerms, StepRecord, StoreError, WorkStore};
use remote::AttemptKey;
use slurm::{SlurmJobId, TraceParent};
use traces::Steps;

use crate::{
    keep_alive::keep_alive,
    link::cluster_link::ClusterLink,
    steps::pending_cleanup::Unsubmitted,
    worker::{OVERTAKEN, Site, Turn, Worker},
};

/// Leased jobs, by what each of them needs.
#[derive(Default)]
struct Sorted {
    end: Vec<Job>,
    pause: Vec<Job>,
    reroute: Vec<Job>,
    relieve: Vec<Job>,
    purge: Vec<Job>,
    submit: Vec<Job>,
    locate: Vec<Job>,
    cancel: Vec<Job>,
    conclude: Vec<Job>,
    rest: Vec<Job>,
}

impl<L: ClusterLink, S: WorkStore> Worker<L, S> {
    /// Takes one step of every job that is due in this lane, up to a batch. Returns how many were taken. `turn` is given up
    /// as soon as the cluster has answered the submission.
    pub(crate) async fn take_steps(
        &self,
        site: &Site<L>,
        lane: Lane,
        turn: Option<Turn<'_>>,
    ) -> Result<usize, StoreError> {
        let terms = LeaseTerms { duration: self.settings.lease, limit: self.settings.batch };
        let cluster = &site.target.cluster.name;
        let since = self.clock.uptime();
        let mut lease = self.store.acquire_due(cluster, lane, self.ids.lease(), terms).await?;
        self.hear(lease.granted_on, since);
        let jobs = std::mem::take(&mut lease.jobs);
        if jobs.is_empty() {
            return Ok(0);
        }
        if !self.is_still_meant(site).await? {
            self.store.put_off(&lease, &jobs, Some(OVERTAKEN)).await?;
            return Ok(0);
        }
        let taken = jobs.len();
        if lane == Lane::Submit && u32::try_from(taken).is_ok_and(|taken| taken >= terms.limit) {
            // There may be more than one batch: the other loop waits for its turn.
            site.lane(lane).notify_one();
        }
        let sorted = self.sort(site, jobs);
        let work = self.carry_out(site, &lease, sorted, turn);
        let duration = self.settings.lease;
        let extend = || self.store.extend(&lease, duration);
        keep_alive(&*self.clock, since, duration, extend, work).await.transpose()?;
        Ok(taken)
    }

    async fn carry_out(
        &self,
        site: &Site<L>,
        lease: &Lease,
        sorted: Sorted,
        turn: Option<Turn<'_>>,
    ) -> Result<(), StoreError> {
        let now = self.clock.now();
        let gone: Vec<_> = sorted
            .end
            .iter()
            .chain(&sorted.pause)
            .filter(|job| job.phase == Phase::ConvertingImage)
            .map(|job| job.id)
            .collect();
        let ended = sorted.end.iter().map(|job| (job, job.canceled_locally(now)));
        let paused = sorted.pause.iter().map(|job| (job, job.paused_locally(now)));
        let (staged, bare): (Vec<_>, Vec<_>) =
            ended.chain(paused).partition(|(before, _)| before.may_be_staged());
        // Nothing of these is on the cluster, so they do not wait for it.
        let bare: Vec<_> = bare.into_iter().map(|(_, job)| done(job, None)).collect();
        self.record(lease, &bare).await?;
        let staged = staged.into_iter().map(|(before, job)| Unsubmitted::new(before, done(job, None)));
        self.record_unsubmitted(site, lease, staged.collect()).await?;
        self.store.look_after_conversions(&site.target.cluster.name, &gone).await?;
        self.store.put_off(lease, &sorted.rest, None).await?;
        // One remote command for each kind, side by side.
        let cluster = &site.target.cluster.name;
        let steps = |kind, jobs: &[Job]| Steps::begin(kind, cluster, jobs.iter().map(traced));
        let (submitted, located, canceled, concluded, explain_requeue, with_relaxed_exclusions, purged) = tokio::join!(
            steps("submit", &sorted.submit).around(Box::pin(self.submit(site, lease, sorted.submit, turn))),
            steps("locate", &sorted.locate).around(Box::pin(self.locate(site, lease, sorted.locate))),
            steps("cancel", &sorted.cancel).around(Box::pin(self.cancel(site, lease, sorted.cancel))),
            steps("conclude", &sorted.conclude).around(Box::pin(self.conclude(site, lease, sorted.conclude))),
            steps("reroute", &sorted.reroute).around(Box::pin(self.reroute(site, lease, sorted.reroute))),
            steps("relieve", &sorted.relieve).around(Box::pin(self.relieve(site, lease, sorted.relieve))),
            steps("purge", &sorted.purge).around(Box::pin(self.purge(site, lease, sorted.purge))),
        );
        submitted
            .and(located)
            .and(canceled)
            .and(concluded)
            .and(explain_requeue)
            .and(with_relaxed_exclusions)
            .and(purged)
    }

    fn sort(&self, site: &Site<L>, jobs: Vec<Job>) -> Sorted {
        let (mut sorted, graces, now) = (Sorted::default(), self.graces(site), self.clock.now());
        for job in jobs {
            match plan(&job, &graces, now) {
                Step::EndLocally => sorted.end.push(job),
                Step::PauseLocally => sorted.pause.push(job),
                Step::ExplainRequeue => sorted.reroute.push(job),
                Step::RelaxExclusions => sorted.relieve.push(job),
                Step::Purge => sorted.purge.push(job),
                Step::Submit => sorted.submit.push(job),
                Step::Locate => sorted.locate.push(job),
                Step::Cancel => sorted.cancel.push(job),
                Step::Conclude => sorted.conclude.push(job),
                Step::Rest => sorted.rest.push(job),
            }
        }
        sorted
    }

    /// Stores results and says in the log what became of each job.
    pub(crate) async fn record(
        &self,
        lease: &Lease,
        steps: &[StepRecord],
    ) -> Result<HashSet<JobId>, StoreError> {
        let stored = self.store.record_steps(lease, steps, self.clock.now()).await?;
        for StepRecord { job, .. } in steps {
            let attempt = job.attempt.as_ref().map_or(0, |attempt| attempt.no.get());
            let slurm_id = job.attempt.as_ref().and_then(|attempt| attempt.slurm_id).map(SlurmJobId::get);
            if stored.contains(&job.id) {
                tracing::info!(
                    job.id = %job.id, attempt, slurm.job_id = slurm_id, job.status = %job.status,
                    job.phase = %job.phase, "{}", first_line(&job.message)
                );
            } else {
                tracing::warn!(job.id = %job.id, attempt, "the lease was lost; the step's result is dropped");
            }
            if job.status.is_final() && stored.contains(&job.id) {
                metrics::counter!(
                    "jobs_finished_total", "cluster" => job.cluster.to_string(), "outcome" => job.status.to_string()
                )
                .increment(1);
            }
        }
        Ok(stored)
    }
}

/// The job as its trace knows it.
fn traced(job: &Job) -> (JobId, u32, Option<TraceParent>) {
    (job.id, job.attempt.as_ref().map_or(0, |attempt| attempt.no.get()), job.spec.trace.clone())
}

pub(crate) fn done(job: Job, due_at: Option<Timestamp>) -> StepRecord {
    StepRecord { job, due_at }
}

/// The Slurm job of the newest attempt, if its id is known.
pub(crate) fn in_slurm(job: &Job) -> Option<(SlurmJobId, AttemptKey)> {
    let attempt = job.attempt.as_ref()?;
    Some((attempt.slurm_id?, attempt.key(job.id)))
}

/// Says of each job what went wrong with a command that was for all of them.
pub(crate) fn warn_of_each<'a>(jobs: impl IntoIterator<Item = &'a Job>, why: &dyn fmt::Display, what: &str) {
    for job in jobs {
        let attempt = job.attempt.as_ref().map_or(0, |attempt| attempt.no.get());
        tracing::warn!(job.id = %job.id, attempt, error = %why, "{what}");
    }
}

/// Messages carry log lines of the job below their first line; ours stay on one.
fn first_line(message: &str) -> &str {
    message.lines().next().unwrap_or_default()
}

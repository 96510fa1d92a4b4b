//! Takes steps: leases due jobs, sorts them by the step that `domain` plans, and carries the steps out.

use std::collections::HashMap;

use domain::{ClusterName, Job, JobId, Step, Urgency, plan};
use persistence::{Lane, Lease, LeaseTerms, WorkStore};
use slurm::TraceParent;
use traces::Steps;

use crate::{
    Result,
    cluster_runtime::{OVERTAKEN, Runtime, Turn, database_failed},
    keep_alive::keep_alive,
    link::cluster_link::{ClusterLink, Meter},
    steps::{
        pending_cleanup::Unsubmitted,
        record::{done, unless_empty},
    },
    worker::Worker,
};

/// Leased jobs, by their next step.
type Sorted = HashMap<Step, Vec<Job>>;

impl<L: ClusterLink, S: WorkStore> Worker<L, S> {
    /// Takes one step of every due job of a lane, up to a batch. Returns the number of jobs. `turn` is released as soon as the
    /// cluster has answered the submission.
    pub(crate) async fn take_steps(
        &self,
        runtime: &Runtime<L>,
        lane: Lane,
        turn: Option<Turn<'_>>,
    ) -> Result<usize> {
        let terms =
            LeaseTerms { duration: self.settings.lease, limit: self.settings.batch, only_stopped: false };
        let cluster = &runtime.target.cluster.name;
        let since = self.clock.uptime();
        let allowed = match lane {
            Lane::Submit => runtime.target.link.meter().await?.map(|meter| submissions(&meter)),
            Lane::Follow => None,
        };
        let lease_token = self.ids.lease();
        let allowed_terms = match allowed {
            // What waits for the budget is not leased, so that it can be canceled.
            Some(0) => LeaseTerms { only_stopped: true, ..terms },
            _ => LeaseTerms { limit: terms.limit.min(allowed.unwrap_or(u32::MAX)), ..terms },
        };
        let mut lease = self.store.acquire_due(cluster, lane, lease_token, allowed_terms).await?;
        self.hear(lease.granted_on, since);
        let jobs = std::mem::take(&mut lease.jobs);
        if jobs.is_empty() {
            return Ok(0);
        }
        if !self.is_still_meant(runtime).await? {
            self.store.put_off(&lease, &jobs, Some(OVERTAKEN)).await?;
            return Ok(0);
        }
        let taken = jobs.len();
        if lane == Lane::Submit && u32::try_from(taken).is_ok_and(|taken| taken >= terms.limit) {
            // There may be another batch: the other loop waits for its turn.
            runtime.lane(lane).notify_one();
        }
        let sorted = self.sort(runtime, jobs);
        let work = self.carry_out(runtime, &lease, sorted, turn);
        let duration = self.settings.lease;
        let extend = || self.store.extend(&lease, duration);
        keep_alive(&*self.clock, since, duration, extend, work).await.transpose()?;
        Ok(taken)
    }

    async fn carry_out(
        &self,
        runtime: &Runtime<L>,
        lease: &Lease,
        mut sorted: Sorted,
        turn: Option<Turn<'_>>,
    ) -> Result {
        let mut due = |step| sorted.remove(&step).unwrap_or_default();
        let (end, pause, now) = (due(Step::EndLocally), due(Step::PauseLocally), self.clock.now());
        let ended = end.iter().map(|job| (job, job.canceled_locally(now)));
        let paused = pause.iter().map(|job| (job, job.paused_locally(now)));
        let (staged, bare): (Vec<_>, Vec<_>) =
            ended.chain(paused).partition(|(before, _)| before.may_be_staged());
        // These have nothing on the cluster, so they do not wait for it.
        let bare: Vec<_> = bare.into_iter().map(|(_, job)| done(job, None)).collect();
        self.record(lease, &bare).await?;
        let staged = staged.into_iter().map(|(before, job)| Unsubmitted::new(before, done(job, None)));
        self.record_unsubmitted(runtime, lease, staged.collect()).await?;
        self.store.put_off(lease, &due(Step::Rest), None).await?;
        unless_empty(due(Step::AwaitNeeds), |jobs| self.await_needs(lease, jobs)).await?;
        // One remote command for each kind, side by side.
        let cluster = &runtime.target.cluster.name;
        let (submitted, located, canceled, concluded, tended, explained, relaxed, purged) = tokio::join!(
            carry(cluster, "submit", due(Step::Submit), |jobs| self.submit(runtime, lease, jobs, turn)),
            carry(cluster, "locate", due(Step::Locate), |jobs| self.locate(runtime, lease, jobs)),
            carry(cluster, "cancel", due(Step::Cancel), |jobs| self.cancel(runtime, lease, jobs)),
            carry(cluster, "conclude", due(Step::Conclude), |jobs| self.conclude(runtime, lease, jobs)),
            carry(cluster, "tend", due(Step::Tend), |jobs| self.tend(runtime, lease, jobs)),
            carry(cluster, "explain_requeue", due(Step::ExplainRequeue), |jobs| {
                self.explain_requeues(runtime, lease, jobs)
            }),
            carry(cluster, "relax_exclusions", due(Step::RelaxExclusions), |jobs| {
                self.relax_exclusions(runtime, lease, jobs)
            }),
            carry(cluster, "purge", due(Step::Purge), |jobs| self.purge(runtime, lease, jobs)),
        );
        debug_assert!(sorted.is_empty(), "each kind of step is carried out");
        first_error([submitted, located, canceled, concluded, tended, explained, relaxed, purged])
    }

    fn sort(&self, runtime: &Runtime<L>, jobs: Vec<Job>) -> Sorted {
        let (mut sorted, graces, now) = (Sorted::new(), self.graces(runtime), self.clock.now());
        for job in jobs {
            sorted.entry(plan(&job, &graces, now)).or_default().push(job);
        }
        sorted
    }
}

/// How many jobs the RPC budget allows to submit now. One request is left for the lookup of an earlier submission.
pub(crate) fn submissions(meter: &Meter) -> u32 {
    match meter.allows(Urgency::Submit) {
        several @ 2.. => several - 1,
        few => few,
    }
}

/// The first error, which the caller logs. The others are logged here.
pub(crate) fn first_error(results: impl IntoIterator<Item = Result>) -> Result {
    let mut errors = results.into_iter().filter_map(Result::err);
    let first = errors.next();
    for error in errors {
        database_failed("taking steps", &error);
    }
    first.map_or(Ok(()), Err)
}

/// Carries out one kind of step for its jobs, if there are any, and traces it.
async fn carry<F: Future<Output = Result>>(
    cluster: &ClusterName,
    kind: &'static str,
    jobs: Vec<Job>,
    step: impl FnOnce(Vec<Job>) -> F,
) -> Result {
    unless_empty(jobs, |jobs| {
        let steps = Steps::begin(kind, cluster, jobs.iter().map(traced));
        steps.around(Box::pin(step(jobs)))
    })
    .await
}

/// The job, for its trace.
fn traced(job: &Job) -> (JobId, u32, Option<TraceParent>) {
    (job.id, job.attempt.as_ref().map_or(0, |attempt| attempt.no.get()), job.spec.trace.clone())
}

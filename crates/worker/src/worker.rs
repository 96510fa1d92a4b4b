//! The worker: its loops, and when they wake.
//!
//! `select!` is `biased`, so that a simulated history is the same run each time.

use std::{
    collections::HashSet,
    sync::{Arc, PoisonError},
    time::Duration,
};

use chrono::TimeDelta;
use domain::{Clock, ClusterName, Graces, Ids, Timestamp, Urgency};
use persistence::{DueNotice, DueNotices, Lane, Store, WorkStore};
use tokio::{sync::watch, task::JoinSet};
use tokio_util::sync::CancellationToken;

use crate::{
    Result,
    cluster_runtime::{
        ClusterTarget, MIN_NAP, Runtime, SWEEP, nap, or_pause, partitions_name, poll_name, sleep_or_wake,
    },
    link::cluster_link::ClusterLink,
};

#[derive(Debug, Clone, Copy)]
pub struct WorkerSettings {
    /// The duration of a lease without extension: the longest wait after a worker dies.
    pub lease: Duration,
    /// The most jobs that one remote command submits or concludes.
    pub batch: u32,
    pub graces: Graces,
    /// How often a cluster's partitions are read.
    pub partitions_every: Duration,
}

const LISTENING: &str = "listening for due jobs";

/// A loop ended by itself.
#[derive(Debug, thiserror::Error)]
#[error("a loop of the worker has died")]
pub struct WorkerError(#[from] tokio::task::JoinError);

/// Leases, observes, decides, acts and records, until it is stopped.
#[derive(Debug)]
pub struct Worker<L, S = Store> {
    pub(crate) store: S,
    pub(crate) settings: WorkerSettings,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: Arc<dyn Ids>,
    /// The clusters can change while the worker runs.
    runtimes: watch::Sender<Vec<Arc<Runtime<L>>>>,
}

impl<L: ClusterLink, S: WorkStore> Worker<L, S> {
    /// Sets the clock by the time of a new lease, which is right even if this machine was suspended for an hour.
    pub(crate) fn hear(&self, granted_on: Option<Timestamp>, asked: Duration) {
        if let Some(time) = granted_on {
            self.clock.hear(time, asked);
        }
    }

    /// The grace periods of a cluster. How long its failed nodes stay excluded is its own setting.
    pub(crate) fn graces(&self, runtime: &Runtime<L>) -> Graces {
        let mut graces = self.settings.graces;
        graces.retry.exclude_for =
            TimeDelta::hours(runtime.target.cluster.retries.node_exclusion_hours.into());
        graces
    }

    pub fn new(
        store: S,
        targets: Vec<ClusterTarget<L>>,
        settings: WorkerSettings,
        clock: Arc<dyn Clock>,
        ids: Arc<dyn Ids>,
    ) -> Self {
        let runtime = |target| Arc::new(Runtime::new(target));
        Self {
            store,
            settings,
            clock,
            ids,
            runtimes: watch::Sender::new(targets.into_iter().map(runtime).collect()),
        }
    }

    /// Removes clusters and adds others, before or while the worker runs. A changed cluster is both: its old loops finish
    /// their work while the new ones run, as beside another worker.
    pub fn change(&self, gone: &HashSet<ClusterName>, come: Vec<ClusterTarget<L>>) {
        self.runtimes.send_modify(|runtimes| {
            runtimes.retain(|runtime| !gone.contains(&runtime.target.cluster.name));
            runtimes.extend(come.into_iter().map(|target| Arc::new(Runtime::new(target))));
        });
    }

    /// Whether the cluster's name still means this cluster. Called under a lease: while something is under way on the
    /// cluster, its name cannot change its meaning.
    pub(crate) async fn is_still_meant(&self, runtime: &Runtime<L>) -> Result<bool> {
        let ClusterTarget { cluster, incarnation, .. } = &runtime.target;
        match incarnation {
            Some(incarnation) => self.store.is_incarnation(&cluster.name, *incarnation).await,
            None => Ok(true),
        }
    }

    #[cfg(test)]
    pub(crate) fn runtimes(&self) -> impl Iterator<Item = Arc<Runtime<L>>> + use<L, S> {
        self.runtimes.borrow().clone().into_iter()
    }

    /// The names of the loops whose last turn is longer ago than `limit`.
    pub fn silent_loops(&self, limit: Duration) -> Vec<String> {
        let latest = self.clock.now().timestamp() - i64::try_from(limit.as_secs()).unwrap_or(i64::MAX);
        self.runtimes.borrow().iter().flat_map(|runtime| runtime.silent_since(latest)).collect()
    }

    /// Runs all loops until `stop`, and finishes the steps under way.
    pub async fn run(self: Arc<Self>, stop: CancellationToken) -> Result<(), WorkerError> {
        let mut loops = JoinSet::new();
        loops.spawn(Arc::clone(&self).listen(stop.clone()));
        let mut changes = self.runtimes.subscribe();
        let mut running: Vec<(Arc<Runtime<L>>, CancellationToken)> = Vec::new();
        loop {
            let runtimes = changes.borrow_and_update().clone();
            let is_among =
                |runtime: &Arc<Runtime<L>>| runtimes.iter().any(|other| Arc::ptr_eq(runtime, other));
            for (_, gone) in running.extract_if(.., |(runtime, _)| !is_among(runtime)) {
                gone.cancel();
            }
            for runtime in runtimes {
                if !running.iter().any(|(other, _)| Arc::ptr_eq(&runtime, other)) {
                    let until = stop.child_token();
                    self.start(&mut loops, &runtime, &until);
                    running.push((runtime, until));
                }
            }
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                // The sender is this worker's own.
                _ = changes.changed() => {}
                Some(ended) = loops.join_next() => ended?,
            }
        }
        while let Some(ended) = loops.join_next().await {
            ended?;
        }
        Ok(())
    }

    /// The loops of one cluster.
    fn start(
        self: &Arc<Self>,
        loops: &mut JoinSet<()>,
        runtime: &Arc<Runtime<L>>,
        until: &CancellationToken,
    ) {
        // Two loops submit: while one stores its results, the other's batch is under way.
        for (lane, named) in
            [(Lane::Submit, "submissions"), (Lane::Submit, "more submissions"), (Lane::Follow, "other steps")]
        {
            let name = format!("{named} of cluster {}", runtime.target.cluster.name);
            // Noted before it runs, so that a loop that never takes a turn is reported too.
            self.beat(runtime, &name);
            loops.spawn(Arc::clone(self).step(Arc::clone(runtime), lane, name, until.clone()));
        }
        self.beat(runtime, &poll_name(runtime));
        loops.spawn(Arc::clone(self).watch(Arc::clone(runtime), until.clone()));
        self.beat(runtime, &partitions_name(runtime));
        loops.spawn(Arc::clone(self).learn(Arc::clone(runtime), until.clone()));
    }

    /// Wakes the lanes of a cluster when the database reports that something is due there.
    async fn listen(self: Arc<Self>, stop: CancellationToken) {
        while !stop.is_cancelled() {
            let opened = self.store.listen_due().await;
            let Some(mut listener) = or_pause(LISTENING, opened, &stop).await else { continue };
            loop {
                let notice = tokio::select! {
                    biased;
                    () = stop.cancelled() => return,
                    notice = listener.next() => notice,
                };
                let Some(notice) = or_pause(LISTENING, notice, &stop).await else { break };
                for runtime in self.runtimes.borrow().iter() {
                    match &notice {
                        Some(notice) if notice.cluster != runtime.target.cluster.name => {}
                        Some(DueNotice { lane: Some(lane), .. }) => runtime.lane(*lane).notify_one(),
                        // None: the connection was lost and restored, and notices may have been missed.
                        Some(DueNotice { lane: None, .. }) | None => runtime.wake_lanes(),
                    }
                }
            }
        }
    }

    /// One lane of steps: takes what is due, then sleeps until something is due.
    async fn step(
        self: Arc<Self>,
        runtime: Arc<Runtime<L>>,
        lane: Lane,
        name: String,
        stop: CancellationToken,
    ) {
        while !stop.is_cancelled() {
            self.beat(&runtime, &name);
            // Before anything is leased: jobs that wait for the turn can still be canceled, or taken by another worker.
            let turn = tokio::select! {
                biased;
                () = stop.cancelled() => break,
                turn = runtime.turn(lane) => turn,
            };
            let taken = self.take_steps(&runtime, lane, turn).await;
            if or_pause("taking steps", taken, &stop).await != Some(0) {
                continue;
            }
            let due = self.store.next_due_in(&runtime.target.cluster.name, lane).await.ok().flatten();
            let due = match due {
                Some(due) if lane == Lane::Submit => Some(due.max(submission_wait(&runtime).await)),
                due => due,
            };
            sleep_or_wake(runtime.lane(lane), nap(due), &stop).await;
        }
    }

    /// The polls of one cluster, one at a time across all workers.
    async fn watch(self: Arc<Self>, runtime: Arc<Runtime<L>>, stop: CancellationToken) {
        let mut interval = runtime.target.pace.min;
        let name = poll_name(&runtime);
        while !stop.is_cancelled() {
            self.beat(&runtime, &name);
            let polled = self.poll_if_due(&runtime, interval).await;
            let Some(next) = or_pause("polling", polled, &stop).await else { continue };
            interval = next.unwrap_or(interval);
            let due = self.store.next_poll_in(&runtime.target.cluster.name).await.ok().flatten();
            let nap = due.unwrap_or(runtime.target.pace.min).clamp(MIN_NAP, SWEEP);
            sleep_or_wake(&runtime.poll_due, nap, &stop).await;
        }
    }

    /// Polls the cluster soon, because its jobs have just changed.
    pub(crate) async fn poll_soon(&self, runtime: &Runtime<L>) -> Result {
        let pace = runtime.target.pace.min.max(runtime.budget_pace());
        self.store.poll_soon(&runtime.target.cluster.name, pace).await?;
        runtime.poll_due.notify_one();
        Ok(())
    }

    pub(crate) fn beat(&self, runtime: &Runtime<L>, name: &str) {
        let mut beats = runtime.beats.lock().unwrap_or_else(PoisonError::into_inner);
        beats.insert(name.to_owned(), self.clock.now().timestamp());
    }
}

/// How long submissions wait for the RPC budget.
async fn submission_wait<L: ClusterLink>(runtime: &Runtime<L>) -> Duration {
    let meter = runtime.target.link.meter().await.ok().flatten();
    meter.map_or(Duration::ZERO, |meter| meter.wait(1, Urgency::Submit))
}

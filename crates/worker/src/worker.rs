//! The worker: which loops there are, and when they wake.
//!
//! Where two things can happen at once, the order in which they are looked at is given (`biased`): the same history is
//! then the same run, which the simulation needs.

use std::{
    collections::HashSet,
    sync::{Arc, PoisonError},
    time::Duration,
};

use chrono::TimeDelta;
use domain::{Clock, ClusterName, Graces, Ids, Timestamp};
use persistence::{DueNotice, DueNotices, Lane, Store, WorkStore};
use tokio::{sync::watch, task::JoinSet};
use tokio_util::sync::CancellationToken;

use crate::{
    Result,
    cluster_runtime::{
        ClusterRuntime, ClusterTarget, MIN_NAP, SWEEP, conversions_name, database_failed, nap,
        partitions_name, pause, poll_name,
    },
    link::cluster_link::ClusterLink,
};

#[derive(Debug, Clone, Copy)]
pub struct WorkerSettings {
    /// How long a lease lasts without being extended: the longest wait after a worker dies.
    pub lease: Duration,
    /// The most jobs that one remote command submits or concludes.
    pub batch: u32,
    pub graces: Graces,
    /// How often a cluster is asked for its partitions.
    pub partitions_every: Duration,
}

/// A loop ended that never ends by itself.
#[derive(Debug, thiserror::Error)]
#[error("a loop of the worker has died")]
pub struct WorkerError(#[from] tokio::task::JoinError);

/// Leases, observes, decides, acts and records, until it is told to stop.
#[derive(Debug)]
pub struct Worker<L, S = Store> {
    pub(crate) store: S,
    pub(crate) settings: WorkerSettings,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: Arc<dyn Ids>,
    /// They come and go while it runs.
    runtimes: watch::Sender<Vec<Arc<ClusterRuntime<L>>>>,
}

impl<L: ClusterLink, S: WorkStore> Worker<L, S> {
    /// Whoever has been given a lease knows what time it is: also on a machine that has just been stopped for an hour.
    pub(crate) fn hear(&self, granted_on: Option<Timestamp>, asked: Duration) {
        if let Some(time) = granted_on {
            self.clock.hear(time, asked);
        }
    }

    /// The waits that hold for a cluster: how long its nodes are kept away from is its own setting.
    pub(crate) fn graces(&self, runtime: &ClusterRuntime<L>) -> Graces {
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
        let runtime = |target| Arc::new(ClusterRuntime::new(target));
        Self {
            store,
            settings,
            clock,
            ids,
            runtimes: watch::Sender::new(targets.into_iter().map(runtime).collect()),
        }
    }

    /// Lets clusters go and takes others in, while it runs or before. One that is changed goes and comes at once: what is
    /// under way on the old one is finished beside the new one's loops, as it is beside another worker's.
    pub fn change(&self, gone: &HashSet<ClusterName>, come: Vec<ClusterTarget<L>>) {
        self.runtimes.send_modify(|runtimes| {
            runtimes.retain(|runtime| !gone.contains(&runtime.target.cluster.name));
            runtimes.extend(come.into_iter().map(|target| Arc::new(ClusterRuntime::new(target))));
        });
    }

    /// Whether the cluster's name still means this cluster. Asked once the right to a step is taken: from then on it
    /// cannot come to mean another one before the step is over, because something is under way on it.
    pub(crate) async fn is_still_meant(&self, runtime: &ClusterRuntime<L>) -> Result<bool> {
        let ClusterTarget { cluster, incarnation, .. } = &runtime.target;
        match incarnation {
            Some(incarnation) => self.store.is_incarnation(&cluster.name, *incarnation).await,
            None => Ok(true),
        }
    }

    #[cfg(test)]
    pub(crate) fn runtimes(&self) -> impl Iterator<Item = Arc<ClusterRuntime<L>>> + use<L, S> {
        self.runtimes.borrow().clone().into_iter()
    }

    /// The loops that have not come round for longer than `limit`, by name.
    pub fn silent_loops(&self, limit: Duration) -> Vec<String> {
        let latest = self.clock.now().timestamp() - i64::try_from(limit.as_secs()).unwrap_or(i64::MAX);
        self.runtimes.borrow().iter().flat_map(|runtime| runtime.silent_since(latest)).collect()
    }

    /// Runs all loops until `stop`; steps under way are finished first.
    pub async fn run(self: Arc<Self>, stop: CancellationToken) -> Result<(), WorkerError> {
        let mut loops = JoinSet::new();
        loops.spawn(Arc::clone(&self).listen(stop.clone()));
        let mut changes = self.runtimes.subscribe();
        let mut running: Vec<(Arc<ClusterRuntime<L>>, CancellationToken)> = Vec::new();
        loop {
            let runtimes = changes.borrow_and_update().clone();
            let is_among =
                |runtime: &Arc<ClusterRuntime<L>>| runtimes.iter().any(|other| Arc::ptr_eq(runtime, other));
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
        runtime: &Arc<ClusterRuntime<L>>,
        until: &CancellationToken,
    ) {
        // Two take submissions: while one stores what became of its batch, the other one's is under way.
        for (lane, named) in
            [(Lane::Submit, "submissions"), (Lane::Submit, "more submissions"), (Lane::Tend, "other steps")]
        {
            let name = format!("{named} of cluster {}", runtime.target.cluster.name);
            // Noted before it runs, so that one which never comes round is missed too.
            self.beat(runtime, &name);
            loops.spawn(Arc::clone(self).step(Arc::clone(runtime), lane, name, until.clone()));
        }
        self.beat(runtime, &conversions_name(runtime));
        loops.spawn(Arc::clone(self).convert(Arc::clone(runtime), until.clone()));
        self.beat(runtime, &poll_name(runtime));
        loops.spawn(Arc::clone(self).watch(Arc::clone(runtime), until.clone()));
        self.beat(runtime, &partitions_name(runtime));
        loops.spawn(Arc::clone(self).learn(Arc::clone(runtime), until.clone()));
    }

    /// Wakes the lanes of a cluster when the database says that something is due there.
    async fn listen(self: Arc<Self>, stop: CancellationToken) {
        while !stop.is_cancelled() {
            let mut listener = match self.store.listen_due().await {
                Ok(listener) => listener,
                Err(error) => {
                    database_failed("listening for due jobs", &error);
                    pause(SWEEP, &stop).await;
                    continue;
                }
            };
            loop {
                let notice = tokio::select! {
                    biased;
                    () = stop.cancelled() => return,
                    notice = listener.next() => notice,
                };
                match notice {
                    // None: the connection was lost and made again, and anything may have been missed.
                    Ok(notice) => {
                        for runtime in self.runtimes.borrow().iter() {
                            match &notice {
                                Some(notice) if notice.cluster != runtime.target.cluster.name => {}
                                Some(DueNotice { lane: Some(lane), .. }) => runtime.lane(*lane).notify_one(),
                                Some(DueNotice { lane: None, .. }) | None => runtime.wake_lanes(),
                            }
                        }
                    }
                    Err(error) => {
                        database_failed("listening for due jobs", &error);
                        pause(SWEEP, &stop).await;
                        break;
                    }
                }
            }
        }
    }

    /// One lane of steps: takes what is due until nothing is, then sleeps until something will be.
    async fn step(
        self: Arc<Self>,
        runtime: Arc<ClusterRuntime<L>>,
        lane: Lane,
        name: String,
        stop: CancellationToken,
    ) {
        while !stop.is_cancelled() {
            self.beat(&runtime, &name);
            // Before anything is leased: what waits for its turn can still be canceled, or taken by another worker.
            let turn = tokio::select! {
                biased;
                () = stop.cancelled() => break,
                turn = runtime.turn(lane) => turn,
            };
            let taken = match self.take_steps(&runtime, lane, turn).await {
                Ok(taken) => taken,
                Err(error) => {
                    database_failed("taking steps", &error);
                    pause(SWEEP, &stop).await;
                    continue;
                }
            };
            if taken > 0 {
                continue;
            }
            let due = self.store.next_due_in(&runtime.target.cluster.name, lane).await.ok().flatten();
            tokio::select! {
                biased;
                () = runtime.lane(lane).notified() => {}
                () = tokio::time::sleep(nap(due)) => {}
                () = stop.cancelled() => {}
            }
        }
    }

    /// The polls of one cluster, one at a time across all workers.
    async fn watch(self: Arc<Self>, runtime: Arc<ClusterRuntime<L>>, stop: CancellationToken) {
        let mut interval = runtime.target.pace.min;
        let name = poll_name(&runtime);
        while !stop.is_cancelled() {
            self.beat(&runtime, &name);
            match self.poll_if_due(&runtime, interval).await {
                Ok(Some(next)) => interval = next,
                Ok(None) => {}
                Err(error) => {
                    database_failed("polling", &error);
                    pause(SWEEP, &stop).await;
                    continue;
                }
            }
            let due = self.store.next_poll_in(&runtime.target.cluster.name).await.ok().flatten();
            let nap = due.unwrap_or(runtime.target.pace.min).clamp(MIN_NAP, SWEEP);
            tokio::select! {
                biased;
                () = runtime.poll_due.notified() => {}
                () = tokio::time::sleep(nap) => {}
                () = stop.cancelled() => {}
            }
        }
    }

    pub(crate) fn beat(&self, runtime: &ClusterRuntime<L>, name: &str) {
        let mut beats = runtime.beats.lock().unwrap_or_else(PoisonError::into_inner);
        beats.insert(name.to_owned(), self.clock.now().timestamp());
    }
}

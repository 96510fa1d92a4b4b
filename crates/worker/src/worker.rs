//! The worker: which loops there are, and when they wake.
//!
//! Where two things can happen at once, the order in which they are looked at is given (`biased`): the same history is
//! then the same run, which the simulation needs.

use std::{
    collections::{BTreeMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use chrono::TimeDelta;
use domain::{Clock, Cluster, ClusterName, Graces, Ids, Timestamp};
use persistence::{DueNotice, DueNotices, Lane, Store, StoreError, WorkStore};
use tokio::{
    sync::{Notify, watch},
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;

use crate::{
    link::{cluster_link::ClusterLink, counted},
    pace::Pace,
    partitions::partitions_name,
    poll::tick::Quiet,
};

/// A cluster that this worker serves.
#[derive(Debug, Clone)]
pub struct ClusterTarget<L> {
    pub cluster: Cluster,
    /// Which cluster this is, if its name may come to mean another one; none for one of the configuration file.
    pub incarnation: Option<i64>,
    pub link: L,
    pub pace: Pace,
}

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
    sites: watch::Sender<Vec<Arc<Site<L>>>>,
}

/// A cluster, what wakes its loops, and what they show of themselves.
#[derive(Debug)]
pub(crate) struct Site<L> {
    pub(crate) target: ClusterTarget<L>,
    /// When each loop last came round, in seconds since 1970.
    beats: Mutex<BTreeMap<String, i64>>,
    /// Whose turn it is to submit, and when a submission last took away what was abandoned, by the clock's uptime.
    submitting: tokio::sync::Mutex<Option<Duration>>,
    /// What polls need not read again.
    quiet: Mutex<Quiet>,
    submit_due: Notify,
    tend_due: Notify,
    conversion_due: Notify,
    poll_due: Notify,
}

/// The turn to submit: a cluster is asked for one submission at a time, which leaves the other session to polls.
pub(crate) type Turn<'a> = tokio::sync::MutexGuard<'a, Option<Duration>>;

/// What a worker may not do because the cluster's name means another one by now waits so long for one that may.
pub(crate) const OVERTAKEN: Duration = Duration::from_secs(1);

/// A lost wake-up is made good by a look at least this often.
pub(crate) const SWEEP: Duration = Duration::from_secs(5);

impl<L: ClusterLink, S: WorkStore> Worker<L, S> {
    /// Whoever has been given a lease knows what time it is: also on a machine that has just been stopped for an hour.
    pub(crate) fn hear(&self, granted_on: Option<Timestamp>, asked: Duration) {
        if let Some(time) = granted_on {
            self.clock.hear(time, asked);
        }
    }

    /// The waits that hold for a cluster: how long its nodes are kept away from is its own setting.
    pub(crate) fn graces(&self, site: &Site<L>) -> Graces {
        let mut graces = self.settings.graces;
        graces.retry.exclude_for = TimeDelta::hours(site.target.cluster.retries.node_exclusion_hours.into());
        graces
    }

    pub fn new(
        store: S,
        targets: Vec<ClusterTarget<L>>,
        settings: WorkerSettings,
        clock: Arc<dyn Clock>,
        ids: Arc<dyn Ids>,
    ) -> Self {
        let site = |target| Arc::new(Site::new(target));
        Self {
            store,
            settings,
            clock,
            ids,
            sites: watch::Sender::new(targets.into_iter().map(site).collect()),
        }
    }

    /// Lets clusters go and takes others in, while it runs or before. One that is changed goes and comes at once: what is
    /// under way on the old one is finished beside the new one's loops, as it is beside another worker's.
    pub fn change(&self, gone: &HashSet<ClusterName>, come: Vec<ClusterTarget<L>>) {
        self.sites.send_modify(|sites| {
            sites.retain(|site| !gone.contains(&site.target.cluster.name));
            sites.extend(come.into_iter().map(|target| Arc::new(Site::new(target))));
        });
    }

    /// Whether the cluster's name still means this cluster. Asked once the right to a step is taken: from then on it
    /// cannot come to mean another one before the step is over, because something is under way on it.
    pub(crate) async fn is_still_meant(&self, site: &Site<L>) -> Result<bool, StoreError> {
        let ClusterTarget { cluster, incarnation, .. } = &site.target;
        match incarnation {
            Some(incarnation) => self.store.is_incarnation(&cluster.name, *incarnation).await,
            None => Ok(true),
        }
    }

    #[cfg(test)]
    pub(crate) fn sites(&self) -> impl Iterator<Item = Arc<Site<L>>> + use<L, S> {
        self.sites.borrow().clone().into_iter()
    }

    /// The loops that have not come round for longer than `limit`, by name.
    pub fn silent_loops(&self, limit: Duration) -> Vec<String> {
        let latest = self.clock.now().timestamp() - i64::try_from(limit.as_secs()).unwrap_or(i64::MAX);
        self.sites.borrow().iter().flat_map(|site| site.silent_since(latest)).collect()
    }

    /// Runs all loops until `stop`; steps under way are finished first.
    pub async fn run(self: Arc<Self>, stop: CancellationToken) -> Result<(), WorkerError> {
        let mut loops = JoinSet::new();
        loops.spawn(Arc::clone(&self).listen(stop.clone()));
        let mut changes = self.sites.subscribe();
        let mut running: Vec<(Arc<Site<L>>, CancellationToken)> = Vec::new();
        loop {
            let sites = changes.borrow_and_update().clone();
            let is_among = |site: &Arc<Site<L>>| sites.iter().any(|other| Arc::ptr_eq(site, other));
            for (_, gone) in running.extract_if(.., |(site, _)| !is_among(site)) {
                gone.cancel();
            }
            for site in sites {
                if !running.iter().any(|(other, _)| Arc::ptr_eq(&site, other)) {
                    let until = stop.child_token();
                    self.start(&mut loops, &site, &until);
                    running.push((site, until));
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
    fn start(self: &Arc<Self>, loops: &mut JoinSet<()>, site: &Arc<Site<L>>, until: &CancellationToken) {
        // Two take submissions: while one stores what became of its batch, the other one's is under way.
        for (lane, named) in
            [(Lane::Submit, "submissions"), (Lane::Submit, "more submissions"), (Lane::Follow, "other steps")]
        {
            let name = format!("{named} of cluster {}", site.target.cluster.name);
            // Noted before it runs, so that one which never comes round is missed too.
            self.beat(site, &name);
            loops.spawn(Arc::clone(self).step(Arc::clone(site), lane, name, until.clone()));
        }
        self.beat(site, &conversions_name(site));
        loops.spawn(Arc::clone(self).convert(Arc::clone(site), until.clone()));
        self.beat(site, &poll_name(site));
        loops.spawn(Arc::clone(self).watch(Arc::clone(site), until.clone()));
        self.beat(site, &partitions_name(site));
        loops.spawn(Arc::clone(self).learn(Arc::clone(site), until.clone()));
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
                        for site in self.sites.borrow().iter() {
                            match &notice {
                                Some(notice) if notice.cluster != site.target.cluster.name => {}
                                Some(DueNotice { lane: Some(lane), .. }) => site.lane(*lane).notify_one(),
                                Some(DueNotice { lane: None, .. }) | None => site.wake_lanes(),
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
    async fn step(self: Arc<Self>, site: Arc<Site<L>>, lane: Lane, name: String, stop: CancellationToken) {
        while !stop.is_cancelled() {
            self.beat(&site, &name);
            // Before anything is leased: what waits for its turn can still be canceled, or taken by another worker.
            let turn = tokio::select! {
                biased;
                () = stop.cancelled() => break,
                turn = site.turn(lane) => turn,
            };
            let taken = match self.take_steps(&site, lane, turn).await {
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
            let due = self.store.next_due_in(&site.target.cluster.name, lane).await.ok().flatten();
            tokio::select! {
                biased;
                () = site.lane(lane).notified() => {}
                () = tokio::time::sleep(nap(due)) => {}
                () = stop.cancelled() => {}
            }
        }
    }

    /// The polls of one cluster, one at a time across all workers.
    async fn watch(self: Arc<Self>, site: Arc<Site<L>>, stop: CancellationToken) {
        let mut interval = site.target.pace.min;
        let name = poll_name(&site);
        while !stop.is_cancelled() {
            self.beat(&site, &name);
            match self.poll_if_due(&site, interval).await {
                Ok(Some(next)) => interval = next,
                Ok(None) => {}
                Err(error) => {
                    database_failed("polling", &error);
                    pause(SWEEP, &stop).await;
                    continue;
                }
            }
            let due = self.store.next_poll_in(&site.target.cluster.name).await.ok().flatten();
            let nap = due.unwrap_or(site.target.pace.min).clamp(MIN_NAP, SWEEP);
            tokio::select! {
                biased;
                () = site.poll_due.notified() => {}
                () = tokio::time::sleep(nap) => {}
                () = stop.cancelled() => {}
            }
        }
    }

    pub(crate) fn beat(&self, site: &Site<L>, name: &str) {
        let mut beats = site.beats.lock().unwrap_or_else(PoisonError::into_inner);
        beats.insert(name.to_owned(), self.clock.now().timestamp());
    }
}

pub(crate) fn conversions_name<L>(site: &Site<L>) -> String {
    format!("conversions of images of cluster {}", site.target.cluster.name)
}

fn poll_name<L>(site: &Site<L>) -> String {
    format!("poll of cluster {}", site.target.cluster.name)
}

pub(crate) fn database_failed(doing: &'static str, error: &StoreError) {
    use std::error::Error as _;
    let source = error.source().map(ToString::to_string);
    tracing::warn!(doing, error = %error, source, "the database failed; trying again");
}

/// The shortest sleep of a loop, so that a clock that disagrees never makes it spin.
pub(crate) const MIN_NAP: Duration = Duration::from_millis(50);

/// How long a lane sleeps whose next step falls due then. Rounded up a little: a step taken a moment too early is a
/// look for nothing.
fn nap(due: Option<Duration>) -> Duration {
    due.map_or(SWEEP, |due| due + Duration::from_millis(20)).clamp(MIN_NAP, SWEEP)
}

impl<L> Site<L> {
    fn new(target: ClusterTarget<L>) -> Self {
        counted::show(&target.cluster.name);
        Self {
            target,
            beats: Mutex::default(),
            submitting: tokio::sync::Mutex::default(),
            quiet: Mutex::default(),
            submit_due: Notify::new(),
            tend_due: Notify::new(),
            conversion_due: Notify::new(),
            poll_due: Notify::new(),
        }
    }

    /// What polls know to be no news. Not held while anything is awaited.
    pub(crate) fn quiet(&self) -> MutexGuard<'_, Quiet> {
        self.quiet.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The loops that last came round before that second.
    fn silent_since(&self, second: i64) -> Vec<String> {
        let beats = self.beats.lock().unwrap_or_else(PoisonError::into_inner);
        beats.iter().filter(|(_, beat)| **beat < second).map(|(name, _)| name.clone()).collect()
    }

    /// The turn that a lane has to wait for, if it has to.
    async fn turn(&self, lane: Lane) -> Option<Turn<'_>> {
        match lane {
            Lane::Submit => Some(self.submitting.lock().await),
            Lane::Follow => None,
        }
    }

    pub(crate) fn lane(&self, lane: Lane) -> &Notify {
        match lane {
            Lane::Submit => &self.submit_due,
            Lane::Follow => &self.tend_due,
        }
    }

    /// Something may be due: every lane looks.
    pub(crate) fn wake_lanes(&self) {
        self.submit_due.notify_one();
        self.tend_due.notify_one();
        self.conversion_due.notify_one();
    }

    /// Sleeps until a conversion is said to be due, or falls due, or a sweep is.
    pub(crate) async fn sleep_until_conversion(&self, due: Option<Duration>, stop: &CancellationToken) {
        tokio::select! {
            biased;
            () = self.conversion_due.notified() => {}
            () = tokio::time::sleep(nap(due)) => {}
            () = stop.cancelled() => {}
        }
    }

    pub(crate) fn wake_poll(&self) {
        self.poll_due.notify_one();
    }
}

pub(crate) async fn pause(time: Duration, stop: &CancellationToken) {
    tokio::select! {
        biased;
        () = tokio::time::sleep(time) => {}
        () = stop.cancelled() => {}
    }
}

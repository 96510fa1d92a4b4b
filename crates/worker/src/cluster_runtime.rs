//! The cluster runtime: the link, the wake-ups and the memory that a worker holds for one cluster.

use std::{
    collections::BTreeMap,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use domain::Cluster;
use persistence::{Lane, StoreError};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::{Result, link::counted, pace::Pace, poll::tick::Quiet};

/// A cluster that this worker serves.
#[derive(Debug, Clone)]
pub struct ClusterTarget<L> {
    pub cluster: Cluster,
    /// The incarnation of the cluster, if its name can later mean another cluster; none for a cluster of the configuration file.
    pub incarnation: Option<i64>,
    pub link: L,
    pub pace: Pace,
}

/// The runtime of one cluster.
#[derive(Debug)]
pub(crate) struct Runtime<L> {
    pub(crate) target: ClusterTarget<L>,
    /// When each loop last began a turn, in seconds since 1970.
    pub(crate) beats: Mutex<BTreeMap<String, i64>>,
    /// The turn to submit, with the time of the last sweep of abandoned files, by the clock's uptime.
    submitting: tokio::sync::Mutex<Option<Duration>>,
    /// The jobs that polls need not read again.
    quiet: Mutex<Quiet>,
    /// The shortest time between two polls that the RPC budget allows, in milliseconds.
    budget_pace: AtomicU64,
    submit_due: Notify,
    tend_due: Notify,
    pub(crate) poll_due: Notify,
}

/// The turn to submit. A cluster gets one submission at a time, which leaves the other session to polls.
pub(crate) type Turn<'a> = tokio::sync::MutexGuard<'a, Option<Duration>>;

/// The wait for another worker when this worker's cluster has been replaced by one of the same name.
pub(crate) const OVERTAKEN: Duration = Duration::from_secs(1);

/// The longest sleep of a lane, in case a wake-up was lost.
pub(crate) const SWEEP: Duration = Duration::from_secs(5);

pub(crate) fn partitions_name<L>(runtime: &Runtime<L>) -> String {
    format!("partitions of cluster {}", runtime.target.cluster.name)
}

pub(crate) fn poll_name<L>(runtime: &Runtime<L>) -> String {
    format!("poll of cluster {}", runtime.target.cluster.name)
}

pub(crate) fn database_failed(doing: &'static str, error: &StoreError) {
    use std::error::Error as _;
    let source = error.source().map(ToString::to_string);
    tracing::warn!(doing, error = %error, source, "the database failed; trying again");
}

/// The shortest sleep of a loop, so that clocks that disagree never make it spin.
pub(crate) const MIN_NAP: Duration = Duration::from_millis(50);

/// How long a lane sleeps until its next step is due. Rounded up a little, because a step that is taken too early finds
/// nothing.
pub(crate) fn nap(due: Option<Duration>) -> Duration {
    due.map_or(SWEEP, |due| due + Duration::from_millis(20)).clamp(MIN_NAP, SWEEP)
}

impl<L> Runtime<L> {
    pub(crate) fn new(target: ClusterTarget<L>) -> Self {
        counted::show(&target.cluster.name);
        Self {
            target,
            beats: Mutex::default(),
            submitting: tokio::sync::Mutex::default(),
            quiet: Mutex::default(),
            budget_pace: AtomicU64::new(0),
            submit_due: Notify::new(),
            tend_due: Notify::new(),
            poll_due: Notify::new(),
        }
    }

    /// The memory of polls. Not held across an await.
    pub(crate) fn quiet(&self) -> MutexGuard<'_, Quiet> {
        self.quiet.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn budget_pace(&self) -> Duration {
        Duration::from_millis(self.budget_pace.load(Ordering::Relaxed))
    }

    pub(crate) fn set_budget_pace(&self, pace: Duration) {
        self.budget_pace.store(u64::try_from(pace.as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// The loops whose last turn began before that second.
    pub(crate) fn silent_since(&self, second: i64) -> Vec<String> {
        let beats = self.beats.lock().unwrap_or_else(PoisonError::into_inner);
        beats.iter().filter(|(_, beat)| **beat < second).map(|(name, _)| name.clone()).collect()
    }

    /// The turn that a lane must wait for, if any.
    pub(crate) async fn turn(&self, lane: Lane) -> Option<Turn<'_>> {
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

    /// Wakes every lane, because something may be due.
    pub(crate) fn wake_lanes(&self) {
        self.submit_due.notify_one();
        self.tend_due.notify_one();
    }
}

/// The result; after an error of the database, none and a pause.
pub(crate) async fn or_pause<T>(
    doing: &'static str,
    result: Result<T>,
    stop: &CancellationToken,
) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(error) => {
            database_failed(doing, &error);
            pause(SWEEP, stop).await;
            None
        }
    }
}

/// Sleeps for a time, or until it is woken.
pub(crate) async fn sleep_or_wake(wake: &Notify, time: Duration, stop: &CancellationToken) {
    tokio::select! {
        biased;
        () = wake.notified() => {}
        () = tokio::time::sleep(time) => {}
        () = stop.cancelled() => {}
    }
}

pub(crate) async fn pause(time: Duration, stop: &CancellationToken) {
    tokio::select! {
        biased;
        () = tokio::time::sleep(time) => {}
        () = stop.cancelled() => {}
    }
}

//! A store in memory, for tests without a database. The test drives its clock.
//!
//! It behaves as `persistence::Store`; one suite checks both (`crates/persistence/tests/conformance`). A call holds one lock, as
//! the real store uses one statement, so it happens at one moment.

mod allocations;
mod due;
mod images;
mod incarnations;
mod needs;
mod orphans;
mod partitions;
mod polls;
mod records;
mod requests;
mod row;
mod rpc_budgets;
mod tasks;
mod turns;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    future::poll_fn,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Poll, Waker},
    time::Duration,
};

use chrono::TimeDelta;
use domain::{CachedImage, Clock, ClusterName, Job, JobId, RpcTokens, Timestamp};
use persistence::{DueNotice, DueNotices, JobEvent, Lane, StoreError, WorkStore};
use slurm::{JobName, RemotePath, SlurmJobId};
use uuid::Uuid;

use allocations::AccountRow;
use allocations::Allocated;
use partitions::PartitionsRow;
use polls::PollRow;
use row::JobRow;
pub use turns::{Right, Turn};

/// The store. Cheap to clone; clones share what is in it.
#[derive(Debug, Clone)]
pub struct MemoryStore {
    clock: Arc<dyn Clock>,
    tables: Arc<Mutex<Tables>>,
}

#[derive(Debug, Default)]
struct Tables {
    jobs: BTreeMap<JobId, JobRow>,
    deleted: BTreeSet<JobId>,
    polls: BTreeMap<ClusterName, PollRow>,
    /// By cluster and path.
    images: BTreeMap<(ClusterName, RemotePath), CachedImage>,
    partitions: BTreeMap<ClusterName, PartitionsRow>,
    incarnations: BTreeMap<ClusterName, i64>,
    budgets: BTreeMap<ClusterName, (RpcTokens, i64)>,
    accounts: BTreeMap<(JobName, SlurmJobId), AccountRow>,
    allocations: Allocated,
    listeners: Vec<Arc<Mutex<Inbox>>>,
    refused: Vec<String>,
    turns: Vec<Turn>,
}

/// A lease, as a row has it.
type Held = Option<(Uuid, Timestamp)>;

impl WorkStore for MemoryStore {}

impl MemoryStore {
    /// An empty store. `clock` stands for the server clock: it decides what is due and which leases have ended.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, tables: Arc::default() }
    }

    fn tables(&self) -> MutexGuard<'_, Tables> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Every stored job, including those whose files are still to be removed.
    pub fn all_jobs(&self) -> Vec<Job> {
        self.tables().jobs.values().map(JobRow::current).collect()
    }

    /// All events of a job, in order.
    pub fn events_of(&self, job: JobId) -> Vec<JobEvent> {
        self.tables().jobs.get(&job).map(|row| row.events.clone()).unwrap_or_default()
    }

    /// Whether the store has secrets of the job.
    pub fn has_secrets(&self, job: JobId) -> bool {
        self.tables().jobs.get(&job).is_some_and(|row| row.secrets.is_some())
    }

    /// States that violated a constraint of the schema: the database would have refused them.
    pub fn refused(&self) -> Vec<String> {
        self.tables().refused.clone()
    }
}

impl Tables {
    /// Notifies all listeners that the cluster has due work.
    fn wake(&mut self, cluster: &ClusterName, lane: Option<Lane>) {
        self.listeners.retain(|inbox| Arc::strong_count(inbox) > 1);
        for inbox in &self.listeners {
            let mut inbox = inbox.lock().unwrap_or_else(PoisonError::into_inner);
            inbox.notices.push_back(DueNotice { cluster: cluster.clone(), lane });
            if let Some(waker) = inbox.waker.take() {
                waker.wake();
            }
        }
    }
}

fn is_held(held: Held, token: Uuid, now: Timestamp) -> bool {
    held.is_some_and(|(by, until)| by == token && until > now)
}

fn is_free(held: Held, now: Timestamp) -> bool {
    held.is_none_or(|(_, until)| until <= now)
}

fn after(now: Timestamp, time: Duration) -> Timestamp {
    now + TimeDelta::from_std(time).unwrap_or(TimeDelta::MAX)
}

fn until(due: Timestamp, now: Timestamp) -> Duration {
    (due - now).to_std().unwrap_or(Duration::ZERO)
}

/// Notices that a listener has not read yet.
#[derive(Debug, Default)]
struct Inbox {
    notices: VecDeque<DueNotice>,
    waker: Option<Waker>,
}

/// Reports clusters that have due work.
#[derive(Debug)]
pub struct MemoryNotices(Arc<Mutex<Inbox>>);

impl DueNotices for MemoryNotices {
    async fn next(&mut self) -> Result<Option<DueNotice>, StoreError> {
        poll_fn(|context| {
            let mut inbox = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(notice) = inbox.notices.pop_front() {
                return Poll::Ready(Ok(Some(notice)));
            }
            inbox.waker = Some(context.waker().clone());
            Poll::Pending
        })
        .await
    }
}

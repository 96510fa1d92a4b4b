//! The database of a test that has no database: all in memory, by a clock that the test drives.
//!
//! It keeps the promises of `persistence::Store` and is held to them by the suite that runs against both
//! (`crates/persistence/tests/conformance`). What the real one does with a statement is done here with one lock held, so a
//! call happens at one moment.

mod conversions;
mod due;
mod incarnations;
mod orphans;
mod partitions;
mod polls;
mod records;
mod row;
mod turns;
mod wishes;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    future::poll_fn,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Poll, Waker},
    time::Duration,
};

use chrono::TimeDelta;
use domain::{Clock, ClusterName, Job, JobId, Timestamp};
use persistence::{DueNotice, DueNotices, JobEvent, Lane, StoreError};
use uuid::Uuid;

use conversions::{ConversionRow, Wait};
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
    conversions: BTreeMap<Uuid, ConversionRow>,
    waits: BTreeMap<JobId, Wait>,
    partitions: BTreeMap<ClusterName, PartitionsRow>,
    incarnations: BTreeMap<ClusterName, i64>,
    listeners: Vec<Arc<Mutex<Inbox>>>,
    refused: Vec<String>,
    turns: Vec<Turn>,
}

/// A lease, as a row has it.
type Held = Option<(Uuid, Timestamp)>;

impl MemoryStore {
    /// An empty one. `clock` is the database's own: what is due and which lease has ended is told by it.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, tables: Arc::default() }
    }

    fn tables(&self) -> MutexGuard<'_, Tables> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Every job that is stored, those included that wait for their removal.
    pub fn all_jobs(&self) -> Vec<Job> {
        self.tables().jobs.values().map(JobRow::current).collect()
    }

    /// All that happened to a job, in order.
    pub fn events_of(&self, job: JobId) -> Vec<JobEvent> {
        self.tables().jobs.get(&job).map(|row| row.events.clone()).unwrap_or_default()
    }

    /// Whether secrets of the job are stored.
    pub fn keeps_secrets(&self, job: JobId) -> bool {
        self.tables().jobs.get(&job).is_some_and(|row| row.secrets.is_some())
    }

    /// States that broke a rule of the schema, and that the database would have refused.
    pub fn refused(&self) -> Vec<String> {
        self.tables().refused.clone()
    }
}

impl Tables {
    /// Tells all who listen that the cluster has something due.
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

/// What somebody who listens has not heard yet.
#[derive(Debug, Default)]
struct Inbox {
    notices: VecDeque<DueNotice>,
    waker: Option<Waker>,
}

/// Hears of clusters that have something due.
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

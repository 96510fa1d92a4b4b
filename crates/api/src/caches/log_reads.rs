//! Batches the log reads of followers: one remote command per cluster at a time, and one question for all that read the
//! same bytes.
//!
//! No task drives a batch. It is a shared future that any of its waiters polls, and it is dropped with the last of them.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use domain::ClusterName;
use futures_util::{
    FutureExt,
    future::{BoxFuture, Shared, WeakShared},
};
use remote::{LogAnswer, LogQuestion};
use tokio::{
    sync::{Mutex as Turn, OwnedSemaphorePermit, Semaphore},
    time::{Instant, sleep, timeout},
};

use crate::ports::{LogSource, LogUnavailable};

/// A batch waits this long for more reads.
const GATHER: Duration = Duration::from_millis(20);
/// The most bytes that one remote command may return.
const MOST_BYTES: u64 = 8 * 1024 * 1024;

type Answers = Result<Arc<Vec<Arc<LogAnswer>>>, LogUnavailable>;
type Batch = BoxFuture<'static, Answers>;

/// Batches log reads; one for the process.
pub(crate) struct LogReads {
    source: Arc<dyn LogSource>,
    patience: Duration,
    at_a_time: usize,
    lanes: Mutex<HashMap<ClusterName, Lane>>,
    begun: Instant,
}

/// The reads of one cluster.
struct Lane {
    /// Held by the batch that runs.
    turn: Arc<Turn<()>>,
    /// Permits for reads outside the batches.
    singles: Arc<Semaphore>,
    /// The batch that others can still join.
    open: Option<(Arc<Mutex<Gathered>>, WeakShared<Batch>)>,
}

#[derive(Default)]
struct Gathered {
    questions: Vec<LogQuestion>,
    bytes: u64,
    closed: bool,
}

impl Gathered {
    /// The places of the answers; none if the batch is closed or full.
    fn join(&mut self, questions: &[LogQuestion]) -> Option<Vec<usize>> {
        let bytes: u64 = questions.iter().map(bytes_of).fold(0, u64::saturating_add);
        let is_first = self.questions.is_empty();
        if self.closed || (!is_first && self.bytes.saturating_add(bytes) > MOST_BYTES) {
            return None;
        }
        Some(questions.iter().map(|question| self.place(question)).collect())
    }

    fn place(&mut self, question: &LogQuestion) -> usize {
        if let Some(place) = self.questions.iter().position(|known| known == question) {
            return place;
        }
        self.bytes = self.bytes.saturating_add(bytes_of(question));
        self.questions.push(question.clone());
        self.questions.len() - 1
    }
}

/// The most bytes that a question can return.
fn bytes_of(question: &LogQuestion) -> u64 {
    match question {
        LogQuestion::Part { max_bytes, .. } => *max_bytes,
        LogQuestion::Files { most, .. } => u64::from(*most) * 16,
        LogQuestion::Search { most, .. } => u64::from(*most) * 2048,
    }
}

impl LogReads {
    /// `patience` bounds each remote command, `at_a_time` the concurrent [`Self::at_once`] reads of one cluster.
    pub(crate) fn new(source: Arc<dyn LogSource>, patience: Duration, at_a_time: usize) -> Self {
        Self { source, patience, at_a_time, lanes: Mutex::default(), begun: Instant::now() }
    }

    /// The time since the start of the grid on which followers poll.
    pub(crate) fn elapsed(&self) -> Duration {
        self.begun.elapsed()
    }

    /// A permit for [`Self::at_once`]; the caller bounds the wait.
    pub(crate) async fn turn(&self, cluster: &ClusterName) -> Option<OwnedSemaphorePermit> {
        let singles = Arc::clone(&self.lanes().entry(cluster.clone()).or_insert_with(|| self.lane()).singles);
        singles.acquire_owned().await.ok()
    }

    /// Reads without joining a batch.
    pub(crate) async fn at_once(
        &self,
        cluster: &ClusterName,
        questions: Vec<LogQuestion>,
    ) -> Result<Vec<LogAnswer>, LogUnavailable> {
        within(self.patience, self.source.ask(cluster, questions)).await
    }

    /// Joins a batch with other reads.
    pub(crate) async fn together(
        &self,
        cluster: &ClusterName,
        questions: &[LogQuestion],
    ) -> Result<Vec<Arc<LogAnswer>>, LogUnavailable> {
        let (places, batch) = self.join(cluster, questions);
        let answers = batch.await?;
        let mine: Option<Vec<_>> = places.iter().map(|place| answers.get(*place).cloned()).collect();
        mine.ok_or_else(|| LogUnavailable { detail: "the cluster's answer is incomplete".to_owned() })
    }

    fn join(&self, cluster: &ClusterName, questions: &[LogQuestion]) -> (Vec<usize>, Shared<Batch>) {
        let mut lanes = self.lanes();
        let lane = lanes.entry(cluster.clone()).or_insert_with(|| self.lane());
        if let Some((gathered, batch)) = &lane.open
            && let Some(batch) = batch.upgrade()
            && let Some(places) = lock(gathered).join(questions)
        {
            return (places, batch);
        }
        let gathered = Arc::new(Mutex::new(Gathered::default()));
        let places = lock(&gathered).join(questions).unwrap_or_default();
        let (turn, source) = (Arc::clone(&lane.turn), Arc::clone(&self.source));
        let batch = carried_out(turn, Arc::clone(&gathered), source, cluster.clone(), self.patience);
        let batch = batch.boxed().shared();
        lane.open = batch.downgrade().map(|weak| (gathered, weak));
        (places, batch)
    }

    fn lane(&self) -> Lane {
        Lane { turn: Arc::default(), singles: Arc::new(Semaphore::new(self.at_a_time)), open: None }
    }

    fn lanes(&self) -> MutexGuard<'_, HashMap<ClusterName, Lane>> {
        lock(&self.lanes)
    }
}

/// No code under these locks can panic halfway through a change.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn carried_out(
    turn: Arc<Turn<()>>,
    gathered: Arc<Mutex<Gathered>>,
    source: Arc<dyn LogSource>,
    cluster: ClusterName,
    patience: Duration,
) -> Answers {
    let _turn = turn.lock().await;
    sleep(GATHER).await;
    let questions = {
        let mut gathered = lock(&gathered);
        gathered.closed = true;
        std::mem::take(&mut gathered.questions)
    };
    let answers = within(patience, source.ask(&cluster, questions)).await?;
    Ok(Arc::new(answers.into_iter().map(Arc::new).collect()))
}

async fn within<T>(
    patience: Duration,
    reading: impl Future<Output = Result<T, LogUnavailable>>,
) -> Result<T, LogUnavailable> {
    timeout(patience, reading).await.unwrap_or_else(|_| {
        Err(LogUnavailable { detail: format!("the cluster did not answer within {} s", patience.as_secs()) })
    })
}

#[cfg(test)]
#[path = "log_reads_tests.rs"]
mod tests;

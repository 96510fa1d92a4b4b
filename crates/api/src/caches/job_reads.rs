//! Batches concurrent reads of jobs into few statements.
//!
//! Hundreds of dashboards read statuses every few seconds; one statement for each would repeat the same work. A read
//! that arrives while a statement runs joins the next statement, so the cost of each read falls as their number grows. For a
//! cached job only the version is read (`known_jobs`): an answer is never older than its request.

use std::{
    collections::HashMap,
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use domain::{Job, JobId};
use persistence::StoreError;
use tokio::sync::oneshot;
use tokio_util::task::TaskTracker;

mod known_jobs;

pub(crate) use known_jobs::KnownJobs;

/// The most jobs of one statement, because documents may be large.
const BATCH: usize = 256;
/// A statement without a reply for this long is given up. A dead connection may hang for a quarter of an hour, and later
/// reads wait behind it.
const PATIENCE: Duration = Duration::from_secs(10);

/// The job, or none if it does not exist or cannot be read. All readers of a batch share its error.
type Answer = Result<Option<Arc<Job>>, Arc<StoreError>>;
type Found = Result<HashMap<JobId, Arc<Job>>, StoreError>;
type Reading = Pin<Box<dyn Future<Output = Found> + Send>>;

/// Reads jobs in batches. Cheap to clone.
#[derive(Clone)]
pub(crate) struct JobReads(Arc<Shared>);

struct Shared {
    errands: TaskTracker,
    read: Box<dyn Fn(Vec<JobId>) -> Reading + Send + Sync>,
    desk: Mutex<Desk>,
}

#[derive(Default)]
struct Desk {
    waiting: HashMap<JobId, Vec<oneshot::Sender<Answer>>>,
    /// A reader runs. A second one would double the statements and halve their size.
    is_read: bool,
}

impl JobReads {
    /// `read` returns those of the jobs that exist; it runs as one of `errands`.
    pub(crate) fn new(
        errands: TaskTracker,
        read: impl Fn(Vec<JobId>) -> Reading + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(Shared { errands, read: Box::new(read), desk: Mutex::default() }))
    }

    /// The job, if it exists and can be read.
    pub(crate) async fn find(&self, id: JobId) -> Answer {
        let (sender, answer) = oneshot::channel();
        let needs_reader = {
            let mut desk = self.0.desk();
            desk.waiting.entry(id).or_default().push(sender);
            !std::mem::replace(&mut desk.is_read, true)
        };
        if needs_reader {
            // Not in the request's own task: other callers wait for the same reader.
            let mut reader = Reader { shared: Arc::clone(&self.0), leaves: false };
            self.0.errands.spawn(async move { reader.read_all().await });
        }
        // After a panic of the reader the caller reads the job by itself.
        answer.await.unwrap_or(Ok(None))
    }
}

impl Shared {
    fn desk(&self) -> MutexGuard<'_, Desk> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Reader {
    shared: Arc<Shared>,
    /// The reader has stopped in order.
    leaves: bool,
}

impl Reader {
    async fn read_all(&mut self) {
        while let Some(turn) = self.next_turn() {
            let reading = (self.shared.read)(turn.keys().copied().collect());
            let found = tokio::time::timeout(PATIENCE, reading).await;
            deliver(turn, found.unwrap_or(Err(StoreError::Late)));
        }
    }

    /// None when no caller waits. Stops under the same lock, so that the next caller starts a new reader.
    fn next_turn(&mut self) -> Option<Turn> {
        let mut desk = self.shared.desk();
        let turn = take(&mut desk.waiting);
        if turn.is_empty() {
            desk.is_read = false;
            self.leaves = true;
            return None;
        }
        Some(turn)
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        if !self.leaves {
            // A panic, or the end of the runtime.
            let mut desk = self.shared.desk();
            desk.is_read = false;
            desk.waiting.clear();
        }
    }
}

type Turn = HashMap<JobId, Vec<oneshot::Sender<Answer>>>;

/// The next batch.
fn take(waiting: &mut Turn) -> Turn {
    if waiting.len() <= BATCH {
        return std::mem::take(waiting);
    }
    let next: Vec<_> = waiting.keys().take(BATCH).copied().collect();
    next.into_iter().filter_map(|id| waiting.remove_entry(&id)).collect()
}

fn deliver(turn: Turn, found: Found) {
    let mut found = found.map_err(Arc::new);
    for (id, waiting) in turn {
        let answer = match &mut found {
            Ok(jobs) => Ok(jobs.remove(&id)),
            Err(error) => Err(Arc::clone(error)),
        };
        for one in waiting {
            // A caller that has gone away needs no answer.
            let _ = one.send(answer.clone());
        }
    }
}

#[cfg(test)]
mod tests;

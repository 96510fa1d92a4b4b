//! One statement for all who ask for a job at the same time.
//!
//! Hundreds of dashboards ask for statuses every few seconds; a statement for each would have Postgres and this process do the same
//! work hundreds of times. Whoever asks while a statement is under way waits for the next one, together with all who came
//! meanwhile, so the more there are the fewer statements each costs. Of a job that is remembered only the version is read
//! (`known_jobs`): what an answer shows was in the database after its question had come.

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

/// The most jobs of one statement: a document may be large.
const BATCH: usize = 256;
/// A statement that has no answer for so long is given up: whoever comes next waits behind it, and a connection may hang for a
/// quarter of an hour.
const PATIENCE: Duration = Duration::from_secs(10);

/// A job for whoever asked, or none that can be read; an error is everybody's.
type Answer = Result<Option<Arc<Job>>, Arc<StoreError>>;
type Found = Result<HashMap<JobId, Arc<Job>>, StoreError>;
type Reading = Pin<Box<dyn Future<Output = Found> + Send>>;

/// Reads jobs for all. Cheap to clone.
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
    /// Somebody reads. With a second one the statements would be twice as many, and each for half as many.
    is_read: bool,
}

impl JobReads {
    /// `read` reads those of the jobs that are there; whoever calls it is one of `errands`.
    pub(crate) fn new(
        errands: TaskTracker,
        read: impl Fn(Vec<JobId>) -> Reading + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(Shared { errands, read: Box::new(read), desk: Mutex::default() }))
    }

    /// The job, if it is there and can be read.
    pub(crate) async fn find(&self, id: JobId) -> Answer {
        let (tell, told) = oneshot::channel();
        let needs_reader = {
            let mut desk = self.0.desk();
            desk.waiting.entry(id).or_default().push(tell);
            !std::mem::replace(&mut desk.is_read, true)
        };
        if needs_reader {
            // Not in the request's own task: a caller who goes away leaves others waiting.
            let mut reader = Reader { shared: Arc::clone(&self.0), leaves: false };
            self.0.errands.spawn(async move { reader.read_all().await });
        }
        // A reader that panicked has told nobody anything: then it is as if there were none.
        told.await.unwrap_or(Ok(None))
    }
}

impl Shared {
    fn desk(&self) -> MutexGuard<'_, Desk> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Reader {
    shared: Arc<Shared>,
    /// It has given its place back.
    leaves: bool,
}

impl Reader {
    async fn read_all(&mut self) {
        while let Some(turn) = self.next_turn() {
            let reading = (self.shared.read)(turn.keys().copied().collect());
            let found = tokio::time::timeout(PATIENCE, reading).await;
            tell(turn, found.unwrap_or(Err(StoreError::Late)));
        }
    }

    /// None when nobody waits. Its place is given back under the same lock, so that whoever comes next sees that he needs a reader.
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
            // It panicked, or the runtime ends.
            let mut desk = self.shared.desk();
            desk.is_read = false;
            desk.waiting.clear();
        }
    }
}

type Turn = HashMap<JobId, Vec<oneshot::Sender<Answer>>>;

/// Those whose turn it is.
fn take(waiting: &mut Turn) -> Turn {
    if waiting.len() <= BATCH {
        return std::mem::take(waiting);
    }
    let next: Vec<_> = waiting.keys().take(BATCH).copied().collect();
    next.into_iter().filter_map(|id| waiting.remove_entry(&id)).collect()
}

fn tell(turn: Turn, found: Found) {
    let mut found = found.map_err(Arc::new);
    for (id, waiting) in turn {
        let answer = match &mut found {
            Ok(jobs) => Ok(jobs.remove(&id)),
            Err(error) => Err(Arc::clone(error)),
        };
        for one in waiting {
            // Who has gone away needs no answer.
            let _ = one.send(answer.clone());
        }
    }
}

#[cfg(test)]
mod tests;

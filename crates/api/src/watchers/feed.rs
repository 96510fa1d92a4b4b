//! One reader of the database for all who watch jobs: what it reads goes to each of them through memory, so that a change
//! costs one question however many watch.
//!
//! It is woken by the database (NOTIFY), looks by itself now and then in case a word was lost, and hands out two things:
//! events, in the one order that they have, and the newest state of jobs that somebody waits for.

use std::{
    collections::{HashMap, HashSet},
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use domain::{Clock, Job, JobId};
use persistence::{FeedFilter, JobNotice, Store, StoreError, Viewer};
use tokio::{
    sync::{Notify, broadcast, watch},
    time::Instant,
};
use tokio_util::sync::CancellationToken;

mod published;

pub(crate) use published::{Outlook, Published};

/// The next look after one that failed.
const AGAIN: Duration = Duration::from_millis(250);
/// For so many times as long as a look took nothing is looked for: what changes meanwhile is read together. Where little
/// changes that is a few milliseconds.
const REST: u32 = 3;
/// But no longer, so that who watches is told in time.
const LONGEST_REST: Duration = Duration::from_millis(50);
const PAGE: u32 = 1000;
/// How many events a watcher of all jobs may be behind before it reads the database itself.
const HELD_OF_ALL: usize = 4096;
/// The same, of one job.
const HELD_OF_ONE: usize = 128;

/// The state of a job that is waited for, as it was read last.
#[derive(Debug, Clone)]
pub(crate) enum Newest {
    /// Not read since somebody waits for it.
    Unread,
    Job(Arc<Job>),
    Gone,
}

/// Reads for all watchers of this process.
pub struct Feed {
    store: Store,
    clock: Arc<dyn Clock>,
    sweep: Duration,
    has_begun: watch::Sender<bool>,
    of_all: broadcast::Sender<Arc<Published>>,
    of_one: Mutex<HashMap<JobId, broadcast::Sender<Arc<Published>>>>,
    waited_for: Mutex<HashMap<JobId, watch::Sender<Newest>>>,
    changed: Mutex<Changed>,
    woken: Notify,
}

/// Which of the jobs that are waited for have to be read.
#[derive(Debug, Default)]
struct Changed {
    jobs: HashSet<JobId>,
    any: bool,
}

impl fmt::Debug for Feed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Feed").finish_non_exhaustive()
    }
}

impl Feed {
    /// A lost word is made good by a look this often.
    pub const SWEEP: Duration = Duration::from_secs(5);

    /// `sweep` is how often it looks though nothing was said.
    pub fn new(store: Store, clock: Arc<dyn Clock>, sweep: Duration) -> Self {
        Self {
            store,
            clock,
            sweep,
            has_begun: watch::Sender::new(false),
            of_all: broadcast::Sender::new(HELD_OF_ALL),
            of_one: Mutex::default(),
            waited_for: Mutex::default(),
            changed: Mutex::default(),
            woken: Notify::new(),
        }
    }

    /// Reads until `stop`.
    pub async fn run(&self, stop: CancellationToken) {
        tokio::join!(self.listen(&stop), self.read(&stop));
    }

    /// The events of all jobs from now on. Whoever has these reads what came before from the database: what is there by
    /// then and what comes here leave no gap.
    pub(crate) async fn events(&self) -> broadcast::Receiver<Arc<Published>> {
        let receiver = self.of_all.subscribe();
        self.begun().await;
        receiver
    }

    /// The same, of one job.
    pub(crate) async fn events_of(&self, job: JobId) -> broadcast::Receiver<Arc<Published>> {
        let receiver = locked(&self.of_one)
            .entry(job)
            .or_insert_with(|| broadcast::Sender::new(HELD_OF_ONE))
            .subscribe();
        self.begun().await;
        receiver
    }

    /// The job whenever it has changed from now on.
    pub(crate) fn changes_of(&self, job: JobId) -> watch::Receiver<Newest> {
        locked(&self.waited_for).entry(job).or_insert_with(|| watch::Sender::new(Newest::Unread)).subscribe()
    }

    /// Before the first look it is not known which events somebody who watches would be told.
    async fn begun(&self) {
        // An error means that there will be no look any more: the watcher's own reading tells why.
        let _ = self.has_begun.subscribe().wait_for(|begun| *begun).await;
    }

    async fn listen(&self, stop: &CancellationToken) {
        while let Some(error) = stop.run_until_cancelled(self.hear()).await {
            tracing::warn!(%error, "cannot hear of changed jobs; looking for them by the clock");
            if stop.run_until_cancelled(tokio::time::sleep(self.sweep)).await.is_none() {
                return;
            }
        }
    }

    /// Hears of changes until the database fails.
    async fn hear(&self) -> StoreError {
        let mut listener = match self.store.listen_jobs().await {
            Ok(listener) => listener,
            Err(error) => return error,
        };
        self.note(JobNotice::Missed);
        loop {
            match listener.next().await {
                Ok(notice) => self.note(notice),
                Err(error) => return error,
            }
        }
    }

    fn note(&self, notice: JobNotice) {
        match notice {
            JobNotice::Changed(job) if locked(&self.waited_for).contains_key(&job) => {
                locked(&self.changed).jobs.insert(job);
            }
            JobNotice::Changed(_) => {}
            JobNotice::Missed => locked(&self.changed).any = true,
        }
        // Words that come while a look is under way are one more look.
        self.woken.notify_one();
    }

    async fn read(&self, stop: &CancellationToken) {
        let (mut read, mut swept) = (None, Instant::now());
        while !stop.is_cancelled() {
            if swept.elapsed() >= self.sweep {
                swept = Instant::now();
                self.forget_the_unwatched();
                locked(&self.changed).any = true;
            }
            let began = Instant::now();
            let pause = match stop.run_until_cancelled(self.look(&mut read)).await {
                Some(Ok(())) => {
                    let rest = (began.elapsed() * REST).min(LONGEST_REST);
                    stop.run_until_cancelled(tokio::time::sleep(rest)).await;
                    self.sweep
                }
                Some(Err(error)) => {
                    tracing::warn!(%error, "cannot read what has changed; trying again");
                    locked(&self.changed).any = true;
                    AGAIN
                }
                None => return,
            };
            tokio::select! {
                () = self.woken.notified() => {}
                () = tokio::time::sleep(pause) => {}
                () = stop.cancelled() => {}
            }
        }
    }

    /// One look: new events, and jobs that have changed. `read` is how far events were read.
    async fn look(&self, read: &mut Option<u64>) -> Result<(), StoreError> {
        let changed = std::mem::take(&mut *locked(&self.changed));
        ::metrics::counter!("outbox_reads_total").increment(1);
        let head = self.store.place_events().await?;
        let mut at = *read.get_or_insert(head);
        self.has_begun.send_replace(true);
        if at == head {
            // Nothing to tell is not late.
            ::metrics::gauge!("outbox_lag_seconds").set(0.0);
        }
        while at < head {
            let page = self.store.feed(&Viewer::All, &FeedFilter::default(), at, head, PAGE).await?;
            if let Some(last) = page.events.last() {
                let lag = self.clock.now() - last.event.at;
                ::metrics::gauge!("outbox_lag_seconds").set(lag.as_seconds_f64().max(0.0));
            }
            for event in page.events {
                self.publish(Arc::new(Published::new(event)));
            }
            at = page.through;
            *read = Some(at);
        }
        self.read_jobs(changed).await
    }

    fn publish(&self, event: Arc<Published>) {
        if let Some(sender) = locked(&self.of_one).get(&event.job) {
            // Nobody may be there any more.
            let _ = sender.send(Arc::clone(&event));
        }
        let _ = self.of_all.send(event);
    }

    async fn read_jobs(&self, changed: Changed) -> Result<(), StoreError> {
        let wanted: Vec<JobId> = {
            let waited_for = locked(&self.waited_for);
            let is_wanted = |job: &&JobId| changed.any || changed.jobs.contains(job);
            waited_for.keys().filter(is_wanted).copied().collect()
        };
        if wanted.is_empty() {
            return Ok(());
        }
        let mut found = self.store.find_jobs(&wanted).await?;
        let waited_for = locked(&self.waited_for);
        for id in &wanted {
            let newest = found.remove(id).map_or(Newest::Gone, |job| Newest::Job(Arc::new(job)));
            if let Some(sender) = waited_for.get(id) {
                sender.send_replace(newest);
            }
        }
        Ok(())
    }

    fn forget_the_unwatched(&self) {
        locked(&self.of_one).retain(|_, sender| sender.receiver_count() > 0);
        locked(&self.waited_for).retain(|_, sender| sender.receiver_count() > 0);
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

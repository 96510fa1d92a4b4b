//! One reader of the database for all watchers: it distributes changes through memory, so that a change costs one query
//! whatever the number of watchers.
//!
//! Postgres notifications (NOTIFY) wake it, and a periodic sweep finds changes without one. It distributes events in their
//! order, and the newest state of jobs that callers wait for.

use std::{
    collections::{HashMap, HashSet},
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use axum::response::sse::Event;
use domain::{Clock, Job, JobId, Owner, Status};
use persistence::{FeedEvent, FeedFilter, JobNotice, Store, StoreError, Viewer};
use tokio::{
    sync::{Notify, broadcast, watch},
    time::Instant,
};
use tokio_util::sync::CancellationToken;

use crate::{calls::event_id::EventId, view::EventView};

/// The pause after a failed read.
const RETRY_AFTER: Duration = Duration::from_millis(250);
/// The rest between reads, as a multiple of the last read's duration, so that changes are read together.
const REST: u32 = 3;
/// The longest rest, so that watchers learn of changes in time.
const LONGEST_REST: Duration = Duration::from_millis(50);
const PAGE: u32 = 1000;
/// How far a watcher of all jobs may lag before it reads the database itself.
const HELD_OF_ALL: usize = 4096;
/// The same for a watcher of one job.
const HELD_OF_ONE: usize = 128;

/// The last read state of a job that callers wait for.
#[derive(Debug, Clone)]
pub(crate) enum Newest {
    /// Not read since a caller waits for it.
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

/// The awaited jobs to read.
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
    /// The usual interval of the sweep.
    pub const SWEEP: Duration = Duration::from_secs(5);

    /// `sweep` is the interval of reads without a notification.
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

    /// Runs until `stop`.
    pub async fn run(&self, stop: CancellationToken) {
        tokio::join!(self.listen(&stop), self.read(&stop));
    }

    /// The events of all jobs from now on. The caller then reads earlier events from the database; together they leave no
    /// gap.
    pub(crate) async fn events(&self) -> broadcast::Receiver<Arc<Published>> {
        let receiver = self.of_all.subscribe();
        self.begun().await;
        receiver
    }

    /// The same for one job.
    pub(crate) async fn events_of(&self, job: JobId) -> broadcast::Receiver<Arc<Published>> {
        let receiver = locked(&self.of_one)
            .entry(job)
            .or_insert_with(|| broadcast::Sender::new(HELD_OF_ONE))
            .subscribe();
        self.begun().await;
        receiver
    }

    /// The state of the job after each change.
    pub(crate) fn changes_of(&self, job: JobId) -> watch::Receiver<Newest> {
        locked(&self.waited_for).entry(job).or_insert_with(|| watch::Sender::new(Newest::Unread)).subscribe()
    }

    /// Before the first read it is unknown which events are new.
    async fn begun(&self) {
        // On an error no read will follow; the watcher's own read reports the reason.
        let _ = self.has_begun.subscribe().wait_for(|begun| *begun).await;
    }

    async fn listen(&self, stop: &CancellationToken) {
        while let Some(error) = stop.run_until_cancelled(self.listen_once()).await {
            tracing::warn!(%error, "cannot listen for changes of jobs; reading them periodically");
            if stop.run_until_cancelled(tokio::time::sleep(self.sweep)).await.is_none() {
                return;
            }
        }
    }

    /// Listens for changes until the database fails.
    async fn listen_once(&self) -> StoreError {
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
        // Notifications during a read cause one more read.
        self.woken.notify_one();
    }

    async fn read(&self, stop: &CancellationToken) {
        let (mut read, mut swept) = (None, Instant::now());
        while !stop.is_cancelled() {
            if swept.elapsed() >= self.sweep {
                swept = Instant::now();
                self.drop_unwatched();
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
                    tracing::warn!(%error, "cannot read changes of jobs; trying again");
                    locked(&self.changed).any = true;
                    RETRY_AFTER
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

    /// Reads new events and changed jobs. `read` is the last published position.
    async fn look(&self, read: &mut Option<u64>) -> Result<(), StoreError> {
        let changed = std::mem::take(&mut *locked(&self.changed));
        ::metrics::counter!("tao_slurm_outbox_reads_total").increment(1);
        let head = self.store.place_events().await?;
        let mut at = *read.get_or_insert(head);
        self.has_begun.send_replace(true);
        if at == head {
            // Without new events there is no lag.
            ::metrics::gauge!("tao_slurm_outbox_lag_seconds").set(0.0);
        }
        while at < head {
            let page = self.store.feed(&Viewer::All, &FeedFilter::default(), at, head, PAGE).await?;
            if let Some(last) = page.events.last() {
                let lag = self.clock.now() - last.event.at;
                ::metrics::gauge!("tao_slurm_outbox_lag_seconds").set(lag.as_seconds_f64().max(0.0));
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
            // Fails only without receivers.
            let _ = sender.send(Arc::clone(&event));
        }
        let _ = self.of_all.send(event);
    }

    async fn read_jobs(&self, changed: Changed) -> Result<(), StoreError> {
        let changed: Vec<JobId> = {
            let waited_for = locked(&self.waited_for);
            let has_changed = |job: &&JobId| changed.any || changed.jobs.contains(job);
            waited_for.keys().filter(has_changed).copied().collect()
        };
        if changed.is_empty() {
            return Ok(());
        }
        let mut found = self.store.find_jobs(&changed).await?;
        let waited_for = locked(&self.waited_for);
        for id in &changed {
            let newest = found.remove(id).map_or(Newest::Gone, |job| Newest::Job(Arc::new(job)));
            if let Some(sender) = waited_for.get(id) {
                sender.send_replace(newest);
            }
        }
        Ok(())
    }

    fn drop_unwatched(&self) {
        locked(&self.of_one).retain(|_, sender| sender.receiver_count() > 0);
        locked(&self.waited_for).retain(|_, sender| sender.receiver_count() > 0);
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What an event means for a stream of only this job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outlook {
    /// Nothing.
    Unchanged,
    /// More events follow.
    Alive,
    /// It is the last event, unless the job is retried.
    Ended(Status),
    Deleted,
}

/// An event of a job.
#[derive(Debug)]
pub(crate) struct Published {
    pub(crate) id: EventId,
    pub(crate) job: JobId,
    pub(crate) seq: u64,
    pub(crate) outlook: Outlook,
    /// The size of its data as JSON.
    pub(crate) bytes: usize,
    owner: Owner,
    cluster: String,
    kind: String,
    frame: Event,
}

impl Published {
    pub(crate) fn new(event: FeedEvent) -> Self {
        let id = EventId(event.position);
        let (job, seq, kind) = (event.job, event.event.seq, event.event.kind.clone());
        let outlook = outlook(&event);
        let (owner, cluster) = (event.owner.clone(), event.cluster.clone());
        let data = serde_json::to_string(&EventView::from(event)).unwrap_or_else(|error| {
            tracing::error!(%error, job.id = %job, "cannot write an event as JSON");
            "{}".to_owned()
        });
        let bytes = data.len();
        let frame = Event::default().event(&kind).id(id.to_string()).data(data);
        Self { id, job, seq, outlook, bytes, owner, cluster, kind, frame }
    }

    /// The event as it is streamed.
    pub(crate) fn frame(&self) -> Event {
        self.frame.clone()
    }

    pub(crate) fn is_for(&self, viewer: &Viewer, filter: &FeedFilter) -> bool {
        let visible = match viewer {
            Viewer::All => true,
            Viewer::Owner(owner) => *owner == self.owner,
        };
        visible && filter.matches(self.job, &self.cluster, &self.kind)
    }
}

fn outlook(event: &FeedEvent) -> Outlook {
    let text = |key: &str| event.event.data.get(key).and_then(serde_json::Value::as_str);
    match event.event.kind.as_str() {
        "deleted" => Outlook::Deleted,
        "transition" if text("phase") == Some("ended") => {
            text("status").and_then(|status| status.parse().ok()).map_or(Outlook::Alive, Outlook::Ended)
        }
        "transition" => Outlook::Alive,
        _ => Outlook::Unchanged,
    }
}

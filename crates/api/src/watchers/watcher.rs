//! A stream of events: first from the database, then from the feed, and from the database again if the client is too slow
//! for the feed.

use std::sync::Arc;

use axum::response::{Response, sse::Event};
use domain::{JobId, Status};
use futures_util::{StreamExt, stream};
use persistence::{FeedEvent, FeedFilter, StoreError, Viewer};
use serde::Serialize;
use tokio::{
    sync::broadcast,
    time::{Instant, timeout_at},
};
use utoipa::ToSchema;

use crate::{
    auth::Standing,
    calls::event_id::EventId,
    http::sse::{self, Permit},
    state::App,
    watchers::feed::{Outlook, Published},
};

/// The fewest and the most events that are read at a time.
const FEWEST: u32 = 16;
const MOST: u32 = 500;
/// A page ends with the event that reaches this size: the page stays in memory while the client reads nothing, and one event can
/// have 16 KiB.
const PAGE_BYTES: usize = 64 * 1024;

/// The watched jobs.
#[derive(Debug, Clone)]
pub(crate) enum Scope {
    One(JobId),
    /// All jobs that the viewer may see.
    All(Viewer),
}

/// Where a stream begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Start {
    /// After this event.
    pub(crate) after: EventId,
    /// For one job: after the event with this number.
    pub(crate) seq: u64,
    /// The client's position was never given out by this database.
    pub(crate) is_reset: bool,
}

/// `reset`: the stream cannot continue at the client's position, which is unknown here: the database was restored from an older backup.
/// The stream starts as without `Last-Event-ID`.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct EventReset {
    /// The event's name.
    kind: &'static str,
    detail: &'static str,
}

/// `end`: the job has finished; no event follows.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct EventEnd {
    /// The event's name.
    kind: &'static str,
    job_id: JobId,
    /// The job's final status; null if the job was deleted.
    status: Option<Status>,
}

pub(crate) struct Watcher {
    app: App,
    scope: Scope,
    filter: FeedFilter,
    news: broadcast::Receiver<Arc<Published>>,
    cursor: EventId,
    seq: u64,
    /// The database has events that were not read yet.
    is_behind: bool,
    /// How many events the next read asks for.
    rows: u32,
    outlook: Outlook,
    is_over: bool,
    until: Instant,
    _permit: Permit,
}

impl Watcher {
    pub(crate) async fn new(app: &App, scope: Scope, filter: FeedFilter, permit: Permit) -> Self {
        let news = match scope {
            Scope::One(job) => app.feed.events_of(job).await,
            Scope::All(_) => app.feed.events().await,
        };
        Self {
            app: app.clone(),
            scope,
            filter,
            news,
            cursor: EventId(0),
            seq: 0,
            is_behind: true,
            rows: FEWEST,
            outlook: Outlook::Unchanged,
            is_over: false,
            until: Instant::now() + app.limits.follow_for,
            _permit: permit,
        }
    }

    /// Answers with the stream, for as long as the caller is authorized. `outlook` is the job's outlook before the first event.
    pub(crate) fn respond(mut self, standing: Standing, start: Start, outlook: Outlook) -> Response {
        (self.cursor, self.seq, self.outlook) = (start.after, start.seq, outlook);
        let mut first = Vec::new();
        if start.is_reset {
            first.push(self.reset());
        } else if start.after != EventId(0) || matches!(self.scope, Scope::All(_)) {
            // A client that is cut off before the first event can reconnect at this position.
            first.push(Event::default().id(start.after.to_string()));
        }
        let app = self.app.clone();
        let events = stream::unfold(self, |mut watcher| async {
            let events = watcher.next().await?;
            Some((stream::iter(events), watcher))
        });
        sse::respond(&app, standing, stream::iter(first).chain(events.flatten()))
    }

    /// The next events; none at the end of the stream. Clients reconnect if there was no `end`.
    async fn next(&mut self) -> Option<Vec<Event>> {
        let stop = self.app.stop.clone();
        while !self.is_over && Instant::now() < self.until {
            let events = stop.run_until_cancelled(self.round()).await?;
            if !events.is_empty() {
                return Some(events);
            }
        }
        None
    }

    async fn round(&mut self) -> Vec<Event> {
        let mut events = Vec::new();
        if self.is_behind {
            if let Err(error) = self.catch_up(&mut events).await {
                tracing::warn!(%error, "cannot read a watcher's events; its stream ends");
                events.push(
                    Event::default().comment("the events cannot be read now; reconnect with Last-Event-ID"),
                );
                self.is_over = true;
                return events;
            }
        } else {
            match timeout_at(self.until, self.news.recv()).await {
                Ok(Ok(event)) => self.take(&event, &mut events),
                Ok(Err(broadcast::error::RecvError::Lagged(_))) => self.is_behind = true,
                Ok(Err(broadcast::error::RecvError::Closed)) => self.is_over = true,
                Err(_) => {}
            }
        }
        if let Scope::One(job) = self.scope
            && !self.is_behind
            && let Some(end) = end(job, self.outlook)
        {
            events.push(frame("end", self.cursor, &end));
            self.is_over = true;
        }
        events
    }

    async fn catch_up(&mut self, out: &mut Vec<Event>) -> Result<(), StoreError> {
        let store = self.app.store.clone();
        match self.scope.clone() {
            Scope::One(job) => {
                let mut kinds = self.filter.kinds.clone();
                if !kinds.is_empty() {
                    // Transitions show whether the job has finished.
                    kinds.push("transition".to_owned());
                }
                let events = store.job_feed(job, self.seq, self.cursor.0, &kinds, self.rows).await?;
                let is_full = events.len() == self.rows as usize;
                let is_whole = self.take_page(events, out);
                self.is_behind = is_full || !is_whole;
            }
            Scope::All(viewer) => {
                let head = store.feed_head().await?;
                let page = store.feed(&viewer, &self.filter, self.cursor.0, head, self.rows).await?;
                let is_whole = self.take_page(page.events, out);
                if is_whole {
                    self.cursor = self.cursor.max(EventId(page.through));
                }
                self.is_behind = page.more || !is_whole;
            }
        }
        Ok(())
    }

    /// Takes events until the page has its size, and drops the others, which are read again later. Returns whether it took all. The
    /// next read asks for more events if these were small, and for fewer if they were large.
    fn take_page(&mut self, events: Vec<FeedEvent>, out: &mut Vec<Event>) -> bool {
        let is_full = events.len() == self.rows as usize;
        let mut bytes = 0;
        for event in events {
            if bytes >= PAGE_BYTES {
                self.rows = (self.rows / 2).max(FEWEST);
                return false;
            }
            let event = Published::new(event);
            bytes += event.bytes;
            self.take(&event, out);
        }
        if is_full {
            self.rows = (self.rows * 2).min(MOST);
        }
        true
    }

    fn take(&mut self, event: &Published, out: &mut Vec<Event>) {
        if event.id <= self.cursor || event.seq <= self.seq {
            return;
        }
        self.cursor = event.id;
        if event.outlook != Outlook::Unchanged {
            self.outlook = event.outlook;
        }
        let matches = match &self.scope {
            Scope::One(_) => event.is_for(&Viewer::All, &self.filter),
            Scope::All(viewer) => event.is_for(viewer, &self.filter),
        };
        if matches {
            out.push(event.frame());
        }
    }

    fn reset(&self) -> Event {
        let detail = match self.scope {
            Scope::One(_) => "The event in Last-Event-ID is unknown. All events of the job follow.",
            Scope::All(_) => "The event in Last-Event-ID is unknown. Read the jobs again; new events follow.",
        };
        frame("reset", self.cursor, &EventReset { kind: "reset", detail })
    }
}

fn end(job: JobId, outlook: Outlook) -> Option<EventEnd> {
    match outlook {
        Outlook::Ended(status) => Some(EventEnd { kind: "end", job_id: job, status: Some(status) }),
        Outlook::Deleted => Some(EventEnd { kind: "end", job_id: job, status: None }),
        Outlook::Alive | Outlook::Unchanged => None,
    }
}

fn frame(name: &str, id: EventId, data: &impl Serialize) -> Event {
    let data = serde_json::to_string(data).unwrap_or_else(|_| "{}".to_owned());
    Event::default().event(name).id(id.to_string()).data(data)
}

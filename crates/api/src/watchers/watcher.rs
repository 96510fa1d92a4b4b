//! Who watches events: first what is in the database, then what the feed says; back to the database when he was too slow
//! for that.

use std::sync::Arc;

use axum::response::{Response, sse::Event};
use domain::{JobId, Status};
use futures_util::{StreamExt, stream};
use persistence::{FeedFilter, StoreError, Viewer};
use serde::Serialize;
use tokio::{
    sync::{OwnedSemaphorePermit, broadcast},
    time::{Instant, timeout_at},
};
use utoipa::ToSchema;

use crate::{
    auth::Standing,
    calls::event_id::EventId,
    http::sse,
    problem::{Kind, Problem},
    state::App,
    watchers::feed::{Outlook, Published},
};

const PAGE: u32 = 500;

/// Whose events are watched.
#[derive(Debug, Clone)]
pub(crate) enum Scope {
    One(JobId),
    /// Of all jobs that the viewer may see.
    All(Viewer),
}

/// Where a stream begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Start {
    /// After this event.
    pub(crate) after: EventId,
    /// Of one job: and after the event of this number.
    pub(crate) seq: u64,
    /// The place that was asked for is none that was ever given here.
    pub(crate) is_reset: bool,
}

/// The stream does not go on where it was asked to: the place is unknown here, as when the database was restored from
/// an older backup. What follows begins as without `Last-Event-ID`.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct EventReset {
    detail: &'static str,
}

/// The job has ended, and nothing follows.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct EventEnd {
    job_id: JobId,
    /// How the job ended; null when it was deleted.
    status: Option<Status>,
}

/// The right to watch, one for each who may at a time.
pub(crate) struct Turn {
    _permit: OwnedSemaphorePermit,
    kind: &'static str,
}

impl Turn {
    pub(crate) fn take(app: &App, kind: &'static str) -> Result<Self, Problem> {
        let Ok(permit) = app.watchers().try_acquire_owned() else {
            let most = app.limits.watchers;
            let detail = format!("{most} watch already, which is the most at a time. Ask again.");
            return Err(Problem::unavailable(Kind::WatchersBusy, detail));
        };
        ::metrics::gauge!("watchers", "kind" => kind).increment(1);
        Ok(Self { _permit: permit, kind })
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        ::metrics::gauge!("watchers", "kind" => self.kind).decrement(1);
    }
}

pub(crate) struct Watcher {
    app: App,
    scope: Scope,
    filter: FeedFilter,
    news: broadcast::Receiver<Arc<Published>>,
    cursor: EventId,
    seq: u64,
    /// What is in the database was not read to its end yet.
    is_behind: bool,
    outlook: Outlook,
    is_over: bool,
    until: Instant,
    _turn: Turn,
}

impl Watcher {
    pub(crate) async fn new(app: &App, scope: Scope, filter: FeedFilter, turn: Turn) -> Self {
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
            outlook: Outlook::Unchanged,
            is_over: false,
            until: Instant::now() + app.limits.follow_for,
            _turn: turn,
        }
    }

    /// Answers with the stream, for as long as the caller may see it. `outlook` is that of the job before the first event of it.
    pub(crate) fn respond(mut self, standing: Standing, start: Start, outlook: Outlook) -> Response {
        (self.cursor, self.seq, self.outlook) = (start.after, start.seq, outlook);
        let mut first = Vec::new();
        if start.is_reset {
            first.push(self.reset());
        } else if start.after != EventId(0) || matches!(self.scope, Scope::All(_)) {
            // Who is cut off before the first event knows where to go on.
            first.push(Event::default().id(start.after.to_string()));
        }
        let app = self.app.clone();
        let events = stream::unfold(self, |mut watcher| async {
            let events = watcher.next().await?;
            Some((stream::iter(events), watcher))
        });
        sse::respond(&app, standing, stream::iter(first).chain(events.flatten()))
    }

    /// The next events; none when the stream is over. Without an `end` the client is expected to come again.
    async fn next(&mut self) -> Option<Vec<Event>> {
        let stop = self.app.stop.clone();
        while !self.is_over && Instant::now() < self.until {
            let said = stop.run_until_cancelled(self.round()).await?;
            if !said.is_empty() {
                return Some(said);
            }
        }
        None
    }

    async fn round(&mut self) -> Vec<Event> {
        let mut said = Vec::new();
        if self.is_behind {
            if let Err(error) = self.catch_up(&mut said).await {
                tracing::warn!(%error, "a watcher's events cannot be read; he has to come again");
                said.push(
                    Event::default().comment("the events cannot be read now; come back with Last-Event-ID"),
                );
                self.is_over = true;
                return said;
            }
        } else {
            match timeout_at(self.until, self.news.recv()).await {
                Ok(Ok(event)) => self.take(&event, &mut said),
                Ok(Err(broadcast::error::RecvError::Lagged(_))) => self.is_behind = true,
                Ok(Err(broadcast::error::RecvError::Closed)) => self.is_over = true,
                Err(_) => {}
            }
        }
        if let Scope::One(job) = self.scope
            && !self.is_behind
            && let Some(end) = end(job, self.outlook)
        {
            said.push(frame("end", self.cursor, &end));
            self.is_over = true;
        }
        said
    }

    async fn catch_up(&mut self, said: &mut Vec<Event>) -> Result<(), StoreError> {
        let store = self.app.store.clone();
        match self.scope.clone() {
            Scope::One(job) => {
                let mut kinds = self.filter.kinds.clone();
                if !kinds.is_empty() {
                    // They tell whether the job has ended.
                    kinds.push("transition".to_owned());
                }
                let events = store.job_feed(job, self.seq, self.cursor.0, &kinds, PAGE).await?;
                self.is_behind = events.len() == PAGE as usize;
                for event in events {
                    self.take(&Published::new(event), said);
                }
            }
            Scope::All(viewer) => {
                let head = store.feed_head().await?;
                let page = store.feed(&viewer, &self.filter, self.cursor.0, head, PAGE).await?;
                for event in page.events {
                    self.take(&Published::new(event), said);
                }
                self.cursor = self.cursor.max(EventId(page.through));
                self.is_behind = page.more;
            }
        }
        Ok(())
    }

    fn take(&mut self, event: &Published, said: &mut Vec<Event>) {
        if event.id <= self.cursor || event.seq <= self.seq {
            return;
        }
        self.cursor = event.id;
        if event.outlook != Outlook::Unchanged {
            self.outlook = event.outlook;
        }
        let is_wanted = match &self.scope {
            Scope::One(_) => event.is_for(&Viewer::All, &self.filter),
            Scope::All(viewer) => event.is_for(viewer, &self.filter),
        };
        if is_wanted {
            said.push(event.frame());
        }
    }

    fn reset(&self) -> Event {
        let detail = match self.scope {
            Scope::One(_) => "The event of Last-Event-ID is not known here. All events of the job follow.",
            Scope::All(_) => {
                "The event of Last-Event-ID is not known here. Read the jobs anew; what happens from now on follows."
            }
        };
        frame("reset", self.cursor, &EventReset { detail })
    }
}

fn end(job: JobId, outlook: Outlook) -> Option<EventEnd> {
    match outlook {
        Outlook::Ended(status) => Some(EventEnd { job_id: job, status: Some(status) }),
        Outlook::Deleted => Some(EventEnd { job_id: job, status: None }),
        Outlook::Alive | Outlook::Unchanged => None,
    }
}

fn frame(name: &str, id: EventId, data: &impl Serialize) -> Event {
    let data = serde_json::to_string(data).unwrap_or_else(|_| "{}".to_owned());
    Event::default().event(name).id(id.to_string()).data(data)
}

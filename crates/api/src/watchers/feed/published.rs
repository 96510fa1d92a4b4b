//! An event for watchers, serialized once for all of them.

use axum::response::sse::Event;
use domain::{JobId, Status};
use persistence::{FeedEvent, FeedFilter, Viewer};

use crate::{calls::event_id::EventId, view::EventView};

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
    owner: domain::Owner,
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
        let frame = Event::default().event(&kind).id(id.to_string()).data(data);
        Self { id, job, seq, outlook, owner, cluster, kind, frame }
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

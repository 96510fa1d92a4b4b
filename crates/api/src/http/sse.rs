//! Server-sent events: how streams begin, are kept alive, and end when the service stops.

use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use axum::{
    http::{HeaderName, HeaderValue, header},
    response::{
        IntoResponse, Response, Sse,
        sse::{Event, KeepAlive},
    },
};
use futures_util::{Stream, StreamExt, future, stream};

use metrics::Gauge;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::{
    auth::Standing,
    problem::{Kind, Problem},
    state::App,
};

/// The last comment of a stream whose caller has lost its authorization. A new request gets the problem.
const LOST: &str = "the token of this stream is no longer valid";
/// How long clients wait before they reconnect.
const RECONNECT: Duration = Duration::from_secs(2);
/// The same after the service has stopped: another process is ready soon.
const RECONNECT_AFTER_STOP: Duration = Duration::from_secs(1);
/// Proxies must not buffer events.
const UNBUFFERED: (HeaderName, HeaderValue) =
    (HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
/// The same path also returns JSON.
const VARIES: (HeaderName, HeaderValue) = (header::VARY, HeaderValue::from_static("accept"));

/// The id of the last event that a client has received.
pub(crate) const LAST_EVENT_ID: &str = "last-event-id";

/// Answers with events. `events` must end when the service stops. The stream also ends when the caller loses its authorization;
/// a last comment gives the reason.
pub(crate) fn respond(
    app: &App,
    standing: Standing,
    events: impl Stream<Item = Event> + Send + 'static,
) -> Response {
    let first = Event::default().retry(RECONNECT).comment("following");
    let (stop, is_lost) = (app.stop.clone(), Arc::new(AtomicBool::new(false)));
    let (loss, tell) = (standing.lost(app.clone()), Arc::clone(&is_lost));
    let events = events.take_until(async move {
        let _ = loss.await;
        tell.store(true, Ordering::Relaxed);
    });
    let last = future::lazy(move |_| match () {
        () if is_lost.load(Ordering::Relaxed) => Some(Event::default().comment(LOST)),
        () => stop.is_cancelled().then(goodbye),
    });
    let last = stream::once(last).filter_map(future::ready);
    let events = stream::once(future::ready(first)).chain(events).chain(last).map(Ok::<_, Infallible>);
    // Keeps proxies from closing an idle stream.
    let keep_alive = KeepAlive::new().interval(app.limits.heartbeat).text("keep-alive");
    ([UNBUFFERED, VARIES], Sse::new(events).keep_alive(keep_alive)).into_response()
}

fn goodbye() -> Event {
    Event::default().retry(RECONNECT_AFTER_STOP).comment("the service stops; reconnect with Last-Event-ID")
}

/// A permit to watch or to wait; the numbers of both are limited and counted in a gauge.
pub(crate) struct Permit {
    _permit: OwnedSemaphorePermit,
    gauge: Gauge,
}

impl Permit {
    /// None if the limit is reached.
    pub(crate) fn take(permits: &Arc<Semaphore>, gauge: Gauge) -> Option<Self> {
        let permit = Arc::clone(permits).try_acquire_owned().ok()?;
        gauge.increment(1);
        Some(Self { _permit: permit, gauge })
    }

    /// A permit to watch events or to wait for a job.
    pub(crate) fn to_watch(app: &App, kind: &'static str) -> Result<Self, Problem> {
        Self::take(&app.watchers, ::metrics::gauge!("watchers", "kind" => kind)).ok_or_else(|| {
            let most = app.limits.watchers;
            let detail = format!("{most} streams and waits are open, the limit of this process. Try again.");
            Problem::unavailable(Kind::WatchersBusy, detail)
        })
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.gauge.decrement(1);
    }
}

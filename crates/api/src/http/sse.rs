//! Answers that go on and on: how they begin, are kept alive, and end when the service does.

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

use crate::{auth::Standing, state::App};

/// What a stream ends with whose caller has lost the right to it. Who comes again is told the same, as a problem.
const LOST: &str = "the token of this stream is of no use any more";
/// When a client comes again that has lost the stream.
const RECONNECT: Duration = Duration::from_secs(2);
/// When it does after the service has said that it stops. Another process, or the next one, is there soon.
const RECONNECT_AFTER_STOP: Duration = Duration::from_secs(1);
/// Proxies that gather answers would hold the events back.
const UNBUFFERED: (HeaderName, HeaderValue) =
    (HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
/// The same path answers in JSON to who asks for that.
const VARIES: (HeaderName, HeaderValue) = (header::VARY, HeaderValue::from_static("accept"));

/// The id of the last event that a client has received; none also for an empty one.
pub(crate) const LAST_EVENT_ID: &str = "last-event-id";

/// Answers with events. `events` end by themselves when the service stops, and are ended when the caller may not see them
/// any more; the last word then says so.
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
    // So that nobody on the way takes the stream for dead.
    let keep_alive = KeepAlive::new().interval(app.limits.heartbeat).text("keep-alive");
    ([UNBUFFERED, VARIES], Sse::new(events).keep_alive(keep_alive)).into_response()
}

fn goodbye() -> Event {
    Event::default().retry(RECONNECT_AFTER_STOP).comment("the service stops; come back with Last-Event-ID")
}

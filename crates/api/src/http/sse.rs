//! Server-sent events: how streams begin, are kept alive, and end when the service stops.

use std::{
    convert::Infallible,
    str::FromStr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use axum::{
    http::{HeaderMap, HeaderName, HeaderValue, header},
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

/// The id of the last event that a client has received. Clients that have received none send an empty one.
pub(crate) fn last_event<Id: FromStr>(headers: &HeaderMap) -> Result<Option<Id>, Problem> {
    let Some(id) = headers.get("last-event-id").filter(|id| !id.is_empty()) else { return Ok(None) };
    let id = id.to_str().ok().and_then(|id| id.parse().ok());
    let wrong =
        || Problem::parameter("Last-Event-ID", "invalid", "must be the id of an event of this stream");
    id.map(Some).ok_or_else(wrong)
}

/// Answers with events. `events` must end when the service stops. The stream also ends when the caller loses its authorization;
/// a last comment gives the reason.
pub(crate) fn respond(
    app: &App,
    standing: Standing,
    events: impl Stream<Item = Event> + Send + 'static,
) -> Response {
    let first = Event::default().retry(RECONNECT).comment("following");
    let (stop, is_lost) = (app.stop.clone(), Arc::new(AtomicBool::new(false)));
    let (loss, flag) = (standing.lost(app.clone()), Arc::clone(&is_lost));
    let events = events.take_until(async move {
        let _ = loss.await;
        flag.store(true, Ordering::Relaxed);
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
        Self::take(&app.watchers, ::metrics::gauge!("tao_slurm_watchers", "kind" => kind)).ok_or_else(|| {
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

const EVENTS: &str = "text/event-stream";

/// Whether to answer with a stream of events (RFC 9110 §12.5.1): only if the client names that type and does not prefer
/// JSON.
pub(crate) fn wants_stream(headers: &HeaderMap) -> bool {
    let values = headers.get_all(header::ACCEPT).into_iter().filter_map(|value| value.to_str().ok());
    let ranges: Vec<(&str, f32)> = values.flat_map(|value| value.split(',')).map(range).collect();
    let Some(place) = ranges.iter().position(|(name, _)| name.eq_ignore_ascii_case(EVENTS)) else {
        return false;
    };
    let quality = ranges[place].1;
    let is_preferred =
        |other: usize, (_, theirs): (&str, f32)| theirs > quality || (other < place && theirs >= quality);
    let is_json = |name: &str| name.eq_ignore_ascii_case("application/json");
    quality > 0.0
        && !ranges.iter().enumerate().any(|(other, range)| is_json(range.0) && is_preferred(other, *range))
}

/// A media range and its weight.
fn range(text: &str) -> (&str, f32) {
    let mut parts = text.split(';').map(str::trim);
    let name = parts.next().unwrap_or_default();
    let weight = parts.find_map(|part| part.strip_prefix("q=").or_else(|| part.strip_prefix("Q=")));
    (name, weight.map_or(1.0, |weight| weight.parse().unwrap_or(0.0)))
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn a_stream_is_for_clients_that_name_it_and_do_not_prefer_json() {
        let wants = |accept: &'static str| {
            wants_stream(&HeaderMap::from_iter([(header::ACCEPT, HeaderValue::from_static(accept))]))
        };
        for stream in [
            "text/event-stream",
            "Text/Event-Stream; charset=utf-8",
            "text/event-stream, */*",
            "text/event-stream, application/json",
            "application/json;q=0.5, text/event-stream",
        ] {
            assert!(wants(stream), "{stream}");
        }
        for document in [
            "*/*",
            "text/*",
            "application/json",
            "application/json, text/event-stream",
            "text/event-stream;q=0.1, application/json",
            "text/event-stream;q=0",
        ] {
            assert!(!wants(document), "{document}");
        }
        assert!(!wants_stream(&HeaderMap::new()));
    }
}

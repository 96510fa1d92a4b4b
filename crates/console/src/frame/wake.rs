//! The stream that wakes live pages. It carries no data: a page that is woken asks for its visible part again, once for all
//! changes since.

use std::{convert::Infallible, time::Duration};

use axum::{
    http::{HeaderName, HeaderValue},
    response::{
        IntoResponse, Response, Sse,
        sse::{Event, KeepAlive},
    },
};
use futures_util::stream;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::{events::ServerEvents, visit::Visit};
use crate::{
    ROOT,
    client::{ALL_EVENTS, Failure, Query},
};

/// The least time between two calls to wake up.
const PAUSE: Duration = Duration::from_secs(1);
/// Keeps proxies from closing an idle stream.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// What a page can watch.
const SUBJECTS: [&str; 3] = ["job", "pipeline", "cluster"];

/// The address of the stream for changes of this subject, or of all jobs.
pub(crate) fn wakes(subject: Option<(&str, &str)>) -> String {
    let query = subject.map_or_else(Query::new, |(name, value)| Query::new().with(name, value));
    query.after(&format!("{ROOT}/wake"))
}

/// Says at most once a second that something has changed. The first call says that the stream is open, so that nothing is missed
/// between the page and the stream.
pub(crate) async fn wake(visit: Visit) -> Result<Response, Failure> {
    let query = visit.query.only(&SUBJECTS);
    let body = visit.api.stream(&ALL_EVENTS, &[], &query, None).await?;
    let events = body.map(ServerEvents::of);
    let calls = stream::unfold(
        (events, None),
        |(events, last): (Option<ServerEvents>, Option<Instant>)| async move {
            let mut events = events?;
            if let Some(last) = last {
                let first = events.next().await?;
                tracing::trace!(event = first.name, "a page is woken");
                let due = last + PAUSE;
                // What comes meanwhile is part of the same call.
                while Instant::now() < due
                    && timeout_at(due, events.next()).await.is_ok_and(|event| event.is_some())
                {
                }
                sleep_until(due).await;
            }
            // Browsers leave out an event without data.
            let call = Event::default().event("wake").data("changed");
            Some((Ok::<_, Infallible>(call), (Some(events), Some(Instant::now()))))
        },
    );
    let unbuffered = (HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    let stream = Sse::new(calls).keep_alive(KeepAlive::new().interval(KEEP_ALIVE).text("keep-alive"));
    Ok(([unbuffered], stream).into_response())
}

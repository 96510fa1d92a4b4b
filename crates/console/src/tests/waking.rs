//! The stream that wakes pages.

use std::time::Duration;

use axum::{
    Router,
    body::Body,
    http::{Request, StatusCode},
    response::IntoResponse,
};
use futures_util::{StreamExt, stream};
use tokio::time::{Instant, sleep};
use tower::ServiceExt;

use crate::{LogIn, SessionKey, Settings, mount};

/// An API whose stream has an event every 10 ms for five seconds.
fn busy() -> Router {
    let events = async || {
        let events = stream::iter(0..500).then(|number| async move {
            sleep(Duration::from_millis(10)).await;
            Ok::<_, std::convert::Infallible>(format!("event: transition\ndata: {number}\n\n"))
        });
        (StatusCode::OK, Body::from_stream(events)).into_response()
    };
    let settings = Settings {
        login: LogIn::Nothing,
        issuer: None,
        key: SessionKey::derive(&[7; 32]),
        now: std::sync::Arc::new(|| chrono::DateTime::UNIX_EPOCH),
    };
    mount(Router::new().fallback(events), settings)
}

#[tokio::test(start_paused = true)]
async fn a_page_is_woken_at_once_and_then_at_most_once_a_second() {
    let begun = Instant::now();
    let request = Request::get("/ui/wake").header("accept", "text/event-stream").body(Body::empty()).unwrap();
    let answer = busy().oneshot(request).await.unwrap();
    assert_eq!(answer.headers()["content-type"], "text/event-stream");
    let mut times = Vec::new();
    let mut body = answer.into_body().into_data_stream();
    while let Some(Ok(part)) = body.next().await {
        if String::from_utf8_lossy(&part).contains("event: wake\ndata: changed") {
            times.push(begun.elapsed());
        }
    }
    assert!(times[0] < Duration::from_millis(10), "{times:?}");
    assert!((5..=7).contains(&times.len()), "{times:?}");
    assert!(times.windows(2).all(|pair| pair[1] >= pair[0] + Duration::from_secs(1)), "{times:?}");
}

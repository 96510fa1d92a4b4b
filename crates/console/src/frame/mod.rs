//! What all pages share: the visitor, the headers of answers, problems, log-in, and the stream that wakes live pages.

mod answer;
mod by_issuer;
mod events;
mod explained;
mod headers;
mod log_in;
mod visit;
mod wake;

pub(crate) use answer::{Page, done, gone_to};
pub(crate) use by_issuer::{finish, start};
pub(crate) use events::{ServerEvent, ServerEvents};
pub(crate) use log_in::{ask, begin, end};
pub(crate) use visit::{Fields, IdPath, Visit, Wants};
pub(crate) use wake::{wake, wakes};

use std::time::Duration;

use axum::{
    Router,
    extract::{DefaultBodyLimit, Request},
    http::{Method, StatusCode},
    middleware::{Next, from_fn, from_fn_with_state},
    response::{IntoResponse, Response},
};
use tower_http::{catch_panic::CatchPanicLayer, csrf::CsrfLayer, timeout::TimeoutLayer};

use crate::{client::Failure, state::Console};

/// The largest form: a job with its files.
const LARGEST_FORM: usize = 2 * 1024 * 1024;
/// A preflight takes half a minute. Streams are not limited: their answers begin at once.
const LONGEST: Duration = Duration::from_mins(1);

/// The layers around every page, innermost first.
pub(crate) fn around(routes: Router<Console>, console: Console) -> Router {
    let refused = |_| -> Response { Failure::of_other_site().into_response() };
    routes
        .layer(DefaultBodyLimit::max(LARGEST_FORM))
        .layer(CsrfLayer::new().with_rejection_response(refused))
        .layer(from_fn(of_somewhere))
        .layer(TimeoutLayer::with_status_code(StatusCode::GATEWAY_TIMEOUT, LONGEST))
        .layer(CatchPanicLayer::custom(explained::panicked))
        .layer(from_fn_with_state(console.clone(), explained::explained))
        .layer(from_fn(headers::secured))
        .with_state(console)
}

/// Refuses a change that does not say where it comes from. The layer for other origins allows such a request, for programs; they use the
/// API. Every browser that keeps strict cookies says it, so a proxy must have removed it.
async fn of_somewhere(request: Request, next: Next) -> Response {
    let (method, headers) = (request.method(), request.headers());
    let is_read = matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS);
    let says = |name: &str| headers.get(name).is_some_and(|value| !value.is_empty());
    if is_read || says("sec-fetch-site") || says("origin") {
        next.run(request).await
    } else {
        Failure::of_nowhere().into_response()
    }
}

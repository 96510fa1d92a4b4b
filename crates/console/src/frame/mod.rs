//! What all pages share: the visitor, the headers of answers, problems, log-in, and the stream that wakes live pages.

mod answer;
mod events;
mod explained;
mod headers;
mod log_in;
mod visit;
mod wake;

pub(crate) use answer::{Page, done, gone_to};
pub(crate) use events::{ServerEvent, ServerEvents};
pub(crate) use log_in::{ask, begin, end};
pub(crate) use visit::{Fields, IdPath, Visit, Wants};
pub(crate) use wake::{wake, wakes};

use std::time::Duration;

use axum::{
    Router,
    extract::DefaultBodyLimit,
    http::StatusCode,
    middleware::{from_fn, from_fn_with_state},
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
        .layer(TimeoutLayer::with_status_code(StatusCode::GATEWAY_TIMEOUT, LONGEST))
        .layer(CatchPanicLayer::custom(explained::panicked))
        .layer(from_fn_with_state(console.clone(), explained::explained))
        .layer(from_fn(headers::secured))
        .with_state(console)
}

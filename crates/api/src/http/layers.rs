//! What surrounds every endpoint: an id and one log line for each request, a bound on its time and size, and
//! the promise that whatever fails is answered with a problem.

use std::{any::Any, time::Instant};

use axum::{
    Router,
    extract::{DefaultBodyLimit, MatchedPath, Request, State},
    http::{HeaderMap, HeaderName, HeaderValue, Method, header},
    middleware::{Next, from_fn, from_fn_with_state},
    response::{IntoResponse, Response},
};
use domain::JobId;
use slurm::TraceParent;
use tower_http::{catch_panic::CatchPanicLayer, sensitive_headers::SetSensitiveRequestHeadersLayer};
use tracing::{Instrument, Span, field};

use crate::{
    calls::jobs::wait,
    http::{
        cors,
        extract::{TraceHere, trace_of},
        rate,
    },
    problem::{Kind, Problem},
    state::App,
};

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The layers, innermost first.
pub(crate) fn around(routes: Router<App>, app: &App) -> Router<App> {
    let routes = routes
        .layer(DefaultBodyLimit::max(app.limits.body_bytes))
        .layer(CatchPanicLayer::custom(panicked))
        .layer(from_fn_with_state(app.clone(), bounded))
        .layer(from_fn(rate::told))
        .layer(from_fn_with_state(app.clone(), of_bearable_size))
        .layer(from_fn(explained))
        .layer(from_fn(recorded))
        .layer(from_fn_with_state(app.clone(), identified))
        .layer(SetSensitiveRequestHeadersLayer::new([header::AUTHORIZATION, header::COOKIE]));
    match cors::layer(&app.cors_origins) {
        Some(cors) => routes.layer(cors),
        None => routes,
    }
}

/// Gives the request an id: the caller's, if it is one that can be searched for, else ours.
async fn identified(State(app): State<App>, mut request: Request, next: Next) -> Response {
    let theirs = request.headers().get(REQUEST_ID).filter(|id| is_searchable(id)).cloned();
    let id = theirs.or_else(|| HeaderValue::from_str(&app.ids.lease().to_string()).ok());
    let Some(id) = id else { return next.run(request).await };
    request.headers_mut().insert(REQUEST_ID, id.clone());
    let mut response = next.run(request).await;
    response.headers_mut().insert(REQUEST_ID, id);
    response
}

fn is_searchable(id: &HeaderValue) -> bool {
    let bytes = id.as_bytes();
    (1..=128).contains(&bytes.len()) && bytes.iter().all(u8::is_ascii_graphic)
}

fn request_id(headers: &HeaderMap) -> Option<String> {
    headers.get(REQUEST_ID).and_then(|id| id.to_str().ok()).map(str::to_owned)
}

/// Writes one line and counts one observation for each request. The query is not logged: it is the caller's text.
async fn recorded(mut request: Request, next: Next) -> Response {
    let method = request.method().clone();
    let route = request.extensions().get::<MatchedPath>().map_or("unmatched", MatchedPath::as_str).to_owned();
    let theirs = trace_of(request.headers());
    let traced = if is_probe(&route) {
        Span::none()
    } else {
        traces::request(label(&method), &route, theirs.as_ref())
    };
    if let Some(trace) = traces::here(&traced) {
        request.extensions_mut().insert(TraceHere(trace));
    }
    let span = tracing::info_span!(
        "request",
        request.id = request_id(request.headers()),
        http.method = %method,
        http.path = request.uri().path(),
        job.id = field::Empty,
        trace.id = theirs.as_ref().map(TraceParent::trace_id),
    );
    let begun = Instant::now();
    let response = next.run(request).instrument(span.clone()).instrument(traced.clone()).await;
    let took = begun.elapsed();
    let status = response.status().as_u16();
    let problem = response.extensions().get::<Problem>().map(Problem::code);
    span.in_scope(|| {
        tracing::info!(
            http.route = route,
            http.status = status,
            duration_ms = took.as_millis(),
            problem,
            "answered"
        );
    });
    traced.record("http.response.status_code", status);
    if response.status().is_server_error() {
        traced.record("otel.status_code", "ERROR");
    }
    ::metrics::histogram!(
        "http_server_request_duration_seconds",
        "route" => route, "method" => label(&method), "status" => status.to_string()
    )
    .record(took.as_secs_f64());
    response
}

/// A method is the caller's word too: only the ones we serve become labels.
fn label(method: &Method) -> &'static str {
    match method.as_str() {
        "GET" => "GET",
        "HEAD" => "HEAD",
        "POST" => "POST",
        "PUT" => "PUT",
        "DELETE" => "DELETE",
        _ => "other",
    }
}

/// Asked every few seconds by machines, and of no interest to anybody who looks for where time went.
fn is_probe(route: &str) -> bool {
    matches!(route, "/livez" | "/readyz" | "/metrics")
}

/// Says which job the request is about. It becomes part of the request's span, so that every line on the way to
/// the answer has it, a failure of the database included.
pub(crate) fn name_job(id: JobId) {
    Span::current().record("job.id", field::display(id));
}

/// Completes every problem with the request's path and id, and turns any other error into one.
async fn explained(request: Request, next: Next) -> Response {
    let uri = request.uri().clone();
    let id = request_id(request.headers());
    let mut response = next.run(request).await;
    let known = response.extensions_mut().remove::<Problem>();
    let Some(problem) = known.or_else(|| Problem::foreign(response.status(), &uri)) else { return response };
    let mut explained = problem.respond(Some(uri.path().to_owned()), id);
    // `Allow` and its like were added on the way here.
    for (name, value) in response.headers() {
        if name != header::CONTENT_TYPE
            && name != header::CONTENT_LENGTH
            && !explained.headers().contains_key(name)
        {
            explained.headers_mut().insert(name.clone(), value.clone());
        }
    }
    explained
}

/// Refuses heads that are larger than anybody needs. What is much larger never comes here: the connection refuses it.
async fn of_bearable_size(State(app): State<App>, request: Request, next: Next) -> Response {
    let most = app.limits.header_bytes;
    let address = request.uri().path_and_query().map_or(0, |address| address.as_str().len());
    if address > most {
        let detail = format!("The address has {address} bytes; path and query may have {most}.");
        return Problem::new(Kind::UriTooLong, detail).into_response();
    }
    let head = request.headers().iter().fold(address, |sum, (name, value)| {
        // A colon, a space and the end of the line.
        sum + name.as_str().len() + value.len() + 4
    });
    if head > most {
        let detail = format!(
            "The request's head has {head} bytes; it may have {most}. Send fewer or shorter headers."
        );
        return Problem::new(Kind::HeadersTooLarge, detail).into_response();
    }
    next.run(request).await
}

/// Bounds the time of a request, its body's arrival included. What it asks to wait for comes on top.
async fn bounded(State(app): State<App>, request: Request, next: Next) -> Response {
    let most = app.limits.request_timeout + wait::asked(request.uri().query());
    match tokio::time::timeout(most, next.run(request)).await {
        Ok(response) => response,
        Err(_) => Problem::unavailable(
            Kind::Timeout,
            format!(
                "No answer within {} s. What was asked may still happen: look before asking again.",
                most.as_secs()
            ),
        )
        .into_response(),
    }
}

#[expect(clippy::needless_pass_by_value, reason = "the signature is the layer's")]
fn panicked(panic: Box<dyn Any + Send + 'static>) -> Response {
    let text =
        panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    tracing::error!(panic = text.unwrap_or("(no text)"), "an endpoint panicked");
    Problem::internal().into_response()
}

//! The layers around every call: a request id, one log line, limits of time and size, and problems for every failure.

use std::{any::Any, time::Instant};

use axum::{
    Router,
    body::HttpBody,
    extract::{DefaultBodyLimit, MatchedPath, Request, State},
    http::{HeaderMap, HeaderName, HeaderValue, Method, header},
    middleware::{Next, from_fn, from_fn_with_state},
    response::{IntoResponse, Response},
};
use slurm::TraceParent;
use tower_http::{catch_panic::CatchPanicLayer, sensitive_headers::SetSensitiveRequestHeadersLayer};
use tracing::{Instrument, Span, field};

use crate::{
    http::{
        buffers, cors,
        extract::{TraceHere, requested_wait, trace_of},
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
        .layer(from_fn(rate::reported))
        .layer(from_fn_with_state(app.clone(), of_bearable_size))
        .layer(from_fn(reserved))
        .layer(from_fn(explained))
        .layer(from_fn(recorded))
        .layer(from_fn_with_state(app.clone(), identified))
        .layer(SetSensitiveRequestHeadersLayer::new([header::AUTHORIZATION, header::COOKIE]));
    match cors::layer(&app.cors_origins) {
        Some(cors) => routes.layer(cors),
        None => routes,
    }
}

/// Sets the request id: the caller's if it is printable, otherwise a new one.
async fn identified(State(app): State<App>, mut request: Request, next: Next) -> Response {
    let own = request.headers().get(REQUEST_ID).filter(|id| is_searchable(id)).cloned();
    let id = own.or_else(|| HeaderValue::from_str(&app.ids.lease().to_string()).ok());
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

/// Logs and measures each request. The query is not logged, because it contains the caller's data.
async fn recorded(mut request: Request, next: Next) -> Response {
    let method = request.method().clone();
    let route = request.extensions().get::<MatchedPath>().map_or("unmatched", MatchedPath::as_str).to_owned();
    let parent = trace_of(request.headers());
    let traced = if is_probe(&route) {
        Span::none()
    } else {
        traces::request(label(&method), &route, parent.as_ref())
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
        trace.id = parent.as_ref().map(TraceParent::trace_id),
    );
    let begun = Instant::now();
    let response = next.run(request).instrument(span.clone()).instrument(traced.clone()).await;
    let took = begun.elapsed();
    let status = response.status().as_u16();
    let problem = response.extensions().get::<Problem>().map(Problem::code);
    let duration_ms = took.as_millis();
    span.in_scope(|| {
        if is_probe(&route) && status < 400 {
            tracing::debug!(http.route = route, http.status = status, duration_ms, "answered");
        } else {
            tracing::info!(http.route = route, http.status = status, duration_ms, problem, "answered");
        }
    });
    traced.record("http.response.status_code", status);
    if response.status().is_server_error() {
        traced.record("otel.status_code", "ERROR");
    }
    ::metrics::histogram!(
        "tao_slurm_http_server_request_duration_seconds",
        "route" => route, "method" => label(&method), "status" => status.to_string()
    )
    .record(took.as_secs_f64());
    response
}

/// Only known methods become labels: callers can send any.
fn label(method: &Method) -> &'static str {
    let known = ["GET", "HEAD", "POST", "PUT", "DELETE"];
    known.into_iter().find(|known| method.as_str() == *known).unwrap_or("other")
}

/// Probes every few seconds would only bury the interesting traces and log lines.
fn is_probe(route: &str) -> bool {
    matches!(
        route,
        "/livez" | "/readyz" | "/metrics" | "/api/v1/health/liveness" | "/api/v1/health/readiness"
    )
}

/// Adds the path and the request id to every problem, and turns every other error into one.
async fn explained(request: Request, next: Next) -> Response {
    let uri = request.uri().clone();
    let id = request_id(request.headers());
    let mut response = next.run(request).await;
    let known = response.extensions_mut().remove::<Problem>();
    let Some(problem) = known.or_else(|| Problem::foreign(response.status(), &uri)) else { return response };
    let mut explained = problem.respond(Some(uri.path().to_owned()), id);
    // Keeps headers of other layers, such as `Allow`.
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

/// Marks the requests of a connection beyond the limits of connections.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProbesOnly;

/// Connections beyond the limits are there for probes: without their answers, an orchestrator would restart a service that is only
/// crowded.
async fn reserved(request: Request, next: Next) -> Response {
    let extensions = request.extensions();
    let route = extensions.get::<MatchedPath>().map_or("unmatched", MatchedPath::as_str);
    if extensions.get::<ProbesOnly>().is_none() || is_probe(route) {
        return next.run(request).await;
    }
    let detail = "This process, or your address, has its maximum of connections. Nothing was changed. Close connections that you \
                  do not use, and try again.";
    Problem::unavailable(Kind::ConnectionsBusy, detail).into_response()
}

/// Refuses oversized heads. The connection itself refuses those that are far larger.
async fn of_bearable_size(State(app): State<App>, request: Request, next: Next) -> Response {
    let most = app.limits.header_bytes;
    let address = request.uri().path_and_query().map_or(0, |address| address.as_str().len());
    if address > most {
        let detail = format!(
            "The path and query are {address} bytes long; the limit is {most}. Send a shorter address."
        );
        return Problem::new(Kind::UriTooLong, detail).into_response();
    }
    let head = request.headers().iter().fold(address, |sum, (name, value)| {
        // Includes the colon, a space and the line end.
        sum + name.as_str().len() + value.len() + 4
    });
    if head > most {
        let detail = format!(
            "The request's head is {head} bytes long; the limit is {most}. Send fewer or shorter headers."
        );
        return Problem::new(Kind::HeadersTooLarge, detail).into_response();
    }
    next.run(request).await
}

/// Limits the time of a request, including the arrival of its body. A requested wait comes on top.
async fn bounded(State(app): State<App>, request: Request, next: Next) -> Response {
    let most = app.limits.request_timeout + requested_wait(request.uri().query());
    match tokio::time::timeout(most, next.run(request)).await {
        Ok(response) => response,
        Err(_) => Problem::unavailable(
            Kind::Timeout,
            format!(
                "No answer within {} s. The request may still take effect; check before you repeat it.",
                most.as_secs()
            ),
        )
        .into_response(),
    }
}

/// Limits the memory of large bodies and answers. A change is never refused after it was made: its answer is about as large as its
/// body, and takes over the body's share.
pub(crate) async fn buffered(State(app): State<App>, request: Request, next: Next) -> Response {
    let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
    // No call that reads takes a body. One without a size may become as large as any.
    let body = if is_read { 0 } else { request.body().size_hint().exact().unwrap_or(u64::MAX) };
    let most = u64::try_from(app.limits.body_bytes).unwrap_or(u64::MAX);
    let share = match app.buffers.share(body.min(most)).await {
        Ok(share) => share,
        Err(problem) => return problem.into_response(),
    };
    let response = next.run(request).await;
    // A stream has no size; its connection bounds it.
    let Some(answer) = response.body().size_hint().exact() else { return response };
    if !is_read {
        return buffers::keep(response, share.filter(|_| buffers::is_large(answer))).await;
    }
    match app.buffers.share_now(answer) {
        Ok(share) => buffers::keep(response, share).await,
        Err(problem) => problem.into_response(),
    }
}

#[expect(clippy::needless_pass_by_value, reason = "the signature is the layer's")]
fn panicked(panic: Box<dyn Any + Send + 'static>) -> Response {
    let text =
        panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    tracing::error!(panic = text.unwrap_or("(no text)"), "a call panicked");
    Problem::internal().into_response()
}

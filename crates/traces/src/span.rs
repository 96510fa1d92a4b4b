//! The spans and their parents.

use std::{collections::HashMap, fmt::Display};

use opentelemetry::{propagation::TextMapPropagator, trace::TraceContextExt};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use slurm::TraceParent;
use tracing::{Instrument, Level, Metadata, Span, field};
use tracing_opentelemetry::OpenTelemetrySpanExt;

/// The target that distinguishes these spans from those of the logs.
const TARGET: &str = "traces::span";
const HEADER: &str = "traceparent";

/// Whether a span is for the collector and not for the logs.
pub fn is_trace(metadata: &Metadata<'_>) -> bool {
    metadata.target() == TARGET
}

/// The span of an API request. `route` is the route's pattern, not the requested path.
pub fn request(method: &str, route: &str, parent: Option<&TraceParent>) -> Span {
    let span = tracing::info_span!(
        target: TARGET, parent: None, "request",
        otel.name = format_args!("{method} {route}"), otel.kind = "server", otel.status_code = field::Empty,
        http.request.method = method, http.route = route, http.response.status_code = field::Empty,
    );
    follow(&span, parent);
    span
}

/// The span of a command on a cluster, inside its worker step. Outside a step there is no span: polls serve all jobs.
pub fn command(cluster: &dyn Display, name: &'static str) -> Span {
    if !Span::current().metadata().is_some_and(is_trace) {
        return Span::none();
    }
    tracing::info_span!(
        target: TARGET, "command",
        otel.name = format_args!("slurm {name}"), otel.kind = "client", otel.status_code = field::Empty,
        cluster.name = %cluster, outcome = field::Empty,
    )
}

/// The span's position in its trace; `None` without a collector.
pub fn here(span: &Span) -> Option<TraceParent> {
    if span.is_disabled() {
        return None;
    }
    let mut headers = HashMap::new();
    TraceContextPropagator::new().inject_context(&span.context(), &mut headers);
    headers.get(HEADER)?.parse().ok()
}

/// One worker step for several jobs: a span in the trace of each job that has one.
#[derive(Debug, Default)]
pub struct Steps(Vec<Span>);

impl Steps {
    /// Starts the spans. Each job has its id, the number of its attempt, and its trace.
    pub fn begin<Id: Display>(
        kind: &'static str,
        cluster: &dyn Display,
        jobs: impl Iterator<Item = (Id, u32, Option<TraceParent>)>,
    ) -> Self {
        if !tracing::span_enabled!(target: TARGET, Level::INFO) {
            return Self::default();
        }
        let span = |(id, attempt, trace): (Id, u32, Option<TraceParent>)| {
            let trace = trace?;
            let span = tracing::info_span!(
                target: TARGET, parent: None, "step",
                otel.name = format_args!("{kind} job"), cluster.name = %cluster, job.id = %id, attempt,
            );
            follow(&span, Some(&trace));
            Some(span)
        };
        Self(jobs.filter_map(span).collect())
    }

    /// Runs the step. A command serves all jobs but can be in one trace only: it is in the first job's trace, and the spans
    /// of the others link to it.
    pub async fn around<F: Future>(self, step: F) -> F::Output {
        let Some((first, others)) = self.0.split_first() else { return step.await };
        let context = first.context();
        for other in others {
            other.add_link(context.span().span_context().clone());
        }
        step.instrument(first.clone()).await
    }
}

/// Makes the span a child of the given position.
fn follow(span: &Span, parent: Option<&TraceParent>) {
    let Some(parent) = parent.filter(|_| !span.is_disabled()) else { return };
    let headers = HashMap::from([(HEADER.to_owned(), parent.to_string())]);
    // It fails if no layer for the collector is installed; then there is nothing to export.
    let _ = span.set_parent(TraceContextPropagator::new().extract(&headers));
}

//! The spans, and whose trace they belong to.

use std::fmt::Display;

use opentelemetry::{
    Context,
    trace::{SpanContext, SpanId, TraceContextExt, TraceFlags, TraceId, TraceState},
};
use slurm::TraceParent;
use tracing::{Instrument, Level, Metadata, Span, field};
use tracing_opentelemetry::OpenTelemetrySpanExt;

/// What tells these spans from those of the logs.
const TARGET: &str = "traces::span";

/// Whether it is a span for the collector, and not for the logs.
pub fn is_trace(metadata: &Metadata<'_>) -> bool {
    metadata.target() == TARGET
}

/// A request of a caller. `route` is the pattern, not what the caller wrote.
pub fn request(method: &str, route: &str, parent: Option<&TraceParent>) -> Span {
    let span = tracing::info_span!(
        target: TARGET, parent: None, "request",
        otel.name = format_args!("{method} {route}"), otel.kind = "server", otel.status_code = field::Empty,
        http.request.method = method, http.route = route, http.response.status_code = field::Empty,
    );
    follow(&span, parent);
    span
}

/// A command on a cluster, within the step that needs it; without one there is no span: polls serve all jobs.
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

/// The place in its trace at which the span is; none while nothing is told to a collector.
pub fn here(span: &Span) -> Option<TraceParent> {
    if span.is_disabled() {
        return None;
    }
    let context = span.context();
    let place = context.span().span_context().clone();
    format!("00-{}-{}-{:02x}", place.trace_id(), place.span_id(), place.trace_flags().to_u8()).parse().ok()
}

/// One step that is taken for several jobs at once: a span in the trace of each job that has one.
#[derive(Debug, Default)]
pub struct Steps(Vec<Span>);

impl Steps {
    /// Begins it, for the jobs with these ids, numbers of attempts, and traces.
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

    /// Takes it. A command serves all of the jobs and can be in one trace only: it is in the first one's, and the others point
    /// there.
    pub async fn around<F: Future>(self, step: F) -> F::Output {
        let Some((first, others)) = self.0.split_first() else { return step.await };
        let context = first.context();
        for other in others {
            other.add_link(context.span().span_context().clone());
        }
        step.instrument(first.clone()).await
    }
}

/// Puts the span below the place that somebody else was at.
fn follow(span: &Span, parent: Option<&TraceParent>) {
    let Some(parent) = parent.filter(|_| !span.is_disabled()) else { return };
    let text = parent.as_str();
    let (Ok(trace), Ok(place), Ok(flags)) = (
        TraceId::from_hex(parent.trace_id()),
        SpanId::from_hex(&text[36..52]),
        u8::from_str_radix(&text[53..], 16),
    ) else {
        return;
    };
    let there = SpanContext::new(trace, place, TraceFlags::new(flags), true, TraceState::default());
    // It fails where no layer for the collector is installed, and then there is nothing to tell.
    let _ = span.set_parent(Context::new().with_remote_span_context(there));
}

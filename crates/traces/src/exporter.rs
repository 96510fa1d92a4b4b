//! Collects spans and sends them in batches, on a thread of its own.

use std::{collections::HashMap, time::Duration};

use opentelemetry::{KeyValue, trace::TracerProvider};
use opentelemetry_otlp::{ExporterBuildError, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::{
    Resource,
    trace::{Sampler, SdkTracerProvider},
};
use secrecy::{ExposeSecret, SecretString};
use tracing::Subscriber;
use tracing_subscriber::{Layer, filter::filter_fn, registry::LookupSpan};

use crate::{client::Client, span::is_trace};

/// How long the process waits for the last spans at its end.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// Where spans go.
#[derive(Debug)]
pub struct Collector {
    /// The base URL of its OTLP/HTTP receiver, such as `http://127.0.0.1:4318`.
    pub endpoint: String,
    /// Headers of each request, such as credentials.
    pub headers: Vec<(String, SecretString)>,
    /// The fraction of requests without a sampling decision of their own that is traced: from 0 to 1.
    pub sample: f64,
    /// The role of this process.
    pub role: &'static str,
}

/// The exporter cannot be created.
#[derive(Debug, thiserror::Error)]
#[error("cannot create the exporter for traces")]
pub struct ExporterError(#[from] ExporterBuildError);

/// Sends spans to a collector until it is dropped.
#[derive(Debug)]
pub struct Exporter(SdkTracerProvider);

impl Exporter {
    /// Starts the exporter. It contacts the collector only when there is a span. At most 2048 spans wait for export; more are
    /// dropped.
    pub fn start(collector: &Collector) -> Result<Self, ExporterError> {
        let headers: HashMap<String, String> = collector
            .headers
            .iter()
            .map(|(name, value)| (name.clone(), value.expose_secret().to_owned()))
            .collect();
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(Client::new())
            .with_endpoint(format!("{}/v1/traces", collector.endpoint.trim_end_matches('/')))
            .with_headers(headers)
            .build()?;
        let resource = Resource::builder()
            .with_service_name("tao-slurm")
            .with_attributes([
                KeyValue::new("service.version", env!("CARGO_PKG_VERSION")),
                KeyValue::new("tao_slurm.role", collector.role),
            ])
            .build();
        // A request that the caller traces is always traced here.
        let sampler = Sampler::ParentBased(Box::new(Sampler::TraceIdRatioBased(collector.sample)));
        let provider = SdkTracerProvider::builder()
            .with_resource(resource)
            .with_sampler(sampler)
            .with_batch_exporter(exporter)
            .build();
        Ok(Self(provider))
    }

    /// The layer that passes this crate's spans to the exporter.
    pub fn layer<S: Subscriber + for<'a> LookupSpan<'a>>(&self) -> impl Layer<S> + use<S> {
        tracing_opentelemetry::layer()
            .with_tracer(self.0.tracer("tao-slurm"))
            .with_location(false)
            .with_threads(false)
            .with_tracked_inactivity(false)
            .with_context_activation(false)
            .with_filter(filter_fn(is_trace))
    }

    /// Sends the remaining spans, for at most two seconds.
    pub fn finish(&self) {
        // The client has logged that the collector is unreachable.
        let _ = self.0.shutdown_with_timeout(FLUSH_TIMEOUT);
    }
}

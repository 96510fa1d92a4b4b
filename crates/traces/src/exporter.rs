//! What gathers spans and sends them off, on a thread of its own.

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

/// How long the end of the process waits for the last spans to go.
const LAST_MOMENT: Duration = Duration::from_secs(2);

/// Where spans go.
#[derive(Debug)]
pub struct Collector {
    /// The base address of its OTLP receiver by HTTP, such as `http://127.0.0.1:4318`.
    pub endpoint: String,
    /// Sent with each message: what the receiver wants to see before it takes anything.
    pub headers: Vec<(String, SecretString)>,
    /// Of requests that do not say it themselves, this part is traced: from 0 to 1.
    pub sample: f64,
    /// Which parts of the service this process is.
    pub role: &'static str,
}

/// The exporter cannot be made.
#[derive(Debug, thiserror::Error)]
#[error("traces cannot be sent there")]
pub struct ExporterError(#[from] ExporterBuildError);

/// Sends spans to a collector until it is dropped.
#[derive(Debug)]
pub struct Exporter(SdkTracerProvider);

impl Exporter {
    /// Starts it; nothing is sent before there is a span. What the collector does not take in time is dropped: 2048 spans wait at
    /// most.
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
        // A caller whose request is traced wants all of it to be.
        let sampler = Sampler::ParentBased(Box::new(Sampler::TraceIdRatioBased(collector.sample)));
        let provider = SdkTracerProvider::builder()
            .with_resource(resource)
            .with_sampler(sampler)
            .with_batch_exporter(exporter)
            .build();
        Ok(Self(provider))
    }

    /// What hands spans over; everything that is not of this crate is passed by.
    pub fn layer<S: Subscriber + for<'a> LookupSpan<'a>>(&self) -> impl Layer<S> + use<S> {
        tracing_opentelemetry::layer()
            .with_tracer(self.0.tracer("tao-slurm"))
            .with_location(false)
            .with_threads(false)
            .with_tracked_inactivity(false)
            .with_context_activation(false)
            .with_filter(filter_fn(is_trace))
    }

    /// Sends what is left, for a moment at most.
    pub fn finish(&self) {
        // A collector that is away has been complained of.
        let _ = self.0.shutdown_with_timeout(LAST_MOMENT);
    }
}

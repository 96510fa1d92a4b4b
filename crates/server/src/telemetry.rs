//! Logs to standard error, numbers to a recorder that the API shows, traces to a collector.

use anyhow::Context;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use traces::{Collector, Exporter};
use tracing_subscriber::{
    EnvFilter, Layer,
    filter::{FilterExt, filter_fn},
    fmt,
    layer::SubscriberExt,
    registry,
    util::SubscriberInitExt,
};

use crate::config::{Config, Log, LogFormat};

/// From a database's answer to a submission that took its time.
const BUCKETS_SECONDS: [f64; 14] =
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0];

/// Installs the logs of this process, and the way to a collector of traces if there is one to be `exported` to.
pub(crate) fn start_logs(log: &Log, exported: Option<&Exporter>) -> anyhow::Result<()> {
    let filter = EnvFilter::builder().parse(&log.filter).context("log.filter")?;
    // Each has its own filter, so neither sees the spans of the other.
    let filter = filter.and(filter_fn(|metadata| !traces::is_trace(metadata)));
    let logs = fmt::layer().with_writer(std::io::stderr);
    let logs = match log.format {
        LogFormat::Human => {
            let colours = std::io::IsTerminal::is_terminal(&std::io::stderr());
            logs.with_ansi(colours).with_target(false).with_filter(filter).boxed()
        }
        LogFormat::Json => logs.json().flatten_event(true).with_filter(filter).boxed(),
    };
    let installed = registry().with(logs).with(exported.map(Exporter::layer)).try_init();
    installed.map_err(|error| anyhow::anyhow!("cannot install the logs: {error}"))
}

/// Starts what sends traces to the configured collector.
pub(crate) fn start_traces(config: &Config, role: &'static str) -> anyhow::Result<Option<Exporter>> {
    let telemetry = &config.settings.telemetry;
    let Some(endpoint) = telemetry.otlp_endpoint.clone() else { return Ok(None) };
    let headers = config.otlp_headers.clone();
    let collector = Collector { endpoint, headers, sample: telemetry.otlp_sample, role };
    Ok(Some(Exporter::start(&collector)?))
}

/// Installs the recorder of this process's numbers.
pub(crate) fn start_metrics() -> anyhow::Result<PrometheusHandle> {
    PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &BUCKETS_SECONDS)
        .and_then(PrometheusBuilder::install_recorder)
        .context("cannot install the recorder of metrics")
}

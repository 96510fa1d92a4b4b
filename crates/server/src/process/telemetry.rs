//! Logs on standard error, metrics for `/metrics`, traces for a collector.

use anyhow::Context;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use traces::{Collector, Exporter};
use tracing::Dispatch;
use tracing_subscriber::{
    EnvFilter, Layer,
    filter::{FilterExt, dynamic_filter_fn},
    fmt::{self, MakeWriter},
    layer::SubscriberExt,
    registry,
    util::SubscriberInitExt,
};

use crate::{
    config::{Config, Log, LogFormat},
    process::metric_help,
};

/// From a database query to a slow submission.
const BUCKETS_SECONDS: [f64; 14] =
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0];

/// Installs the logs of this process, and the exporter of its traces.
pub(crate) fn start_logs(log: &Log, exporter: Option<&Exporter>) -> anyhow::Result<()> {
    let installed = logs(log, std::io::stderr, exporter)?.try_init();
    installed.map_err(|error| anyhow::anyhow!("cannot install the logs: {error}"))
}

fn logs<W>(log: &Log, writer: W, exporter: Option<&Exporter>) -> anyhow::Result<Dispatch>
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    let filter = EnvFilter::builder().parse(&log.filter).context("log.filter")?;
    // Logs and traces have separate filters. A `dynamic_filter_fn` runs for each line, where a `filter_fn` result is cached:
    // a rejected span would otherwise suppress the next line of the thread (tokio-rs/tracing#2519).
    let filter = filter
        .and(dynamic_filter_fn(|metadata, _| !traces::is_trace(metadata) && !mcp::shows_messages(metadata)));
    let logs = fmt::layer().with_writer(writer);
    let logs = match log.format {
        LogFormat::Human => {
            let colours = std::io::IsTerminal::is_terminal(&std::io::stderr());
            logs.with_ansi(colours).with_target(false).with_filter(filter).boxed()
        }
        LogFormat::Json => logs.json().flatten_event(true).with_filter(filter).boxed(),
    };
    Ok(registry().with(logs).with(exporter.map(Exporter::layer)).into())
}

/// Starts the exporter of traces, if a collector is configured.
pub(crate) fn start_traces(config: &Config, role: &'static str) -> anyhow::Result<Option<Exporter>> {
    let telemetry = &config.settings.telemetry;
    let Some(endpoint) = telemetry.otlp_endpoint.clone() else { return Ok(None) };
    let headers = config.otlp_headers.clone();
    let collector = Collector { endpoint, headers, sample: telemetry.otlp_sample, role };
    Ok(Some(Exporter::start(&collector)?))
}

/// Installs the recorder of this process's metrics.
pub(crate) fn start_metrics() -> anyhow::Result<PrometheusHandle> {
    let handle = PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &BUCKETS_SECONDS)
        .and_then(PrometheusBuilder::install_recorder)
        .context("cannot install the metrics recorder")?;
    metric_help::describe();
    Ok(handle)
}

#[cfg(test)]
mod tests {
    use std::{
        fs::File,
        io::{Read, Seek},
        sync::Arc,
    };

    use super::*;

    /// How many of six warnings reach the logs; each follows a span of the traces.
    fn warnings(exporter: Option<&Exporter>) -> usize {
        let mut file = tempfile::tempfile().unwrap();
        let writer: Arc<File> = Arc::new(file.try_clone().unwrap());
        let log = Log { filter: "info".to_owned(), format: LogFormat::Human };
        tracing::dispatcher::with_default(&logs(&log, writer, exporter).unwrap(), || {
            for _ in 0..3 {
                let _ = traces::Steps::begin("conclude", &"dgx", std::iter::empty::<(u32, u32, _)>());
                tracing::warn!("after a step");
                let _ = traces::request("GET", "/jobs/{id}/status", None);
                tracing::warn!("after a request");
            }
        });
        let mut text = String::new();
        file.rewind().unwrap();
        file.read_to_string(&mut text).unwrap();
        text.matches("WARN").count()
    }

    #[test]
    fn no_log_line_is_lost_without_an_exporter() {
        assert_eq!(warnings(None), 6);
    }

    #[test]
    fn no_log_line_is_lost_with_an_exporter() {
        let collector = Collector {
            endpoint: "http://127.0.0.1:9".to_owned(),
            headers: Vec::new(),
            sample: 0.0,
            role: "worker",
        };
        assert_eq!(warnings(Some(&Exporter::start(&collector).unwrap())), 6);
    }
}

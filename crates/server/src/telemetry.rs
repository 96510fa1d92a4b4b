//! Logs to standard error, numbers to a recorder that the API shows.

use anyhow::Context;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use tracing_subscriber::{EnvFilter, fmt};

use crate::config::{Log, LogFormat};

/// From a database's answer to a submission that took its time.
const BUCKETS_SECONDS: [f64; 14] =
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0];

/// Installs the logs of this process.
pub(crate) fn start_logs(log: &Log) -> anyhow::Result<()> {
    let filter = EnvFilter::builder().parse(&log.filter).context("log.filter")?;
    let logs = fmt().with_env_filter(filter).with_writer(std::io::stderr);
    let installed = match log.format {
        LogFormat::Human => {
            logs.with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr())).with_target(false).try_init()
        }
        LogFormat::Json => logs.json().flatten_event(true).try_init(),
    };
    installed.map_err(|error| anyhow::anyhow!("cannot install the logs: {error}"))
}

/// Installs the recorder of this process's numbers.
pub(crate) fn start_metrics() -> anyhow::Result<PrometheusHandle> {
    PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &BUCKETS_SECONDS)
        .and_then(PrometheusBuilder::install_recorder)
        .context("cannot install the recorder of metrics")
}

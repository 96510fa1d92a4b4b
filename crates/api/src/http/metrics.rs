//! `/metrics`: metrics for Prometheus.

use axum::{
    extract::State,
    http::header,
    response::{IntoResponse, Response},
};

use crate::{
    http::extract::{NoParameters, Query},
    problem::{Kind, Problem, problems},
    state::{App, Limits},
};

/// Registers the API's metrics with their first values: Prometheus shows an increase only of series that exist.
pub(crate) fn show(limits: &Limits) {
    for kind in ["job", "all", "wait"] {
        ::metrics::gauge!("tao_slurm_watchers", "kind" => kind).increment(0.0);
    }
    ::metrics::gauge!("tao_slurm_log_followers").increment(0.0);
    ::metrics::gauge!("tao_slurm_outbox_lag_seconds").increment(0.0);
    ::metrics::counter!("tao_slurm_outbox_reads_total").increment(0);
    #[expect(clippy::cast_precision_loss, reason = "a number of connections")]
    for (kind, most) in [("watchers", limits.watchers), ("log_followers", limits.log_followers)] {
        ::metrics::gauge!("tao_slurm_streams_limit", "kind" => kind).set(most as f64);
    }
}

problems!(Problems = PUBLIC, MetricsDisabled);

/// Read the metrics
///
/// Returns the process's metrics in the Prometheus text format.
#[utoipa::path(
    get,
    path = "/metrics",
    operation_id = "get_metrics",
    security(()),
    responses(
        (status = 200, description = "The metrics.", content_type = "text/plain", body = String),
        Problems
    )
)]
pub(crate) async fn metrics(
    State(app): State<App>,
    Query(NoParameters): Query<NoParameters>,
) -> Result<Response, Problem> {
    let Some(handle) = &app.metrics else {
        return Err(Problem::new(
            Kind::MetricsDisabled,
            "This process runs without metrics; ask another process.",
        ));
    };
    Ok(([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], handle.render())
        .into_response())
}

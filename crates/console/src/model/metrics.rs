//! The metrics of a job over its course.

use serde::Deserialize;

use super::Text;

#[derive(Debug, Deserialize)]
pub(crate) struct Metrics {
    pub(crate) series: Vec<MetricSeries>,
    pub(crate) truncated: bool,
}

/// The values of a metric in one attempt.
#[derive(Debug, Deserialize)]
pub(crate) struct MetricSeries {
    pub(crate) name: Text,
    pub(crate) attempt: u32,
    pub(crate) axis: Text,
    pub(crate) x: Vec<f64>,
    pub(crate) values: Vec<f64>,
    pub(crate) not_finite: u64,
}

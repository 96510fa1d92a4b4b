//! The metrics of a job over its course.

use domain::{JobId, MetricAxis, MetricSeries, Timestamp};
use serde::Serialize;
use utoipa::ToSchema;

/// The metrics of a job.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MetricsView {
    /// The job's id.
    pub job_id: JobId,
    /// The task of the job's array; 0 for a job without one.
    pub task: u32,
    /// One entry for each metric and attempt, by name and attempt. At most 1,000 of at most 200 metrics, with at most 50,000 points
    /// together.
    pub series: Vec<MetricSeriesView>,
    /// Whether values are missing: there are more metrics or lines than are read, or the job has written more lines than are stored.
    pub truncated: bool,
}

/// The values of one metric in one attempt. `x`, `values` and `times` have the same length.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MetricSeriesView {
    /// The metric, as the job names it.
    #[schema(example = "loss", max_length = 100)]
    pub name: String,
    /// The attempt that reported the values.
    pub attempt: u32,
    /// What `x` is.
    pub axis: MetricAxis,
    /// The place of each value. It falls where the job repeats steps.
    #[schema(example = json!([1.0, 2.0]))]
    pub x: Vec<f64>,
    /// The values.
    #[schema(example = json!([0.71, 0.42]))]
    pub values: Vec<f64>,
    /// When the service read each value (RFC 3339).
    #[schema(value_type = Vec<String>, example = json!(["2026-01-31T09:00:00Z", "2026-01-31T09:05:00Z"]))]
    pub times: Vec<Timestamp>,
    /// The number of values before some were left out for `max_points`.
    pub count: u64,
    /// The number of further values that were null, NaN or infinite.
    pub not_finite: u64,
}

impl From<MetricSeries> for MetricSeriesView {
    fn from(series: MetricSeries) -> Self {
        let MetricSeries { name, attempt, axis, points, count, not_finite } = series;
        Self {
            name,
            attempt,
            axis,
            x: points.iter().map(|point| point.x).collect(),
            values: points.iter().map(|point| point.value).collect(),
            times: points.iter().map(|point| point.at).collect(),
            count,
            not_finite,
        }
    }
}

//! `GET /jobs/{id}/metrics`: what a job has reported of its metrics, over its course.

use std::collections::BTreeSet;

use axum::Json;
use domain::{Job, MOST_METRICS, MetricCollector};
use utoipa::IntoParams;

use super::tasks::{LAST_TASK, no_such_task};
use crate::{
    http::extract::{Call, FromQuery, JobInPath, Parameters},
    problem::{Problem, problems},
    view::{MetricSeriesView, MetricsView},
};

problems!(Problems = SECURED, JobNotFound, TaskNotFound, AttemptNotFound);

/// How many lines are read at a time: one may have 16 KiB.
const LINES: u32 = 500;
/// The most lines; no run of a task stores more.
const MOST_LINES: u32 = 100_000;
const POINTS: u32 = 500;
const MOST_POINTS: u32 = 5000;

/// Selects metrics.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct MetricsQuery {
    /// Only the metric with this name. Repeatable. Default: all.
    #[param(value_type = Option<Vec<String>>, style = Form, explode)]
    key: BTreeSet<String>,
    /// The maximum number of points of a series. Of more points those are kept that show its shape: the first and the last, the least and
    /// the greatest value among them.
    #[param(value_type = Option<u32>, minimum = 10, maximum = 5000, default = 500)]
    max_points: u32,
    /// The task of a job with an array, which must be given.
    #[param(value_type = Option<u32>, maximum = 4_000_000)]
    task: Option<u32>,
    /// Only this attempt, counted from 1. Default: all.
    #[param(value_type = Option<u32>, minimum = 1, maximum = 2_147_483_647)]
    attempt: Option<u32>,
}

impl FromQuery for MetricsQuery {
    const KNOWN: &'static [&'static str] = &["key", "max_points", "task", "attempt"];

    fn from_query(parameters: &Parameters) -> Result<Self, Problem> {
        let key: BTreeSet<String> = parameters.all("key").map(str::to_owned).collect();
        if key.len() > MOST_METRICS {
            let detail = format!("must be given at most {MOST_METRICS} times");
            return Err(Problem::parameter("key", "too_many", detail));
        }
        Ok(Self {
            key,
            max_points: parameters.number("max_points", 10..=MOST_POINTS)?.unwrap_or(POINTS),
            task: parameters.number("task", 0..=LAST_TASK)?,
            attempt: parameters.number("attempt", 1..=i32::MAX.unsigned_abs())?,
        })
    }
}

/// Read a job's metrics
///
/// Returns the numbers that the job has reported in the lines of its status files, such as its loss: one series for each metric and
/// attempt. These are the metrics of `kpi` and `graphical`, and `key_metric`. A text that is a number counts as one; values that are not
/// finite are only counted.
#[utoipa::path(
    get,
    path = "/jobs/{id}/metrics",
    params(("id" = domain::JobId, Path, description = "The job's id."), MetricsQuery),
    security(("bearer" = ["read"])),
    responses((status = 200, description = "The metrics; no series if the job has reported none.", body = MetricsView), Problems)
)]
pub(crate) async fn get_job_metrics(
    Call(app, caller, JobInPath(id), query): Call<JobInPath, MetricsQuery>,
) -> Result<Json<MetricsView>, Problem> {
    let job = super::find(&app, &caller, id).await?;
    let task = task_of(&job, query.task)?;
    super::newest_attempt(&job, query.attempt)?;
    let most = usize::try_from(query.max_points).unwrap_or(usize::MAX);
    let mut collector = MetricCollector::new(query.key, most);
    let of_array = job.array.is_some().then_some(task);
    let _turn = app.page_turn().await;
    let (mut seq, mut read) = (0, 0);
    let is_whole = loop {
        let lines = app.store.metric_lines(id, of_array, query.attempt, seq, LINES).await?;
        for line in &lines {
            collector.take(line.attempt, line.at, &line.data);
        }
        read += LINES;
        match lines.last() {
            Some(last) if lines.len() == LINES as usize && read < MOST_LINES => seq = last.seq,
            _ => break lines.len() < LINES as usize,
        }
    };
    let truncated = !is_whole || collector.has_left_out() || app.store.lacks_status_lines(id).await?;
    let series = collector.series().into_iter().map(MetricSeriesView::from).collect();
    Ok(Json(MetricsView { job_id: id, task, series, truncated }))
}

pub(super) fn task_of(job: &Job, task: Option<u32>) -> Result<u32, Problem> {
    let tasks = job.spec.tasks();
    match task {
        None if job.array.is_none() => Ok(0),
        None => {
            Err(Problem::parameter("task", "required", format!("is required; the job's tasks are {tasks}")))
        }
        Some(task) if tasks.contains(task) => Ok(task),
        Some(task) => Err(no_such_task(job, task)),
    }
}

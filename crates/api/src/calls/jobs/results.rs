//! `GET /jobs/{id}/results`: what was found for the results of each task.

use std::{collections::BTreeSet, sync::Arc};

use axum::{
    body::{Body, Bytes},
    http::header,
    response::{IntoResponse, Response},
};
use domain::{Job, JobArray, TaskResult};
use futures_util::{StreamExt, stream};
use slurm::{EnvKey, TaskSet};
use utoipa::IntoParams;

use crate::{
    http::extract::{Call, FromQuery, JobInPath, Parameters},
    problem::{Problem, problems},
    state::App,
    view::{ResultView, table_row},
};

problems!(Problems = SECURED, JobNotFound);

/// How many tasks are read at a time: the results of a task may have a MiB.
const TASKS: usize = 16;

/// How the results are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::EnumString)]
#[strum(serialize_all = "lowercase")]
enum Format {
    Json,
    Csv,
}

/// Selects the format.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ResultsQuery {
    /// `json` or `csv`. Default: `json`.
    #[param(value_type = Option<String>, pattern = "^(json|csv)$", example = "csv")]
    format: Format,
}

impl FromQuery for ResultsQuery {
    const KNOWN: &'static [&'static str] = &["format"];

    fn from_query(parameters: &Parameters) -> Result<Self, Problem> {
        let format = parameters.parse("format", "json or csv")?;
        Ok(Self { format: format.unwrap_or(Format::Json) })
    }
}

/// Read a job's results
///
/// Returns what was found for each entry of the job's `results` when the newest attempt of a task ended. JSON has one object for each
/// task and result: `value` is null where `problem` says why there is no value. NaN, Infinity and -Infinity are the texts `"NaN"`,
/// `"Infinity"` and `"-Infinity"`, because JSON has no such numbers. CSV has one row for each task, and one column for each
/// parameter of its array and each result; lists and objects are JSON, cells without a value are empty, and a text that a
/// spreadsheet would take for a formula begins with `'`.
#[utoipa::path(
    get,
    path = "/jobs/{id}/results",
    params(("id" = domain::JobId, Path, description = "The job's id."), ResultsQuery),
    security(("bearer" = ["read"])),
    responses(
        (status = 200, description = "The results, by task.", content(
            (Vec<ResultView> = "application/json"),
            (String = "text/csv", example = "task,LR,accuracy\r\n0,0.01,0.93\r\n"),
        )),
        Problems
    )
)]
pub(crate) async fn get_job_results(
    Call(app, caller, JobInPath(id), query): Call<JobInPath, ResultsQuery>,
) -> Result<Response, Problem> {
    let job = super::find(&app, &caller, id).await?;
    let carried = app.store.attempt_tasks(job.id).await?;
    let tasks: Vec<u32> =
        if job.spec.results.is_empty() { Vec::new() } else { job.spec.tasks().iter().collect() };
    let mut pages = tasks.chunks(TASKS).map(<[u32]>::to_vec).collect::<Vec<_>>().into_iter();
    let reader = Reader { app, job, carried, format: query.format };
    let mut first = reader.head();
    if let Some(page) = pages.next() {
        first.extend(reader.page(&page, true).await?);
    }
    let kind = match query.format {
        Format::Json => "application/json",
        Format::Csv => "text/csv; charset=utf-8; header=present",
    };
    let body = if pages.len() == 0 {
        first.extend(reader.tail());
        Body::from(first)
    } else {
        let tail = Ok(reader.tail());
        let reader = Arc::new(reader);
        // One page is in memory at a time, however slowly the client reads.
        let rest = stream::iter(pages).then(move |page| {
            let reader = Arc::clone(&reader);
            async move { reader.page(&page, false).await }
        });
        let parts = stream::iter([Ok(first)]).chain(rest).chain(stream::iter([tail]));
        Body::from_stream(parts.map(|part| part.map(Bytes::from).map_err(|problem| problem.code())))
    };
    Ok(([(header::CONTENT_TYPE, kind)], body).into_response())
}

struct Reader {
    app: App,
    job: Arc<Job>,
    /// The tasks of each attempt, newest first.
    carried: Vec<(u32, TaskSet)>,
    format: Format,
}

impl Reader {
    fn head(&self) -> Vec<u8> {
        match self.format {
            Format::Json => b"[".to_vec(),
            Format::Csv => {
                let parameters = self.parameter_names();
                let parameters = parameters.iter().map(|name| name.as_str());
                let results = self.job.spec.results.iter().map(|rule| rule.name.as_str());
                table_row(std::iter::once("task").chain(parameters).chain(results))
            }
        }
    }

    fn parameter_names(&self) -> BTreeSet<&EnvKey> {
        self.job.spec.array.as_ref().map(JobArray::parameter_names).unwrap_or_default()
    }

    fn tail(&self) -> Vec<u8> {
        if self.format == Format::Json { b"]".to_vec() } else { Vec::new() }
    }

    /// The results of these tasks, which are in order.
    async fn page(&self, tasks: &[u32], is_first: bool) -> Result<Vec<u8>, Problem> {
        let (Some(from), Some(to)) = (tasks.first(), tasks.last()) else { return Ok(Vec::new()) };
        let known = self.app.store.task_results(self.job.id, *from..=*to).await?;
        let parameters = self.parameter_names();
        let mut page = Vec::new();
        for task in tasks {
            let newest =
                self.carried.iter().find(|(_, tasks)| tasks.contains(*task)).map(|(attempt, _)| *attempt);
            let stored = known.iter().find(|run| run.task == *task && Some(run.attempt) == newest);
            let results = match stored.and_then(|run| run.results.as_deref()) {
                None if !self.job.status.is_final() => TaskResult::of_unended(&self.job.spec.results),
                stored => TaskResult::of_stored(stored, &self.job.spec.results),
            };
            match self.format {
                Format::Json => {
                    for result in results {
                        if !(is_first && page.is_empty()) {
                            page.push(b',');
                        }
                        page.extend(serde_json::to_vec(&ResultView::new(*task, result)).unwrap_or_default());
                    }
                }
                Format::Csv => page.extend(ResultView::row(*task, &parameters, &self.job, &results)),
            }
        }
        Ok(page)
    }
}

//! What was found for the results of a job: a table of its tasks with their parameters.

use std::collections::{BTreeMap, BTreeSet};

use axum::response::Response;
use maud::{Markup, html};
use serde_json::{Map, Value};

use super::path;
use crate::{
    client::{Failure, JOB_RESULTS, JOB_TASKS, Query},
    frame::{IdPath, Visit},
    layout::{number, pager},
    model::{Job, ResultValue, TaskList, Text},
};

/// The tasks of a page.
const LISTED: u32 = 100;

pub(crate) async fn results(visit: Visit, IdPath(id): IdPath) -> Result<Response, Failure> {
    let job = super::read(&visit, &id).await?;
    let query = visit.query.only(&["page_token"]);
    let values = visit.api.get(&JOB_RESULTS, &[&id], &Query::new()).await?;
    let tasks = match job.details.array {
        Some(_) => Some(visit.api.get(&JOB_TASKS, &[&id], &query.clone().with("limit", LISTED)).await?),
        None => None,
    };
    let content = html! {
        h2 { "Results" }
        @match &tasks {
            Some(tasks) => { (sweep(&job, tasks, &values)) (pager(&path(&id, "/results"), &query, tasks.next_page_token.as_deref())) }
            None => (single(&values)),
        }
    };
    Ok(super::page(&visit, &job, "Results", &content))
}

/// The results of a job with one task.
fn single(values: &[ResultValue]) -> Markup {
    html! {
        dl.facts {
            @for result in values {
                div { dt { (result.name) } dd { (found(result)) } }
            }
        }
    }
}

/// A value, or why there is none. An object is shown by its fields.
fn found(result: &ResultValue) -> Markup {
    html! {
        @if let Some(problem) = &result.problem { span.lacking { (problem) } }
        @else if let Value::Object(fields) = &result.value {
            @for (name, value) in fields { span.field { (Text::from(name.as_str())) " " (number(value)) } " " }
        }
        @else { (number(&result.value)) }
    }
}

/// The parameters of the tasks of a page.
fn columns<'a>(parameters: impl Iterator<Item = &'a Map<String, Value>>) -> BTreeSet<&'a str> {
    parameters.flat_map(|given| given.keys().map(String::as_str)).collect()
}

fn sweep(job: &Job, tasks: &TaskList, values: &[ResultValue]) -> Markup {
    let names = columns(tasks.tasks.iter().map(|task| &task.parameters));
    let by_place: BTreeMap<(u32, &str), &ResultValue> =
        values.iter().map(|result| ((result.task, result.name.raw()), result)).collect();
    html! {
        div.scroll tabindex="0" role="region" aria-label="Results" {
            table {
                caption.unseen { "Parameters and results of the tasks" }
                thead {
                    tr {
                        th scope="col" { "Task" }
                        @for name in &names { th scope="col" { (Text::from(*name)) } }
                        @for rule in &job.details.results { th.result scope="col" { (rule.name) } }
                    }
                }
                tbody {
                    @for task in &tasks.tasks {
                        tr {
                            th scope="row" { a href=(Query::new().with("task", task.task).after(&path(&job.summary.id, "/logs"))) { (task.task) } }
                            @for name in &names { td { @if let Some(value) = task.parameters.get(*name) { (number(value)) } } }
                            @for rule in &job.details.results {
                                td { @if let Some(result) = by_place.get(&(task.task, rule.name.raw())) { (found(result)) } }
                            }
                        }
                    }
                }
            }
        }
    }
}

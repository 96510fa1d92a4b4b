//! The tasks of an array: a grid of all by their states, and a table of some.

use axum::response::Response;
use maud::{Markup, html};
use serde_json::Value;

use super::path;
use crate::{
    client::{Failure, JOB_TASKS, Query},
    frame::{IdPath, Visit},
    layout::{badge, between, button_form, counts, kind, number, pager, since},
    model::{Job, Moment, Task, TaskCounts, TaskList, Text},
};

/// The tasks of a page of the table.
const LISTED: u32 = 100;
/// The largest page of the API.
const PAGE: u32 = 200;
/// Larger arrays are shown by their counts and the table alone.
const MOST_CELLS: u32 = 1000;
const STATES: [&str; 5] = ["pending", "running", "done", "error", "canceled"];

pub(crate) async fn tasks(visit: Visit, IdPath(id): IdPath) -> Result<Response, Failure> {
    let job = super::read(&visit, &id).await?;
    let query = visit.query.only(&["status", "page_token"]);
    let list = visit.api.get(&JOB_TASKS, &[&id], &query.clone().with("limit", LISTED)).await?;
    let grid = grid(&visit, &job).await?;
    let content = html! {
        div.title-row {
            h2 { "Tasks" }
            @if let Some(tasks) = &job.summary.tasks { (counts(tasks)) @if visit.who.may_write() { (retry(&job, tasks)) } }
        }
        (grid)
        (choice(&id, &query))
        (table(visit.now, &job, &list))
        (pager(&path(&id, "/tasks"), &query, list.next_page_token.as_deref()))
    };
    Ok(super::page(&visit, &job, "Tasks", &content))
}

/// Only the failed part of a sweep goes again.
fn retry(job: &Job, tasks: &TaskCounts) -> Markup {
    let is_ended = job.summary.finished_on.is_some();
    html! {
        @if is_ended && tasks.error > 0 {
            (button_form(&path(&job.summary.id, "/do/retry"), "Retry failed tasks", None, &[("tasks", "failed")]))
        }
    }
}

/// A cell for each task.
async fn grid(visit: &Visit, job: &Job) -> Result<Markup, Failure> {
    let all = job.details.array.as_ref().map_or(0, |array| array.tasks);
    if all > MOST_CELLS {
        return Ok(
            html! { p.hint { "The grid shows at most " (MOST_CELLS) " tasks. The table below has all." } },
        );
    }
    let mut tasks: Vec<Task> = Vec::new();
    let mut next: Option<String> = None;
    loop {
        let query = Query::new().with("limit", PAGE).with_if("page_token", next.as_deref());
        let page: TaskList = visit.api.get(&JOB_TASKS, &[&job.summary.id], &query).await?;
        tasks.extend(page.tasks);
        next = page.next_page_token;
        if next.is_none() || tasks.len() >= MOST_CELLS as usize {
            break;
        }
    }
    Ok(html! {
        ul.grid aria-label="Tasks by their states" {
            @for task in &tasks {
                @let says = format!("Task {}: {}", task.task, task.status.plain());
                li { a class=(kind(task.status.raw()).class()) href={ "#task-" (task.task) } title=(says) aria-label=(says) { (mark(task.status.raw())) } }
            }
        }
    })
}

/// The first letter of a state, so that its colour is not all that tells it.
fn mark(status: &str) -> &'static str {
    match status {
        "pending" => "·",
        "running" => "▸",
        "done" => "✓",
        "error" => "×",
        "canceled" => "–",
        _ => "?",
    }
}

fn choice(id: &str, query: &Query) -> Markup {
    let to = |state: Option<&str>| Query::new().with_if("status", state).after(&path(id, "/tasks"));
    html! {
        nav.choice aria-label="States of tasks" {
            a href=(to(None)) aria-current=[query.one("status").is_none().then_some("true")] { "all" }
            @for state in STATES {
                a href=(to(Some(state))) aria-current=[(query.one("status") == Some(state)).then_some("true")] { (state) }
            }
        }
    }
}

fn table(now: Moment, job: &Job, list: &TaskList) -> Markup {
    html! {
        @if list.tasks.is_empty() { p.empty { "No task is in this state." } } @else {
            div.scroll tabindex="0" role="region" aria-label="Tasks" {
                table {
                    caption.unseen { "Tasks by their numbers" }
                    thead { tr { th scope="col" { "Task" } th scope="col" { "Status" } th scope="col" { "Parameters" } th scope="col" { "Message" } th scope="col" { "Exit" } th scope="col" { "Attempt" } th scope="col" { "Slurm" } th scope="col" { "Nodes" } th scope="col" { "Ran" } } }
                    tbody { @for task in &list.tasks { (row(now, job, task)) } }
                }
            }
        }
    }
}

fn row(now: Moment, job: &Job, task: &Task) -> Markup {
    let logs = Query::new().with("task", task.task).after(&path(&job.summary.id, "/logs"));
    html! {
        tr id={ "task-" (task.task) } {
            th scope="row" { a href=(logs) { (task.task) } }
            td { (badge(&task.status)) }
            td { @for (name, value) in &task.parameters { (parameter(name, value)) " " } }
            td.words { @if let Some(message) = &task.message { div title=(message.plain()) { (message) } } }
            td.number { @if let Some(code) = task.exit_code { (code) } }
            td.number { @if let Some(attempt) = task.attempt { (attempt) } }
            td { @if let Some(id) = &task.slurm_job_id { code { (id) } } }
            td { (super::attempts::nodes(&task.nodes)) }
            td.time { @if let Some(at) = task.started_on { (task.ended_on.map_or_else(|| since(now, at), |end| between(at, end))) } }
        }
    }
}

fn parameter(name: &str, value: &Value) -> Markup {
    html! { span.field { (Text::from(name)) " " (number(value)) } }
}

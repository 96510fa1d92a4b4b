//! A new job, as JSON that is checked while it is written.

mod clone;

use axum::response::{Html, IntoResponse, Response};
use loopback::request_like;
use maud::{Markup, html};
use serde_json::Value;

use crate::{
    ROOT,
    client::{CREATE_JOB, Failure, GET_JOB_AS_IT_IS, Query, VALIDATE_JOB},
    frame::{Fields, Page, Visit, gone_to},
    layout::{Icon, Section, copyable, facts, icon, number, problem},
    model::{Live, Text, Validation},
    pages::job,
};

const EXAMPLE: &str = r#"{
  "name": "my-job",
  "command": "nvidia-smi",
  "resources": {"gpus_per_node": 1, "time_hours": 0.1}
}"#;

fn path(rest: &str) -> String {
    format!("{ROOT}/new{rest}")
}

pub(crate) async fn form(visit: Visit) -> Result<Response, Failure> {
    let (text, left_out) = match visit.query.one("from") {
        Some(id) => {
            let job = visit.api.get(&GET_JOB_AS_IT_IS, &[id], &Query::new()).await?;
            (clone::written(&request_like(&job)), clone::left_out(&job))
        }
        None => (EXAMPLE.to_owned(), Vec::new()),
    };
    Ok(page(&visit, &text, &left_out, None))
}

fn page(visit: &Visit, text: &str, left_out: &[String], refused: Option<&Failure>) -> Response {
    let live = html! {
        h1 { "New job" }
        @if let Some(failure) = refused { (problem(failure)) }
        @if !left_out.is_empty() {
            section.warnings { h2 { "Not in this copy" } ul { @for part in left_out { li { (part) } } } }
        }
        form.new-job method="post" action=(path("")) hx-post=(path("")) hx-target="#notice" {
            div {
                label for="request" { "Job, as " code { "POST /jobs" } " takes it" }
                textarea #request name="request" rows="24" spellcheck="false" autocapitalize="off" autocomplete="off"
                    hx-post=(path("/check")) hx-trigger="load, input changed delay:500ms" hx-target="#checked" hx-sync="this:replace" { (text) }
                div.actions {
                    button.main { "Submit" }
                    button type="submit" formaction=(path("/check?live=true")) hx-post=(path("/check?live=true")) hx-include="closest form" hx-target="#checked" { "Ask the cluster" }
                    a href="/docs/" { "All fields" }
                }
            }
            div #checked role="region" aria-live="polite" aria-label="Result of the check" {}
        }
    };
    Page { title: "New job".to_owned(), section: Section::NewJob, wakes: None, live, fixed: None }
        .answer(visit)
}

/// The text as JSON, or why it is none.
fn parsed(fields: &Query) -> Result<Value, String> {
    let text = fields.one("request").unwrap_or_default();
    serde_json::from_str(text).map_err(|error| format!("The text is no JSON yet: {error}."))
}

/// What would come of the job. A job that is refused is the answer, not a failure.
pub(crate) async fn check(visit: Visit, Fields(fields): Fields) -> Result<Response, Failure> {
    let live = Query::new().with_if("live", visit.query.one("live").filter(|live| *live == "true"));
    let shown = match parsed(&fields) {
        Err(why) => html! { p.hint { (why) } },
        Ok(request) => match visit.api.call(&VALIDATE_JOB, &[], &live, Some(&request)).await {
            Ok(validation) => valid(&validation),
            Err(failure)
                if failure.status.is_client_error()
                    && failure.status != axum::http::StatusCode::UNAUTHORIZED =>
            {
                problem(&failure)
            }
            Err(failure) => return Err(failure),
        },
    };
    Ok(Html(shown.into_string()).into_response())
}

fn valid(validation: &Validation) -> Markup {
    let job = &validation.job;
    let resources = &job.resources;
    html! {
        h2.good { (icon(Icon::Check)) "The job is valid" }
        (facts([
            ("Cluster", Some(html! { (job.cluster) @if let Some(partition) = &job.partition { " / " (partition) } })),
            ("GPUs", Some(html! { (resources.total_gpus) " on " (resources.num_nodes) @if resources.num_nodes == 1 { " node" } @else { " nodes" } })),
            ("Time limit", Some(html! { (number(&Value::from(resources.time_hours))) " h" })),
            ("Submissions", (validation.submissions > 1).then(|| html! { (validation.submissions) })),
        ]))
        @if let Some(live) = &validation.live { (of_cluster(live)) }
        @if !validation.warnings.is_empty() { (job::warnings(&validation.warnings)) }
        details #batch-script open { summary { "Batch script" } (copyable("script", "Batch script", &validation.batch_script)) }
    }
}

fn of_cluster(live: &Live) -> Markup {
    let paths = |paths: &[Text]| {
        (!paths.is_empty()).then(|| html! { ul.plain { @for path in paths { li { code { (path) } } } } })
    };
    html! {
        section {
            h2 class=(if live.accepted { "good" } else { "bad" }) { @if live.accepted { (icon(Icon::Check)) "Slurm would accept it" } @else { (icon(Icon::Cross)) "Slurm would refuse it" } }
            p { (live.sbatch_output) }
            (facts([("Missing paths", paths(&live.missing_paths)), ("Unknown paths", paths(&live.unknown_paths))]))
        }
    }
}

pub(crate) async fn create(visit: Visit, Fields(fields): Fields) -> Result<Response, Failure> {
    let text = fields.one("request").unwrap_or_default();
    let created = match parsed(&fields) {
        Ok(request) => visit.api.post(&CREATE_JOB, &[], Some(&request)).await,
        Err(why) => Err(Failure::new(axum::http::StatusCode::BAD_REQUEST, "The job cannot be read", why)),
    };
    match created {
        Ok(created) => Ok(gone_to(&visit, &format!("{ROOT}/jobs/{}", created.id))),
        // Without a script the text would be lost.
        Err(failure)
            if visit.wants == crate::frame::Wants::Page
                && failure.status.is_client_error()
                && failure.status != axum::http::StatusCode::UNAUTHORIZED =>
        {
            Ok(page(&visit, text, &[], Some(&failure)))
        }
        Err(failure) => Err(failure),
    }
}

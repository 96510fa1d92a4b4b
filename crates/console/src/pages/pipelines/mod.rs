//! Pipelines: a list, and one pipeline as a graph and a table.

mod graph;

use axum::{extract::Path, response::Response};
use maud::{Markup, html};

use crate::{
    ROOT,
    client::{CANCEL_PIPELINE, Failure, GET_PIPELINE, LIST_PIPELINES, Query, RETRY_PIPELINE},
    frame::{Fields, IdPath, Page, Visit, done, wakes},
    layout::{Section, ago, badge, between, button_form, facts, pager, since},
    model::{Moment, Pipeline, PipelineCounts, PipelineJob, PipelineList, Text},
    pages::jobs::short_id,
};

const LISTED: u32 = 50;

fn path(rest: &str) -> String {
    format!("{ROOT}/pipelines{rest}")
}

fn title(name: Option<&Text>, id: &str) -> Text {
    name.cloned().unwrap_or_else(|| Text::new(format!("pipeline {}", short_id(id))))
}

pub(crate) async fn list(visit: Visit) -> Result<Response, Failure> {
    let query = visit.query.only(&["page_token"]);
    let list = visit.api.get(&LIST_PIPELINES, &[], &query.clone().with("limit", LISTED)).await?;
    let live = table(visit.now, &query, &list);
    let page = Page {
        title: "Pipelines".to_owned(),
        section: Section::Pipelines,
        wakes: Some(wakes(None)),
        live,
        fixed: None,
    };
    Ok(page.answer(&visit))
}

fn table(now: Moment, query: &Query, list: &PipelineList) -> Markup {
    html! {
        h1 { "Pipelines" }
        @if list.pipelines.is_empty() {
            p.empty { "There are no pipelines. " code { "POST /pipelines" } " stores one." }
        } @else {
            div.scroll tabindex="0" role="region" aria-label="Pipelines" {
                table {
                    caption.unseen { "Pipelines, newest first" }
                    thead { tr { th scope="col" { "Pipeline" } th scope="col" { "Status" } th scope="col" { "Jobs" } th scope="col" { "Age" } th scope="col" { "Owner" } } }
                    tbody {
                        @for pipeline in &list.pipelines {
                            tr id={ "pipeline-" (pipeline.id) } {
                                th.name scope="row" {
                                    a href=(path(&format!("/{}", pipeline.id))) { (title(pipeline.name.as_ref(), &pipeline.id)) }
                                    span.id { (short_id(&pipeline.id)) }
                                }
                                td { (badge(&pipeline.status)) }
                                td { (jobs(&pipeline.jobs_by_status)) }
                                td.time { (ago(now, pipeline.created_on)) }
                                td { (pipeline.owner) }
                            }
                        }
                    }
                }
            }
        }
        (pager(&path(""), query, list.next_page_token.as_deref()))
    }
}

/// The jobs by their states.
fn jobs(counts: &PipelineCounts) -> Markup {
    let states = [
        ("done", counts.done),
        ("failed", counts.error),
        ("running", counts.running),
        ("waiting", counts.pending),
        ("canceled", counts.canceled),
        ("skipped", counts.skipped),
    ];
    html! {
        (counts.total) span.hint {
            @for (name, number) in states.into_iter().filter(|(_, number)| *number > 0) { " · " (number) " " (name) }
        }
    }
}

pub(crate) async fn show(visit: Visit, IdPath(id): IdPath) -> Result<Response, Failure> {
    let pipeline = visit.api.get(&GET_PIPELINE, &[&id], &Query::new()).await?;
    let name = title(pipeline.name.as_ref(), &pipeline.id);
    let page = Page {
        title: format!("{} · {}", pipeline.status.plain(), name.plain()),
        section: Section::Pipelines,
        wakes: Some(wakes(Some(("pipeline", &id)))),
        live: content(&visit, &name, &pipeline),
        fixed: None,
    };
    Ok(page.answer(&visit))
}

fn content(visit: &Visit, name: &Text, pipeline: &Pipeline) -> Markup {
    let action = |action: &str| path(&format!("/{}/do/{action}", pipeline.id));
    let (now, counts) = (visit.now, &pipeline.jobs_by_status);
    html! {
        div.job-head {
            div.title-row { h1 { (name) } (badge(&pipeline.status)) span.id { (short_id(&pipeline.id)) } }
            @if visit.who.may_write() { div.actions role="group" aria-label="Actions" {
                @if counts.pending + counts.running > 0 { (button_form(&action("cancel"), "Cancel", Some("Cancel all jobs of this pipeline that have not ended?"), &[])) }
                @if counts.error + counts.canceled > 0 { (button_form(&action("retry"), "Retry", None, &[])) }
            } }
        }
        (facts([
            ("Jobs", Some(jobs(counts))),
            ("Owner", Some(html! { (pipeline.owner) })),
            ("Age", Some(ago(now, pipeline.created_on))),
        ]))
        (graph::draw(&pipeline.jobs))
        div.scroll tabindex="0" role="region" aria-label="Jobs of the pipeline" {
            table {
                caption.unseen { "Jobs, each after those that it needs" }
                thead { tr { th scope="col" { "Job" } th scope="col" { "Status" } th scope="col" { "What happens" } th scope="col" { "Needs" } th scope="col" { "Ran" } } }
                tbody { @for job in &pipeline.jobs { (row(now, job)) } }
            }
        }
    }
}

fn row(now: Moment, job: &PipelineJob) -> Markup {
    html! {
        tr id={ "job-" (job.id) } {
            th.name scope="row" { a href={ (ROOT) "/jobs/" (job.id) } { (job.name) } }
            td { @if job.skipped { (badge(&Text::from("skipped"))) } @else { (badge(&job.status)) } }
            td.words { div { (job.message) } }
            td { @for need in &job.needs { span.field { (need.name) " " span.hint { (need.when) } } " " } }
            td.time { @if let Some(at) = job.started_on { (job.finished_on.map_or_else(|| since(now, at), |end| between(at, end))) } }
        }
    }
}

pub(crate) async fn act(
    visit: Visit,
    IdPath(id): IdPath,
    Path((_, action)): Path<(String, String)>,
    Fields(_): Fields,
) -> Result<Response, Failure> {
    let (call, did) = match action.as_str() {
        "cancel" => (&CANCEL_PIPELINE, "Its jobs will be canceled."),
        "retry" => (&RETRY_PIPELINE, "Its failed and canceled jobs will be submitted again."),
        _ => return Err(Failure::no_page()),
    };
    visit.api.post(call, &[&id], None).await?;
    Ok(done(&visit, did, &path(&format!("/{id}"))))
}

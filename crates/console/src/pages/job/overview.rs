//! The first page of a job.

use axum::{http::StatusCode, response::Response};
use maud::{Markup, html};
use serde_json::Value;

use super::{cause, charts, components, needs::needs, stepper, usage};
use crate::{
    ROOT,
    client::{Failure, JOB_DIAGNOSIS, Query},
    frame::{IdPath, Visit},
    layout::{Kind, ago, copyable, counts, facts, kind, meter, number},
    model::{Diagnosis, Job, JobSummary, Moment, Note, Progress, Text, Usage},
};

pub(crate) async fn overview(visit: Visit, IdPath(id): IdPath) -> Result<Response, Failure> {
    let job = super::read(&visit, &id).await?;
    let diagnosis = match kind(job.summary.status.raw()) {
        Kind::Bad => diagnosis(&visit, &id).await?,
        _ => None,
    };
    let used = usage::read(&visit, &job).await?;
    let content = content(visit.now, &job, diagnosis.as_ref(), used.as_ref());
    Ok(super::page(&visit, &job, "Overview", &content))
}

/// None if nothing of the job has failed, such as one that was never submitted.
async fn diagnosis(visit: &Visit, id: &str) -> Result<Option<Diagnosis>, Failure> {
    match visit.api.get(&JOB_DIAGNOSIS, &[id], &Query::new()).await {
        Ok(diagnosis) => Ok(Some(diagnosis)),
        Err(failure) if failure.status == StatusCode::NOT_FOUND => Ok(None),
        Err(failure) => Err(failure),
    }
}

fn content(now: Moment, job: &Job, diagnosis: Option<&Diagnosis>, used: Option<&Usage>) -> Markup {
    let (summary, details) = (&job.summary, &job.details);
    html! {
        (stepper::stepper(now, summary))
        (cause::panel(now, job, diagnosis))
        (progress(job))
        (charts::section(job))
        @if let Some(used) = used { (usage::section(job, used)) }
        div.columns {
            section {
                h2 { "Where" }
                (place(now, job))
            }
            section {
                h2 { "What" }
                (what(job))
            }
        }
        @if !details.steps.is_empty() || !details.services.is_empty() { (components::table(job)) }
        @if summary.pending.is_none() && !details.needs.is_empty() { (needs(job)) }
        @if !details.warnings.is_empty() { (warnings(&details.warnings)) }
        (commands(summary))
    }
}

fn progress(job: &Job) -> Markup {
    let Progress { percent, epoch, max_epoch, done, total, eta, message, metrics } = &job.summary.progress;
    let is_known = percent.is_some() || epoch.is_some() || !metrics.is_empty() || message.is_some();
    html! {
        @if let Some(tasks) = &job.summary.tasks { section { h2 { "Tasks" } (counts(tasks)) @if let Some(percent) = percent { (meter(*percent, "Tasks that have ended")) } } }
        @else if is_known {
            section {
                h2 { "Progress" }
                @if let Some(percent) = percent { (meter(*percent, "Progress")) }
                @if let Some(message) = message { p { (message) } }
                (facts([
                    ("Epoch", epoch.map(|epoch| html! { (epoch) @if let Some(max) = max_epoch { " of " (max) } })),
                    ("Done", done.map(|done| html! { (number(&Value::from(done))) @if let Some(total) = total { " of " (number(&Value::from(*total))) } })),
                    ("Left", eta.as_ref().map(|eta| html! { (eta) })),
                ]))
                @if !metrics.is_empty() {
                    dl.metrics { @for (name, value) in metrics { div { dt { (Text::from(name.as_str())) } dd { (number(value)) } } } }
                }
            }
        }
    }
}

fn place(now: Moment, job: &Job) -> Markup {
    let (summary, backend) = (&job.summary, &job.details.backend_details);
    let text = |text: &Option<Text>| text.as_ref().map(|text| html! { (text) });
    facts([
        (
            "Cluster",
            Some(
                html! { a href={ (ROOT) "/clusters/" (crate::client::segment(backend.cluster_name.raw())) } { (backend.cluster_name) } },
            ),
        ),
        ("Partition", text(&summary.partition.clone().or_else(|| backend.partition.clone()))),
        ("Account", text(&backend.account)),
        ("QOS", text(&backend.qos)),
        (
            "Slurm job",
            summary
                .slurm_job_id
                .as_ref()
                .map(|id| html! { code { (id) } @if let Some(state) = &summary.slurm_state { " " (state) } }),
        ),
        ("Nodes", (!summary.nodes.is_empty()).then(|| super::attempts::nodes(&summary.nodes))),
        ("Directory", backend.slurm_metadata.job_dir.as_ref().map(|dir| html! { code { (dir) } })),
        ("Confirmed", summary.observed_at.map(|at| ago(now, at))),
    ])
}

fn what(job: &Job) -> Markup {
    let (summary, details) = (&job.summary, &job.details);
    let resources = &details.resources;
    let network = summary.network_arch.as_ref().zip(summary.action.as_ref());
    html! {
        (facts([
            ("Owner", Some(html! { (summary.owner) })),
            ("Network", network.map(|(network, action)| html! { (network) " " (action) })),
            ("Image", summary.image.as_ref().map(|image| html! { code { (image) } })),
            ("GPUs", Some(html! {
                (resources.total_gpus)
                @if let Some(kind) = &resources.gpu_type { " " (kind) }
                @if resources.num_nodes > 1 { " on " (resources.num_nodes) " nodes, " (resources.gpus_per_node) " each" }
            })),
            ("CPUs of a task", Some(html! { (resources.cpus_per_task) })),
            ("Time limit", Some(html! { (number(&Value::from(resources.time_hours))) " h" })),
            ("Retries", Some(html! { "at most " (details.retry.max_retries) })),
            ("Working directory", details.workdir.as_ref().map(|dir| html! { code { (dir) } })),
            ("Pipeline", details.pipeline.as_ref().map(|of| html! { a href={ (ROOT) "/pipelines/" (of.id) } { (of.name) } })),
            ("Labels", (!summary.labels.is_empty()).then(|| html! { @for (key, value) in &summary.labels { span.label { (key) ":" (value) } " " } })),
        ]))
        @if let Some(command) = &details.command { (copyable("command", "Command", command)) }
    }
}

pub(crate) fn warnings(notes: &[Note]) -> Markup {
    html! {
        section.warnings {
            h2 { "Warnings" }
            ul { @for note in notes { li { code { (note.pointer) } " " (note.detail) } } }
        }
    }
}

fn commands(summary: &JobSummary) -> Markup {
    let id = &summary.id;
    let curl = format!("curl -sS \"$TAO_SLURM_URL/jobs/{id}\" -H \"Authorization: Bearer $TAO_SLURM_TOKEN\"");
    let cli = format!("tao-slurm status {id} --watch");
    html! {
        details #commands {
            summary { "As a command" }
            (copyable("as-curl", "With curl", &Text::new(curl)))
            (copyable("as-cli", "With the command line", &Text::new(cli)))
        }
    }
}

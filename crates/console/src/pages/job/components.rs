//! The steps and services of a job.

use maud::{Markup, html};

use super::path;
use crate::{
    client::Query,
    model::{Component, Job, Ready},
};

pub(super) fn table(job: &Job) -> Markup {
    let details = &job.details;
    html! {
        section {
            h2 { "Components" }
            div.scroll tabindex="0" role="region" aria-label="Components" {
                table {
                    caption.unseen { "Services, then steps in their order" }
                    thead { tr { th scope="col" { "Name" } th scope="col" { "Kind" } th scope="col" { "Nodes" } th scope="col" { "Ready" } th scope="col" { "Program" } } }
                    tbody {
                        @for service in &details.services { (row(job, service, "service")) }
                        @for step in &details.steps { (row(job, step, if step.with_previous { "step, with the one before" } else { "step" })) }
                    }
                }
            }
        }
    }
}

fn row(job: &Job, component: &Component, kind: &str) -> Markup {
    let logs = Query::new().with("role", component.name.raw()).after(&path(&job.summary.id, "/logs"));
    let last = component.first_node + component.nodes.saturating_sub(1);
    html! {
        tr {
            th scope="row" { a href=(logs) { (component.name) } }
            td { (kind) @if let Some(port) = component.port { span.hint { " port " @if port == 0 { "of its own" } @else { (port) } } } }
            td { (component.nodes) span.hint { " (" (component.first_node) @if last > component.first_node { "–" (last) } ")" } }
            td { @if let Some(ready) = &component.ready { (readiness(ready)) } @else { span.hint { "at once" } } }
            td { @if let Some(image) = &component.image { code { (image) } " " } code.program title=(component.command.plain()) { (component.command) } }
        }
    }
}

fn readiness(ready: &Ready) -> Markup {
    html! {
        @if let Some(page) = &ready.http { "page " code { (page) } }
        @if ready.tcp { "its port accepts" }
        @if let Some(file) = &ready.file { "file " code { (file) } }
        @if let Some(pattern) = &ready.log_pattern { "log line " code { (pattern) } }
        span.hint { " within " (ready.timeout_seconds) " s" }
    }
}

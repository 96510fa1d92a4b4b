//! What a job consists of: its effective settings, and its batch script.

use std::collections::BTreeMap;

use axum::response::Response;
use maud::{Markup, html};

use super::path;
use crate::{
    client::{Failure, JOB_SCRIPT, Query},
    frame::{IdPath, Visit},
    layout::{copyable, facts, json},
    model::{Job, Text},
};

pub(crate) async fn script(visit: Visit, IdPath(id): IdPath) -> Result<Response, Failure> {
    let job = super::read(&visit, &id).await?;
    let content = match visit.api.document(&JOB_SCRIPT, &[&id], &Query::new()).await {
        Ok(script) => {
            let text = Text::new(String::from_utf8_lossy(&script.bytes));
            html! { h2 { "Batch script as submitted" } (copyable("script", "Batch script", &text)) }
        }
        // Of a job that was not submitted.
        Err(failure) if failure.is("no_script_yet") || failure.status.is_client_error() => {
            html! { h2 { "Batch script" } p.empty { (failure.detail) } }
        }
        Err(failure) => return Err(failure),
    };
    Ok(super::page(&visit, &job, "Script", &content))
}

pub(crate) async fn spec(visit: Visit, IdPath(id): IdPath) -> Result<Response, Failure> {
    let job = super::read(&visit, &id).await?;
    Ok(super::page(&visit, &job, "Spec", &settings(&job)))
}

fn settings(job: &Job) -> Markup {
    let details = &job.details;
    html! {
        h2 { "Effective settings" }
        @if let Some(command) = &details.command { h3 { "Command" } (copyable("command", "Command", command)) }
        @if !details.setup.is_empty() {
            h3 { "Setup" }
            (copyable("setup", "Setup", &Text::new(lines(&details.setup))))
        }
        @if let Some(specs) = &details.specs { h3 { "Specification" } (json(specs)) }
        @if !details.docker_env_vars.is_empty() { h3 { "Variables" } (variables(&details.docker_env_vars)) }
        (facts([
            ("Secret variables", list(&details.secret_env_vars)),
            ("Files", list(&details.files)),
            ("Inputs", list(&details.inputs)),
            ("Results", list(&details.results.iter().map(|rule| rule.name.clone()).collect::<Vec<_>>())),
            ("Tasks", details.array.as_ref().map(|array| html! {
                (array.indices) @if let Some(most) = array.max_parallel { ", at most " (most) " at once" }
            })),
        ]))
        p { a href={ (crate::ROOT) "/new?from=" (job.summary.id) } { "New job with these settings" } }
        p.hint { "The whole document: " code { "GET " (path(&job.summary.id, "").trim_start_matches(crate::ROOT)) } }
    }
}

fn lines(texts: &[Text]) -> String {
    texts.iter().map(Text::raw).collect::<Vec<_>>().join("\n")
}

fn list(texts: &[Text]) -> Option<Markup> {
    (!texts.is_empty()).then(|| html! { ul.plain { @for text in texts { li { code { (text) } } } } })
}

fn variables(variables: &BTreeMap<Text, Text>) -> Markup {
    html! { dl.facts { @for (name, value) in variables { div { dt { code { (name) } } dd { code { (value) } } } } } }
}

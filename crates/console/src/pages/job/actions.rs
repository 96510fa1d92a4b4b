//! What can be done with a job: each is one call of the API.

use axum::response::Response;
use maud::{Markup, html};
use serde_json::{Map, Value, json};

use super::path;
use crate::{
    ROOT,
    client::{CANCEL_JOB, Call, DELETE_JOB, Failure, PAUSE_JOB, Query, REDELIVER, RESUME_JOB, RETRY_JOB},
    frame::{Fields, IdPath, Visit, done},
    layout::button_form,
    model::{Job, JobStatus, Text},
};

/// The names of fields that carry secrets begin so.
const SECRET: &str = "secret:";

/// The actions that the job's status allows. The API decides.
fn allowed(status: &str) -> &'static [&'static str] {
    match status {
        "Pending" | "Started" | "Running" | "Resuming" => &["cancel", "pause"],
        "Pausing" => &["cancel"],
        "Paused" => &["resume", "cancel"],
        "Error" | "Canceled" => &["retry", "delete"],
        "Done" => &["delete"],
        _ => &[],
    }
}

pub(super) fn bar(job: &Job) -> Markup {
    let id = &job.summary.id;
    html! {
        div.actions role="group" aria-label="Actions" {
            @for action in allowed(job.summary.status.raw()) {
                @match *action {
                    "retry" if !job.details.secret_env_vars.is_empty() => (retry_with_secrets(id, &job.details.secret_env_vars)),
                    "retry" => (button_form(&path(id, "/do/retry"), "Retry", None, &[])),
                    "cancel" => (button_form(&path(id, "/do/cancel"), "Cancel", Some("Cancel this job?"), &[])),
                    "pause" => (button_form(&path(id, "/do/pause"), "Pause", None, &[])),
                    "resume" => (button_form(&path(id, "/do/resume"), "Resume", None, &[])),
                    _ => (button_form(&path(id, "/do/delete"), "Delete", Some("Delete this job from the service? Its files on the cluster stay."), &[])),
                }
            }
            a.button href={ (ROOT) "/new?from=" (id) } { "Clone" }
        }
    }
}

/// The service erased the secrets when the job ended.
fn retry_with_secrets(id: &str, names: &[Text]) -> Markup {
    let to = path(id, "/do/retry");
    html! {
        details.pop #retry-with-secrets {
            summary.button { "Retry…" }
            form method="post" action=(to) hx-post=(to) hx-target="#notice" {
                p.hint { "The secret values were erased when the job ended. They are needed again." }
                @for (place, name) in names.iter().enumerate() {
                    label for={ "secret-" (place) } { (name) }
                    input id={ "secret-" (place) } type="password" name={ (SECRET) (name.raw()) } autocomplete="off" required data-keep="";
                }
                button.main { "Retry" }
            }
        }
    }
}

pub(crate) async fn act(
    visit: Visit,
    IdPath(id): IdPath,
    Fields(fields): Fields,
) -> Result<Response, Failure> {
    let action = visit.path.rsplit('/').next().unwrap_or_default();
    let back = path(&id, "");
    let change =
        async |call: &Call<JobStatus>, body: Option<Value>| visit.api.post(call, &[&id], body.as_ref()).await;
    let status = match action {
        "cancel" => change(&CANCEL_JOB, tasks(&fields)).await?,
        "pause" => change(&PAUSE_JOB, None).await?,
        "resume" => change(&RESUME_JOB, None).await?,
        "retry" => change(&RETRY_JOB, retry(&fields)).await?,
        "delete" => {
            visit.api.call(&DELETE_JOB, &[&id], &Query::new(), None).await?;
            return Ok(crate::frame::gone_to(&visit, &format!("{ROOT}/jobs")));
        }
        "redeliver" => {
            visit.api.post(&REDELIVER, &[&id], None).await?;
            return Ok(done(&visit, "All messages will be sent again.", &path(&id, "/webhook")));
        }
        _ => return Err(Failure::no_page()),
    };
    Ok(done(&visit, &format!("{}. {}", status.status.plain(), status.message.plain()), &back))
}

fn tasks(fields: &Query) -> Option<Value> {
    fields.one("tasks").map(|tasks| json!({ "tasks": tasks }))
}

fn retry(fields: &Query) -> Option<Value> {
    let secret =
        |(name, value): (&str, &str)| Some((name.strip_prefix(SECRET)?.to_owned(), Value::from(value)));
    let secrets: Map<String, Value> = fields.pairs().filter_map(secret).collect();
    let mut body = Map::new();
    body.extend(fields.one("tasks").map(|tasks| ("tasks".to_owned(), Value::from(tasks))));
    if !secrets.is_empty() {
        body.insert("secret_env_vars".to_owned(), Value::Object(secrets));
    }
    (!body.is_empty()).then_some(Value::Object(body))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_retry_sends_the_tasks_and_the_secrets_of_its_form() {
        let fields = Query::new().with("tasks", "failed").with("secret:HF_TOKEN", "hf_x").with("other", "y");
        assert_eq!(retry(&fields), Some(json!({"tasks": "failed", "secret_env_vars": {"HF_TOKEN": "hf_x"}})));
        assert_eq!(retry(&Query::new()), None);
    }

    #[test]
    fn the_actions_are_those_that_the_status_allows() {
        assert_eq!(allowed("Running"), ["cancel", "pause"]);
        assert_eq!(allowed("Error"), ["retry", "delete"]);
        assert_eq!(allowed("Canceling"), [""; 0]);
    }
}

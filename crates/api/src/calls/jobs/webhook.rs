//! `/jobs/{id}/webhook`: what a job's webhook was told, and telling it again.

use axum::{Json, extract::State, http::StatusCode};

use crate::{
    auth::Caller,
    http::extract::{FromQuery, JobInPath, NoParameters, Parameters, Query},
    problem::{Kind, Problem, problems},
    state::App,
    view::WebhookView,
};

problems!(Problems = SECURED, JobNotFound, NoWebhook);

/// Read what a job's webhook was told
///
/// The messages to the webhook that the job's request named, newest first: which were taken, which wait, which were
/// given up and why.
#[utoipa::path(
    get,
    path = "/jobs/{id}/webhook",
    tag = "jobs",
    operation_id = "get_job_webhook",
    params(("id" = domain::JobId, Path, description = "The job's id.")),
    security(("bearer" = ["read"])),
    responses((status = 200, description = "The messages.", body = WebhookView), Problems)
)]
pub(crate) async fn get_job_webhook(
    State(app): State<App>,
    caller: Caller,
    JobInPath(id): JobInPath,
    Query(NoParameters): Query<NoParameters>,
) -> Result<Json<WebhookView>, Problem> {
    let job = super::find(&app, &caller, id).await?;
    let history = app.store.webhook_history(job.id).await?.ok_or_else(|| no_webhook(job.id))?;
    Ok(Json(WebhookView::new(job.id, history)))
}

/// Which messages to send again.
#[derive(Debug)]
pub(crate) struct Again {
    seq: Option<u64>,
}

impl FromQuery for Again {
    const KNOWN: &'static [&'static str] = &["seq"];

    fn from_query(parameters: &Parameters) -> Result<Self, Problem> {
        Ok(Self { seq: parameters.number("seq", 1, i64::MAX.unsigned_abs())? })
    }
}

/// Send a job's webhook its messages again
///
/// Sends again what was given up, or with `seq` the one message of that number, whatever became of it; and tries at once
/// what waits. Receivers know a message again by its `webhook-id`.
#[utoipa::path(
    post,
    path = "/jobs/{id}/webhook/redeliver",
    tag = "jobs",
    operation_id = "redeliver_job_webhook",
    params(
        ("id" = domain::JobId, Path, description = "The job's id."),
        ("seq" = Option<u64>, Query, minimum = 1, description = "The number of the event; default: all that were given up.")
    ),
    security(("bearer" = ["write"])),
    responses((status = 202, description = "They will be sent.", body = WebhookView), Problems)
)]
pub(crate) async fn redeliver_job_webhook(
    State(app): State<App>,
    caller: Caller,
    JobInPath(id): JobInPath,
    Query(Again { seq }): Query<Again>,
) -> Result<(StatusCode, Json<WebhookView>), Problem> {
    let job = super::find(&app, &caller, id).await?;
    app.store.redeliver(job.id, seq).await?.ok_or_else(|| no_webhook(job.id))?;
    let history = app.store.webhook_history(job.id).await?.ok_or_else(|| no_webhook(job.id))?;
    Ok((StatusCode::ACCEPTED, Json(WebhookView::new(job.id, history))))
}

fn no_webhook(id: domain::JobId) -> Problem {
    Problem::new(Kind::NoWebhook, format!("The job `{id}` has no webhook: its request named none."))
}

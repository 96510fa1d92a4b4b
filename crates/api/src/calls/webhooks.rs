//! The calls about webhooks: a job's deliveries, their redelivery, and the dead letters of all jobs.

use axum::{
    Json,
    http::{StatusCode, Uri},
    response::{IntoResponse, Response},
};
use domain::JobId;
use utoipa::IntoParams;

use crate::{
    calls::jobs,
    http::{
        extract::{Call, FromQuery, JobInPath, LISTED, NoPlace, Parameters},
        link,
    },
    problem::{Kind, Problem, problems},
    view::{DeadLetterListView, DeadLetterView, WebhookView},
};

problems!(Problems = SECURED, JobNotFound, NoWebhook);

/// Read a job's webhook deliveries
///
/// Returns the messages to the job's webhook, newest first: which were delivered, which are pending, and which were given up and
/// why.
#[utoipa::path(
    get,
    path = "/jobs/{id}/webhook",
    params(("id" = JobId, Path, description = "The job's id.")),
    security(("bearer" = ["read"])),
    responses((status = 200, description = "The messages.", body = WebhookView), Problems)
)]
pub(crate) async fn get_job_webhook(
    Call(app, caller, JobInPath(id), _): Call<JobInPath>,
) -> Result<Json<WebhookView>, Problem> {
    let job = jobs::find(&app, &caller, id).await?;
    let history = app.store.webhook_history(job.id).await?.ok_or_else(|| no_webhook(job.id))?;
    Ok(Json(WebhookView::new(job.id, history)))
}

/// Selects messages.
#[derive(Debug)]
pub(crate) struct RedeliverQuery {
    seq: Option<u64>,
}

impl FromQuery for RedeliverQuery {
    const KNOWN: &'static [&'static str] = &["seq"];

    fn from_query(parameters: &Parameters) -> Result<Self, Problem> {
        Ok(Self { seq: parameters.number("seq", 1..=i64::MAX.unsigned_abs())? })
    }
}

/// Redeliver a job's webhook messages
///
/// Sends the messages again that were given up, or with `seq` the message with that number, whatever its state. Pending messages
/// are sent at once. Receivers recognize a message by its `webhook-id`.
#[utoipa::path(
    post,
    path = "/jobs/{id}/webhook/redeliver",
    params(
        ("id" = JobId, Path, description = "The job's id."),
        ("seq" = Option<u64>, Query, minimum = 1, description = "The number of the event. Default: all messages that were given up.")
    ),
    security(("bearer" = ["write"])),
    responses((status = 202, description = "The messages will be sent.", body = WebhookView), Problems)
)]
pub(crate) async fn redeliver_job_webhook(
    Call(app, caller, JobInPath(id), RedeliverQuery { seq }): Call<JobInPath, RedeliverQuery>,
) -> Result<(StatusCode, Json<WebhookView>), Problem> {
    let job = jobs::find(&app, &caller, id).await?;
    app.store.redeliver(job.id, seq).await?.ok_or_else(|| no_webhook(job.id))?;
    let history = app.store.webhook_history(job.id).await?.ok_or_else(|| no_webhook(job.id))?;
    Ok((StatusCode::ACCEPTED, Json(WebhookView::new(job.id, history))))
}

fn no_webhook(id: JobId) -> Problem {
    let detail = format!("The job `{id}` has no webhook. Name one in the request that submits a job.");
    Problem::new(Kind::NoWebhook, detail)
}

problems!(DeadLetterProblems = SECURED);

/// Selects a page.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Range {
    /// Only messages below this id: the `next_before` of the previous answer.
    #[param(value_type = Option<u64>, minimum = 1)]
    before: Option<u64>,
    /// The maximum number of messages.
    #[param(value_type = Option<u32>, minimum = 1, maximum = 200, default = 50)]
    limit: u32,
}

impl FromQuery for Range {
    const KNOWN: &'static [&'static str] = &["before", "limit"];

    fn from_query(parameters: &Parameters) -> Result<Self, Problem> {
        Ok(Self {
            before: parameters.number("before", 1..=i64::MAX.unsigned_abs())?,
            limit: parameters.limit(LISTED)?,
        })
    }
}

/// List dead letters
///
/// Returns the webhook messages of the caller's jobs that the service has given up, newest first; with the scope `admin`, those of
/// all jobs. `POST /jobs/{id}/webhook/redeliver` sends a job's messages again.
#[utoipa::path(
    get,
    path = "/webhooks/dead-letters",
    params(Range),
    security(("bearer" = ["read"])),
    responses(
        (status = 200, description = "A page of dead letters.", body = DeadLetterListView,
            headers(("Link" = String, description = "The next page (`rel=\"next\"`) if this one is full."))),
        DeadLetterProblems
    )
)]
pub(crate) async fn list_dead_letters(
    Call(app, caller, NoPlace, range): Call<NoPlace, Range>,
    uri: Uri,
) -> Result<Response, Problem> {
    let letters = app.store.dead_letters(&caller.viewer(), range.before, range.limit).await?;
    let is_full = letters.len() >= usize::try_from(range.limit).unwrap_or(usize::MAX);
    let next_before = letters.last().filter(|_| is_full).map(|letter| letter.id);
    let link = next_before.and_then(|before| link::next(&uri, "before", &before.to_string()));
    let dead_letters = letters.into_iter().map(DeadLetterView::from).collect();
    Ok((link, Json(DeadLetterListView { dead_letters, next_before })).into_response())
}

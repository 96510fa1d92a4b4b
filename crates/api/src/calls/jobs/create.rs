//! `POST /jobs`: store a job.

use axum::{
    Json,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use domain::{Job, JobId, JobRequest, Violation};
use persistence::{InsertWith, Inserted, NewJob, Once};
use slurm::TraceParent;

use super::{
    accept::{Accepted, accept, needs_unknown},
    once,
};
use crate::{
    auth::Caller,
    calls::clusters::gone,
    http::extract::{Body, Call, IdempotencyKey, NoPlace, Sent, Trace},
    problem::{Kind, Problem, problems},
    state::App,
    view::JobView,
};

problems!(
    Problems = SECURED | BODY,
    IdConflict,
    InvalidHeader,
    JobNotFound,
    IdempotencyKeyReused,
    ClusterGone
);

/// Submit a job
///
/// Stores the job durably before the answer; a worker submits it to Slurm. To make the request safe to repeat, send an
/// `Idempotency-Key` header, or your own `id` in the body. The repeated request creates no second job. With the header it gets
/// the first answer again, marked by `Idempotency-Replayed`; with the `id` it gets the job's current state.
#[utoipa::path(
    post,
    path = "/jobs",
    params(IdempotencyKey, Trace),
    request_body = JobRequest,
    security(("bearer" = ["write"])),
    responses(
        (status = 201, description = "The job is stored.", body = JobView,
            headers(
                ("Location" = String, description = "The URL of the job."),
                ("Idempotency-Replayed" = bool, description = "`true` if this repeats the answer to an earlier request with this \
                    `Idempotency-Key`.")
            )),
        (status = 200, description = "The same request has stored the job before.", body = JobView,
            headers(
                ("Location" = String, description = "The URL of the job."),
                ("Idempotency-Replayed" = bool, description = "`true` if this repeats the answer to an earlier request with this \
                    `Idempotency-Key`.")
            )),
        Problems
    )
)]
pub(crate) async fn create_job(
    Call(app, caller, NoPlace, _): Call<NoPlace>,
    key: IdempotencyKey,
    Trace { traceparent }: Trace,
    Body(sent): Body<JobRequest>,
) -> Result<Response, Problem> {
    let request_hash = once::request_hash(&sent.document);
    let once = key.once(&app, &caller, "create_job".to_owned(), request_hash);
    if let Some(answer) = replayed(&app, &caller, once.as_ref()).await? {
        return Ok(answer);
    }
    match store(&app, &caller, sent, traceparent, once.as_ref()).await? {
        Some(Stored { job, new }) => {
            answer(&app, if new { StatusCode::CREATED } else { StatusCode::OK }, &job).await
        }
        // The same request arrived at the same time and was stored first.
        None => replayed(&app, &caller, once.as_ref()).await?.ok_or_else(Problem::internal),
    }
}

/// A job that this request or an earlier identical one has stored.
pub(crate) struct Stored {
    pub(crate) job: Job,
    pub(crate) new: bool,
}

/// Checks and stores a job, whatever the shape of its request. None if a concurrent request with the same key was stored
/// first.
pub(crate) async fn store(
    app: &App,
    caller: &Caller,
    sent: Sent<JobRequest>,
    trace: Option<TraceParent>,
    once: Option<&Once>,
) -> Result<Option<Stored>, Problem> {
    let request_hash = once::request_hash(&sent.document);
    let Accepted { mut job, secrets, webhook, incarnation, .. } = accept(app, caller.clone(), sent).await?;
    job.spec.trace = trace;
    let (id, cluster) = (job.id, job.cluster.clone());
    let new = NewJob { job, secrets, request_hash };
    let webhook = match (webhook, caller.webhook_token) {
        (None, Some(token)) => app.store.token_webhook(token).await?,
        (own, _) => own,
    };
    let along = InsertWith { once, webhook: webhook.as_ref(), incarnation };
    let inserted = app.store.insert_job_with(&new, along).await?;
    let stored = match inserted {
        // The accepted state, even if a worker has already begun: all answers to one key are equal.
        Some(Inserted::Created(_)) => Stored { job: new.job, new: true },
        Some(Inserted::Same(job)) => Stored { job, new: false },
        Some(Inserted::Other) => return Err(id_taken(id)),
        Some(Inserted::ClusterGone) => return Err(gone(&cluster)),
        Some(Inserted::NeedsUnknown(places)) => return Err(needs_unknown(&places)),
        None => return Ok(None),
    };
    // The first log line of the job; the worker's lines go on with the attempts from 1.
    tracing::info!(
        job.id = %stored.job.id,
        attempt = 0,
        cluster.name = %stored.job.cluster,
        new = stored.new,
        "job accepted"
    );
    Ok(Some(stored))
}

async fn answer(app: &App, status: StatusCode, job: &Job) -> Result<Response, Problem> {
    let location = [(header::LOCATION, format!("/jobs/{}", job.id))];
    Ok((status, location, Json(super::whole(app, job).await?)).into_response())
}

/// The answer to an earlier request with this key.
async fn replayed(app: &App, caller: &Caller, once: Option<&Once>) -> Result<Option<Response>, Problem> {
    let Some((job, status)) = once::answered(app, caller, once).await? else { return Ok(None) };
    let job = match status {
        StatusCode::CREATED => Job::accepted(job.id, job.owner, job.cluster, job.spec, job.created_at),
        _ => job,
    };
    answer(app, status, &job).await.map(once::mark).map(Some)
}

/// Does not reveal who owns the id.
fn id_taken(id: JobId) -> Problem {
    let detail = format!(
        "the id `{id}` belongs to a different request; repeat that request unchanged, or use a new id"
    );
    Problem::with_fields(Kind::IdConflict, vec![Violation::new("/id", "id_conflict", detail)])
}

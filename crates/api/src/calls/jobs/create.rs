//! `POST /jobs`: a request becomes a stored job.

use axum::{
    Json,
    extract::State,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use domain::{Job, JobId, JobRequest, Violation};
use persistence::{InsertWith, Inserted, NewJob, Once};
use slurm::TraceParent;

use super::{
    accept::{Accepted, accept},
    once, request_hash,
};
use crate::{
    auth::Caller,
    calls::clusters::gone,
    http::extract::{Body, IdempotencyKey, NoParameters, Query, Sent, Trace},
    problem::{Kind, Problem, problems},
    state::App,
    view::JobView,
};

problems!(
    Problems = SECURED,
    MalformedJson,
    BodyTooLarge,
    RequestTimeout,
    UnsupportedMediaType,
    InvalidRequest,
    TooDeep,
    IdConflict,
    InvalidHeader,
    JobNotFound,
    IdempotencyKeyReused,
    ClusterGone
);

/// Send a job
///
/// Stores a job; it is durable before the answer, and a worker submits it. To be able to repeat the request safely, send
/// an `Idempotency-Key`, or an `id` of your own in the body: the same request again makes no second job. With the key its
/// answer is the first one's, and says so by `Idempotency-Replayed`; with the `id` it is the job as it is now.
#[utoipa::path(
    post,
    path = "/jobs",
    tag = "jobs",
    operation_id = "create_job",
    params(IdempotencyKey, Trace),
    request_body = JobRequest,
    security(("bearer" = ["write"])),
    responses(
        (status = 201, description = "The job is stored.", body = JobView,
            headers(
                ("Location" = String, description = "Where to read the job."),
                ("Idempotency-Replayed" = bool, description = "`true` when this is the answer to an earlier request with \
                    this `Idempotency-Key`.")
            )),
        (status = 200, description = "The job was stored before, by the same request.", body = JobView,
            headers(
                ("Location" = String, description = "Where to read the job."),
                ("Idempotency-Replayed" = bool, description = "`true` when this is the answer to an earlier request with \
                    this `Idempotency-Key`.")
            )),
        Problems
    )
)]
pub(crate) async fn create_job(
    State(app): State<App>,
    caller: Caller,
    Query(NoParameters): Query<NoParameters>,
    key: IdempotencyKey,
    Trace(trace): Trace,
    Body(sent): Body<JobRequest>,
) -> Result<Response, Problem> {
    let request_hash = request_hash::of(&sent.document);
    let once = key.once(&app, &caller, "create_job".to_owned(), request_hash);
    if let Some(once) = &once
        && let Some(answer) = replayed(&app, &caller, once).await?
    {
        return Ok(answer);
    }
    match store(&app, &caller, sent, trace, once.as_ref()).await? {
        Some(Stored { job, new }) => {
            answer(&app, if new { StatusCode::CREATED } else { StatusCode::OK }, &job).await
        }
        // The same request came at the same time, and was first.
        None => match &once {
            Some(once) => replayed(&app, &caller, once).await?.ok_or_else(Problem::internal),
            None => Err(Problem::internal()),
        },
    }
}

/// A job that is stored, by this request or by the same one before.
pub(crate) struct Stored {
    pub(crate) job: Job,
    pub(crate) new: bool,
}

/// Checks and stores a job, whatever shape its request came in. None when the request with this key was carried out
/// meanwhile.
pub(crate) async fn store(
    app: &App,
    caller: &Caller,
    sent: Sent<JobRequest>,
    trace: Option<TraceParent>,
    once: Option<&Once>,
) -> Result<Option<Stored>, Problem> {
    let request_hash = request_hash::of(&sent.document);
    let Accepted { mut job, secrets, webhook, incarnation, .. } = accept(app, caller.clone(), sent).await?;
    job.spec.trace = trace;
    let (id, cluster) = (job.id, job.cluster.clone());
    let new = NewJob { job, secrets, request_hash };
    let webhook = match (webhook, caller.telling) {
        (None, Some(token)) => app.store.token_webhook(token).await?,
        (own, _) => own,
    };
    let along = InsertWith { once, webhook: webhook.as_ref(), incarnation };
    let inserted = app.store.insert_job_with(&new, along).await?;
    let stored = match inserted {
        // What was accepted, though a worker may have begun: every answer with the same key is the same.
        Some(Inserted::Created(_)) => Stored { job: new.job, new: true },
        Some(Inserted::Same(job)) => Stored { job, new: false },
        Some(Inserted::Other) => return Err(id_taken(id)),
        Some(Inserted::ClusterGone) => return Err(gone(&cluster)),
        None => return Ok(None),
    };
    // The first line of a job's trail; the worker's go on with the attempts from 1.
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
    let mut response = (status, Json(super::whole(app, job).await?)).into_response();
    if let Ok(location) = HeaderValue::from_str(&format!("/jobs/{}", job.id)) {
        response.headers_mut().insert(header::LOCATION, location);
    }
    Ok(response)
}

/// The answer that an earlier request with the key had; none when there was no such request.
async fn replayed(app: &App, caller: &Caller, once: &Once) -> Result<Option<Response>, Problem> {
    let Some((job, status)) = once::answered(app, caller, once).await? else { return Ok(None) };
    let job = match status {
        StatusCode::CREATED => Job::accepted(job.id, job.owner, job.cluster, job.spec, job.created_at),
        _ => job,
    };
    answer(app, status, &job).await.map(once::mark).map(Some)
}

/// Whose request has the id is not said: it may be somebody else's.
fn id_taken(id: JobId) -> Problem {
    let detail =
        format!("another request has the id `{id}`; repeat that request unchanged, or take a new id");
    Problem::with_fields(Kind::IdConflict, vec![Violation::new("/id", "id_conflict", detail)])
}

//! The calls that change a job. Each sets the desired state in the database; a worker carries it out.

use axum::{http::StatusCode, response::Response};
use domain::{
    ArrayState, CancelRequest, DesiredState, Job, JobId, Phase, RetryRequest, Status, TaskSelection,
    TaskStatus,
};
use persistence::{Requested, Retry};
use serde_json::Value;

use super::once;
use crate::{
    auth::Caller,
    calls::clusters::{gone, is_there},
    http::extract::{BodyIfAny, Call, FromQuery, IdempotencyKey, JobInPath, Parameters, no_such_job},
    problem::{Kind, Problem, problems},
    state::App,
    view::StatusView,
};

problems!(CancelProblems = SECURED | BODY, JobNotFound, WrongState);

/// Cancel a job
///
/// The job is `Canceling` until the cluster confirms the cancellation, then `Canceled`. The call can be repeated. With `tasks`
/// only these tasks of the job's array are canceled; the others go on.
#[utoipa::path(
    post,
    path = "/jobs/{id}/cancel",
    params(("id" = domain::JobId, Path, description = "The job's id.")),
    request_body = Option<CancelRequest>,
    security(("bearer" = ["write"])),
    responses(
        (status = 202, description = "The job, or the tasks, will be canceled.", body = StatusView),
        (status = 200, description = "The job had already finished; nothing changed.", body = StatusView),
        CancelProblems
    )
)]
pub(crate) async fn cancel_job(
    Call(app, caller, JobInPath(id), _): Call<JobInPath>,
    BodyIfAny(sent): BodyIfAny<CancelRequest>,
) -> Result<Response, Problem> {
    let (viewer, now) = (caller.viewer(), app.clock.now());
    let requested = match sent.and_then(|sent| sent.value.tasks) {
        None => app.store.request_cancel(id, &viewer, now).await?,
        Some(selection) => {
            let (job, _, tasks) = super::tasks::selected(&app, &caller, id, &selection).await?;
            if !job.status.is_final() && job.array.is_none() {
                return Err(wrong_state(job.status, "It has no array; cancel it without `tasks`."));
            }
            app.store.request_cancel_tasks(id, &viewer, &tasks, now).await?
        }
    };
    let job = match requested {
        // A job that is already being canceled does not change either.
        Requested::Taken(job) | Requested::Stays(job) => job,
        Requested::NoJob => return Err(no_such_job(id)),
    };
    let status = if job.status.is_final() { StatusCode::OK } else { StatusCode::ACCEPTED };
    super::answered(&app, status, &job).await
}

problems!(PauseProblems = SECURED, JobNotFound, WrongState);

/// Pause a job
///
/// Removes the job from the cluster and keeps its results and checkpoints. It is `Pausing` until the cluster confirms it, then
/// `Paused` until it is resumed. The call can be repeated. A job that finishes first stays finished.
#[utoipa::path(
    post,
    path = "/jobs/{id}/pause",
    params(("id" = domain::JobId, Path, description = "The job's id.")),
    security(("bearer" = ["write"])),
    responses(
        (status = 202, description = "The job will be paused.", body = StatusView),
        (status = 200, description = "The job is already paused; nothing changed.", body = StatusView),
        PauseProblems
    )
)]
pub(crate) async fn pause_job(
    Call(app, caller, JobInPath(id), _): Call<JobInPath>,
) -> Result<Response, Problem> {
    let (status, job) = pause(&app, &caller, id).await?;
    super::answered(&app, status, &job).await
}

/// Stores the request. The status is 200 if the job is already paused.
pub(crate) async fn pause(app: &App, caller: &Caller, id: JobId) -> Result<(StatusCode, Job), Problem> {
    match app.store.request_pause(id, &caller.viewer(), app.clock.now()).await? {
        Requested::Taken(job) => Ok((StatusCode::ACCEPTED, job)),
        Requested::Stays(job) if job.phase == Phase::Paused => Ok((StatusCode::OK, job)),
        Requested::Stays(job) if job.desired == DesiredState::Pause && !job.status.is_final() => {
            Ok((StatusCode::ACCEPTED, job))
        }
        Requested::Stays(job) => Err(wrong_state(job.status, "Only a job that waits or runs can be paused.")),
        Requested::NoJob => Err(no_such_job(id)),
    }
}

problems!(ResumeProblems = SECURED, JobNotFound, WrongState, InvalidHeader, IdempotencyKeyReused);

/// Resume a paused job
///
/// Submits the job again as a new attempt under the same id. A training resumes from its newest checkpoint; other work starts
/// over. The call can be repeated until Slurm has accepted the new attempt.
#[utoipa::path(
    post,
    path = "/jobs/{id}/resume",
    params(("id" = domain::JobId, Path, description = "The job's id."), IdempotencyKey),
    security(("bearer" = ["write"])),
    responses(
        (status = 202, description = "The job will resume.", body = StatusView,
            headers(("Idempotency-Replayed" = bool, description = "`true` if an earlier request with this \
                `Idempotency-Key` did it; the answer shows the job's current status."))),
        ResumeProblems
    )
)]
pub(crate) async fn resume_job(
    Call(app, caller, JobInPath(id), _): Call<JobInPath>,
    key: IdempotencyKey,
) -> Result<Response, Problem> {
    let once = key.once(&app, &caller, format!("resume_job {id}"), once::request_hash(&Value::Null));
    if let Some(answer) = once::status_replayed(&app, &caller, once.as_ref()).await? {
        return Ok(answer);
    }
    let taken = app.store.request_resume(id, &caller.viewer(), once.as_ref(), app.clock.now()).await?;
    // The same request may have arrived at the same time and been first.
    if let Requested::Stays(_) = &taken
        && let Some(answer) = once::status_replayed(&app, &caller, once.as_ref()).await?
    {
        return Ok(answer);
    }
    let job = match taken {
        Requested::Taken(job) => job,
        Requested::Stays(job) if job.status == Status::Resuming => job,
        Requested::Stays(job) => {
            let detail = match job.status {
                Status::Pausing => "The job is still Pausing. Resume it when it is Paused.",
                // Suspended by Slurm: the attempt is still there, and a new one would be a second copy.
                Status::Paused => "Slurm has suspended the job, and only Slurm can resume it.",
                status => return Err(wrong_state(status, "Only a Paused job can be resumed.")),
            };
            return Err(Problem::new(Kind::WrongState, detail));
        }
        Requested::NoJob => return Err(no_such_job(id)),
    };
    super::answered(&app, StatusCode::ACCEPTED, &job).await
}

problems!(
    RetryProblems = SECURED | BODY,
    JobNotFound,
    InvalidHeader,
    IdempotencyKeyReused,
    WrongState,
    ClusterGone,
    ClusterUnusable
);

/// Retry a job
///
/// Submits a job in `Error` or `Canceled` again as a new attempt with a full retry budget. Of an array, the tasks that are not done go
/// again, or those that `tasks` selects. The service deleted the job's secrets when it finished, so a job with secrets needs them
/// again in the body. Other jobs need no body.
#[utoipa::path(
    post,
    path = "/jobs/{id}/retry",
    params(("id" = domain::JobId, Path, description = "The job's id."), IdempotencyKey),
    request_body = Option<RetryRequest>,
    security(("bearer" = ["write"])),
    responses(
        (status = 202, description = "The job will be submitted again.", body = StatusView,
            headers(("Idempotency-Replayed" = bool, description = "`true` if an earlier request with this \
                `Idempotency-Key` did it; the answer shows the job's current status."))),
        RetryProblems
    )
)]
pub(crate) async fn retry_job(
    Call(app, caller, JobInPath(id), _): Call<JobInPath>,
    key: IdempotencyKey,
    BodyIfAny(sent): BodyIfAny<RetryRequest>,
) -> Result<Response, Problem> {
    let (document, request) = sent.map_or_else(Default::default, |sent| (sent.document, sent.value));
    let once = key.once(&app, &caller, format!("retry_job {id}"), once::request_hash(&document));
    if let Some(answer) = once::status_replayed(&app, &caller, once.as_ref()).await? {
        return Ok(answer);
    }
    let job = super::find(&app, &caller, id).await?;
    // An identical concurrent request may have been first.
    let refused = async |status| {
        let answer = once::status_replayed(&app, &caller, once.as_ref()).await?;
        answer.ok_or_else(|| wrong_state(status, "Only a job in Error or Canceled can be retried."))
    };
    if !job.can_be_retried() {
        return refused(job.status).await;
    }
    let incarnation = is_there(&app, &job)?;
    let array = retried_array(&app, &caller, &job, request.tasks.as_ref()).await?;
    let secrets = request.secrets_for(&job.spec).map_err(Problem::fields)?;
    let (viewer, now) = (caller.viewer(), app.clock.now());
    let retry = Retry { secrets: &secrets, incarnation, array: array.as_ref() };
    let taken = app.store.request_retry(id, &viewer, &retry, once.as_ref(), now).await?;
    let job = match taken {
        Requested::Taken(job) => job,
        // A job in this state is refused only because of its cluster.
        Requested::Stays(job) if job.can_be_retried() => return Err(gone(&job.cluster)),
        Requested::Stays(job) => return refused(job.status).await,
        Requested::NoJob => return Err(no_such_job(id)),
    };
    tracing::info!(job.id = %job.id, "job retried by its owner");
    super::answered(&app, StatusCode::ACCEPTED, &job).await
}

/// The state of the job's array when the selected tasks go again; none for a job without an array.
pub(crate) async fn retried_array(
    app: &App,
    caller: &Caller,
    job: &Job,
    selection: Option<&TaskSelection>,
) -> Result<Option<ArrayState>, Problem> {
    let unfinished = [TaskStatus::Pending, TaskStatus::Running, TaskStatus::Error, TaskStatus::Canceled];
    let (newest, tasks) = match selection {
        Some(selection) => {
            let (_, newest, tasks) = super::tasks::selected(app, caller, job.id, selection).await?;
            (newest, tasks)
        }
        None if job.array.is_none() => return Ok(None),
        None => {
            let newest = app.store.newest_states(job.id).await?;
            let tasks = job.tasks_in(&unfinished, &newest);
            (newest, tasks)
        }
    };
    let done = tasks.intersection(&job.tasks_in(&[TaskStatus::Done], &newest));
    if !done.is_empty() {
        return Err(Problem::new(Kind::WrongState, format!("The tasks {done} are done. Select others.")));
    }
    if tasks.is_empty() {
        return Err(Problem::new(Kind::WrongState, "The job has no task in this state."));
    }
    Ok(job.retried_array(&tasks, &job.tasks_in(&[TaskStatus::Error], &newest)))
}

fn wrong_state(status: Status, rule: &str) -> Problem {
    Problem::new(Kind::WrongState, format!("The job is {status}. {rule}"))
}

problems!(DeleteProblems = SECURED, JobNotFound, WrongState, ClusterGone, ClusterUnusable);

/// Whether to delete the job's files too.
#[derive(Debug)]
pub(crate) struct Extent {
    artifacts: bool,
}

impl FromQuery for Extent {
    const KNOWN: &'static [&'static str] = &["artifacts"];

    fn from_query(parameters: &Parameters) -> Result<Self, Problem> {
        Ok(Self { artifacts: parameters.parse("artifacts", "`true` or `false`")?.unwrap_or(false) })
    }
}

/// Delete a job
///
/// Only a finished job can be deleted; cancel it first. A job that others need stays until these have finished. Its files stay on the
/// cluster unless `artifacts=true`.
#[utoipa::path(
    delete,
    path = "/jobs/{id}",
    params(
        ("id" = domain::JobId, Path, description = "The job's id."),
        ("artifacts" = Option<bool>, Query, description = "Also remove the job's results, logs, specification and \
    script from the cluster. The removal continues after the answer until the cluster confirms it, for at most a day. A \
    results directory that existed before the job stays. Default: false.")
    ),
    security(("bearer" = ["write"])),
    responses((status = 204, description = "The job is deleted."), DeleteProblems)
)]
pub(crate) async fn delete_job(
    Call(app, caller, JobInPath(id), Extent { artifacts }): Call<JobInPath, Extent>,
) -> Result<StatusCode, Problem> {
    let incarnation = if artifacts {
        // The removal would wait for a cluster that no longer exists.
        is_there(&app, &*super::find(&app, &caller, id).await?)?
    } else {
        None
    };
    let (viewer, now) = (caller.viewer(), app.clock.now());
    match app.store.request_delete(id, &viewer, artifacts, incarnation, now).await? {
        Requested::Taken(_) => {
            tracing::info!(job.id = %id, artifacts, owner = %caller.owner, "job deleted");
            Ok(StatusCode::NO_CONTENT)
        }
        // A finished job is refused only because of a job that needs it, or of its cluster.
        Requested::Stays(job) if job.phase == Phase::Ended => match app.store.needed_by(id).await? {
            Some(other) => {
                let rule = format!("The job {other} needs it and has not ended: cancel that one first.");
                Err(wrong_state(job.status, &rule))
            }
            None => Err(gone(&job.cluster)),
        },
        Requested::Stays(job) => {
            Err(wrong_state(job.status, "Cancel it first, and delete it when it has finished."))
        }
        Requested::NoJob => Err(no_such_job(id)),
    }
}

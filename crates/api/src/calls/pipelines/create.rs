//! `POST /pipelines`: store jobs that need each other.

use std::collections::BTreeMap;

use axum::{
    Json,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use domain::{
    JobId, Label, Pipeline, PipelineId, PipelineJob, PipelineMember, PipelineRequest, Violation, Webhook,
    pointer,
};
use persistence::{InsertedPipeline, Known, NewJob, NewPipeline, Once};
use slurm::TraceParent;

use crate::{
    auth::Caller,
    calls::{
        clusters::gone,
        jobs::{accept, once},
    },
    http::extract::{Body, Call, IdempotencyKey, NoPlace, Sent, Trace},
    problem::{Kind, Problem, problems},
    state::App,
    view::PipelineView,
};

problems!(
    Problems = SECURED | BODY,
    IdConflict,
    InvalidHeader,
    PipelineNotFound,
    IdempotencyKeyReused,
    ClusterGone
);

/// Submit a pipeline
///
/// Stores all its jobs, or none. The `needs` of a job may name other jobs of the pipeline. Each job is submitted when those that it
/// needs have come so far; one whose needs cannot be met any more is `Canceled`. A repeated request with the same
/// `Idempotency-Key` or the same `id` stores nothing, and gets the pipeline as it is.
#[utoipa::path(
    post,
    path = "/pipelines",
    params(IdempotencyKey, Trace),
    request_body = PipelineRequest,
    security(("bearer" = ["write"])),
    responses(
        (status = 201, description = "The pipeline is stored.", body = PipelineView,
            headers(
                ("Location" = String, description = "The URL of the pipeline."),
                ("Idempotency-Replayed" = bool, description = "`true` if an earlier request with this `Idempotency-Key` stored it.")
            )),
        (status = 200, description = "The same request has stored the pipeline before.", body = PipelineView,
            headers(("Location" = String, description = "The URL of the pipeline."))),
        Problems
    )
)]
pub(crate) async fn create_pipeline(
    Call(app, caller, NoPlace, _): Call<NoPlace>,
    key: IdempotencyKey,
    Trace { traceparent }: Trace,
    Body(sent): Body<PipelineRequest>,
) -> Result<Response, Problem> {
    let request_hash = once::request_hash(&sent.document);
    let once = key.once(&app, &caller, "create_pipeline".to_owned(), request_hash);
    if let Some(answer) = replayed(&app, &caller, once.as_ref()).await? {
        return Ok(answer);
    }
    // Before the checks: limits change, but a repeated request must get the same answer.
    if let Some(id) = sent.value.id.map(PipelineId::new)
        && let Some(known) = app.store.known_pipeline(id, &caller.owner, &request_hash).await?
    {
        return match known {
            InsertedPipeline::Same => answer(&app, &caller, StatusCode::OK, id).await,
            _ => Err(id_taken()),
        };
    }
    let new = checked(&app, &caller, sent, traceparent).await?;
    let id = new.pipeline.id;
    let status = match app.store.insert_pipeline(&new, once.as_ref()).await? {
        InsertedPipeline::Created => {
            tracing::info!(pipeline.id = %id, jobs = new.jobs.len(), "pipeline accepted");
            StatusCode::CREATED
        }
        InsertedPipeline::Same => StatusCode::OK,
        // The same request arrived at the same time and was stored first.
        InsertedPipeline::KeyUsed => {
            return replayed(&app, &caller, once.as_ref()).await?.ok_or_else(Problem::internal);
        }
        refused => return Err(refusal(&new, refused)),
    };
    answer(&app, &caller, status, id).await
}

async fn answer(app: &App, caller: &Caller, status: StatusCode, id: PipelineId) -> Result<Response, Problem> {
    let (pipeline, jobs) = super::find(app, caller, id).await?;
    let location = [(header::LOCATION, format!("/pipelines/{id}"))];
    Ok((status, location, Json(PipelineView::new(&pipeline, &jobs))).into_response())
}

/// The answer to an earlier request with this key.
async fn replayed(app: &App, caller: &Caller, once: Option<&Once>) -> Result<Option<Response>, Problem> {
    let Some(once) = once else { return Ok(None) };
    match app.store.known(once).await? {
        Known::New => Ok(None),
        Known::Answered { job, .. } => {
            let id = PipelineId::new(job.get());
            answer(app, caller, StatusCode::CREATED, id).await.map(once::mark).map(Some)
        }
        Known::Other => Err(once::key_reused()),
    }
}

/// Checks each job as `POST /jobs` does. All faults of all jobs are reported together.
async fn checked(
    app: &App,
    caller: &Caller,
    Sent { document, value: request }: Sent<PipelineRequest>,
    trace: Option<TraceParent>,
) -> Result<NewPipeline, Problem> {
    let request_hash = once::request_hash(&document);
    let id = PipelineId::new(request.id.unwrap_or_else(|| app.ids.job()));
    let name: Option<Label> = request.name.as_ref().and_then(|name| name.parse().ok());
    let labels: BTreeMap<String, String> = request.labels.clone();
    let of_token = match caller.webhook_token {
        Some(token) => app.store.token_webhook(token).await?,
        None => None,
    };
    if let Some(webhook) = &request.webhook {
        Webhook::from_request(webhook, &app.webhook_networks).map_err(Problem::fields)?;
    }
    let in_order = request.into_jobs(|| app.ids.job()).map_err(Problem::fields)?;
    let (mut jobs, mut webhooks, mut incarnations) =
        (Vec::with_capacity(in_order.len()), Vec::new(), Vec::new());
    let mut refused: Option<Problem> = None;
    for (PipelineJob { name, request }, place) in in_order.into_iter().zip(0..) {
        let document = document["jobs"][name.as_str()].clone();
        let request_hash = once::request_hash(&document);
        match accept::accept(app, caller.clone(), Sent { document, value: request }).await {
            Ok(accepted) => {
                let mut job = accepted.job;
                job.spec.trace.clone_from(&trace);
                job.spec.pipeline = Some(PipelineMember { id: id.get(), name, place });
                webhooks
                    .extend(accepted.webhook.or_else(|| of_token.clone()).map(|webhook| (job.id, webhook)));
                let incarnation = accepted.incarnation.map(|incarnation| (job.cluster.clone(), incarnation));
                incarnations.extend(incarnation.filter(|one| !incarnations.contains(one)));
                jobs.push(NewJob { job, secrets: accepted.secrets, request_hash });
            }
            Err(problem) if problem.has_fields() => {
                let at = pointer("/jobs", name.as_str());
                let problem = problem.with_pointers(|pointer| format!("{at}{pointer}"));
                refused = Some(match refused {
                    Some(others) => others.joined(problem),
                    None => problem,
                });
            }
            Err(problem) => return Err(problem),
        }
    }
    if let Some(problem) = refused {
        return Err(problem);
    }
    let created_at = jobs.first().map_or_else(|| app.clock.now(), |first| first.job.created_at);
    let pipeline = Pipeline { id, owner: caller.owner.clone(), name, labels, created_at };
    Ok(NewPipeline { pipeline, jobs, webhooks, incarnations, request_hash })
}

fn id_taken() -> Problem {
    let detail = "belongs to a different request; repeat that request unchanged, or use a new id";
    Problem::with_fields(Kind::IdConflict, vec![Violation::new("/id", "id_conflict", detail)])
}

fn refusal(new: &NewPipeline, refused: InsertedPipeline) -> Problem {
    let at = |id: JobId| {
        let job = new.jobs.iter().find(|new| new.job.id == id);
        let name = job.and_then(|new| new.job.spec.pipeline.as_ref()).map(|member| member.name.as_str());
        pointer("/jobs", name.unwrap_or_default())
    };
    match refused {
        InsertedPipeline::Other => id_taken(),
        InsertedPipeline::JobTaken(id) => {
            let detail = "belongs to a different request; use a new id";
            let taken = Violation::new(format!("{}/id", at(id)), "id_conflict", detail);
            Problem::with_fields(Kind::IdConflict, vec![taken])
        }
        InsertedPipeline::ClusterGone(cluster) => gone(&cluster),
        InsertedPipeline::NeedsUnknown(needs) => {
            let unknown = needs.into_iter().map(|(id, place)| accept::unknown_need(&at(id), place));
            Problem::fields(unknown.collect())
        }
        InsertedPipeline::Created | InsertedPipeline::Same | InsertedPipeline::KeyUsed => Problem::internal(),
    }
}

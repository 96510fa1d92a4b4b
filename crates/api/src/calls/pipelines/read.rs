//! The calls that read pipelines.

use std::fmt::Write;

use axum::{
    Json,
    http::{HeaderMap, Uri},
    response::{IntoResponse, Response},
};
use domain::{Job, Pipeline, PipelineCounts, PipelineId, Timestamp};
use futures_util::future::select_all;
use sha2::{Digest, Sha256};
use tokio::time::{Instant, timeout_at};
use utoipa::{IntoParams, IntoResponses};
use uuid::Uuid;

use super::PipelineInPath;
use crate::{
    calls::jobs::{page_token::PageToken, wait},
    http::{
        extract::{Call, FromQuery, LISTED, NoPlace, Parameters, Patience},
        link,
        sse::Permit,
    },
    problem::{Problem, problems},
    view::{PipelineList, PipelineSummary, PipelineView},
};

/// The pipeline has not changed since the answer with this `ETag`.
#[derive(IntoResponses)]
#[response(status = 304, headers(("ETag" = String, description = "The same value.")))]
struct Unchanged;

problems!(ReadProblems = SECURED, PipelineNotFound, WatchersBusy);

/// Read a pipeline
///
/// Returns the pipeline with the status of each job. `ETag` and `wait` work as for a job's status: the pipeline changes with each of
/// its jobs.
#[utoipa::path(
    get,
    path = "/pipelines/{id}",
    params(
        ("id" = Uuid, Path, description = "The pipeline's id."),
        Patience,
        ("If-None-Match" = Option<String>, Header, description = "The `ETag` of an earlier answer.")
    ),
    security(("bearer" = ["read"])),
    responses(
        (status = 200, description = "The pipeline.", body = PipelineView,
            headers(
                ("ETag" = String, description = "Changes with the pipeline."),
                ("Cache-Control" = String, description = "`private, no-cache`.")
            )),
        Unchanged,
        ReadProblems
    )
)]
pub(crate) async fn get_pipeline(
    Call(app, caller, PipelineInPath(id), patience): Call<PipelineInPath, Patience>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let (pipeline, mut jobs) = super::find(&app, &caller, id).await?;
    if !patience.wait.is_zero() {
        let _permit = Permit::to_watch(&app, "wait")?;
        let until = Instant::now() + patience.wait;
        let waits = |tag: &String| {
            let is_final = PipelineCounts::of(&jobs).status().is_final();
            if wait::names_a_tag(&headers) { wait::knows(&headers, tag) } else { !is_final }
        };
        let mut known = Some(etag(&pipeline, &jobs)).filter(waits);
        let mut lost = std::pin::pin!(caller.standing.lost(app.clone()));
        while let Some(tag) = known.take() {
            // Subscribe first: a change after the read is then not missed.
            let changes: Vec<_> = jobs.iter().map(|job| app.feed.changes_of(job.id)).collect();
            jobs = app.store.pipeline_jobs(id).await?;
            if etag(&pipeline, &jobs) != tag || changes.is_empty() {
                break;
            }
            let changes =
                changes.into_iter().map(|mut change| Box::pin(async move { change.changed().await }));
            let woken = app.stop.run_until_cancelled(async {
                tokio::select! {
                    woken = timeout_at(until, select_all(changes)) => Ok(woken.is_ok()),
                    refused = &mut lost => Err(refused),
                }
            });
            if woken.await.unwrap_or(Ok(false))? {
                known = Some(tag);
            }
        }
    }
    let tag = etag(&pipeline, &jobs);
    Ok(wait::tagged(&headers, &tag, Json(PipelineView::new(&pipeline, &jobs))))
}

/// Changes with what the view shows, and not with all that changes of a job.
fn etag(pipeline: &Pipeline, jobs: &[Job]) -> String {
    let shown = serde_json::to_vec(&PipelineView::new(pipeline, jobs)).unwrap_or_default();
    let mut tag = "\"p".to_owned();
    for byte in &Sha256::digest(shown)[..12] {
        let _ = write!(tag, "{byte:02x}");
    }
    tag + "\""
}

/// Selects pipelines.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Page {
    /// The maximum number of pipelines.
    #[param(value_type = Option<u32>, minimum = 1, maximum = 200, default = 50)]
    limit: u32,
    /// The `next_page_token` of the previous page.
    #[param(value_type = Option<String>, pattern = "^[A-Za-b][A-Za-z0-9_-]{31}$")]
    page_token: Option<(Timestamp, PipelineId)>,
}

impl FromQuery for Page {
    const KNOWN: &'static [&'static str] = &["limit", "page_token"];

    fn from_query(parameters: &Parameters) -> Result<Self, Problem> {
        let before: Option<PageToken<16>> =
            parameters.parse("page_token", "the next_page_token of an earlier answer, unchanged")?;
        Ok(Self {
            limit: parameters.limit(LISTED)?,
            page_token: before.map(|PageToken { at, id }| (at, PipelineId::new(Uuid::from_bytes(id)))),
        })
    }
}

problems!(ListProblems = SECURED);

/// List pipelines
///
/// Returns the caller's pipelines, newest first; with the scope `admin`, all pipelines.
#[utoipa::path(
    get,
    path = "/pipelines",
    params(Page),
    security(("bearer" = ["read"])),
    responses(
        (status = 200, description = "A page of pipelines.", body = PipelineList,
            headers(("Link" = String, description = "The next page (`rel=\"next\"`) if there is one."))),
        ListProblems
    )
)]
pub(crate) async fn list_pipelines(
    Call(app, caller, NoPlace, page): Call<NoPlace, Page>,
    uri: Uri,
) -> Result<Response, Problem> {
    let found = app.store.list_pipelines(&caller.viewer(), page.page_token, page.limit).await?;
    let next = found.next.map(|(at, id)| PageToken { at, id: *id.get().as_bytes() }.to_string());
    let pipelines =
        found.pipelines.iter().map(|(pipeline, counts)| PipelineSummary::new(pipeline, *counts)).collect();
    let link = next.as_deref().and_then(|token| link::next(&uri, "page_token", token));
    Ok((link, Json(PipelineList { pipelines, next_page_token: next })).into_response())
}

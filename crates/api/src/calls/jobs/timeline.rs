//! `GET /jobs/{id}/timeline`: the remote commands that the service ran for a job.

use axum::{
    Json,
    http::Uri,
    response::{IntoResponse, Response},
};
use utoipa::IntoParams;

use super::page_token::PageToken;
use crate::{
    http::{
        extract::{Call, FromQuery, JobInPath, LISTED, Parameters},
        link,
    },
    problem::{Problem, problems},
    view::{TimelineEntryView, TimelineView},
};

problems!(Problems = SECURED, JobNotFound);

/// Selects commands.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct TimelineQuery {
    /// Only commands of this class. Repeatable.
    #[param(value_type = Option<Vec<String>>, style = Form, explode, pattern = "^[a-z_]{1,40}$", example = json!(["submit"]))]
    class: Vec<String>,
    /// The maximum number of commands.
    #[param(value_type = Option<u32>, minimum = 1, maximum = 200, default = 50)]
    limit: u32,
    /// The `next_page_token` of the previous page. Repeat the classes with it.
    #[param(value_type = Option<String>, pattern = "^[A-Za-b][A-Za-z0-9_-]{20}[AQgw]$")]
    page_token: Option<PageToken<8>>,
}

impl FromQuery for TimelineQuery {
    const KNOWN: &'static [&'static str] = &["class", "limit", "page_token"];

    fn from_query(parameters: &Parameters) -> Result<Self, Problem> {
        let class = |text: &str| {
            let good =
                (1..=40).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
            let wrong = || {
                let detail = "must be the class of a remote command, such as submit or poll";
                Problem::parameter("class", "invalid", detail.to_owned())
            };
            if good { Ok(text.to_owned()) } else { Err(wrong()) }
        };
        Ok(Self {
            class: parameters.all("class").map(class).collect::<Result<_, _>>()?,
            limit: parameters.limit(LISTED)?,
            page_token: parameters
                .parse("page_token", "the next_page_token of an earlier answer, unchanged")?,
        })
    }
}

/// Read a job's timeline
///
/// Returns each remote command that ran on the cluster for the job, in the order of their start: its class, login host, duration
/// and result, never its text, input or output. A poll is one command for all jobs of a cluster and appears in the timelines of
/// the jobs in Slurm at that time. The service stores the newest 100 commands of each class, and the newest 2000 polls of the
/// cluster. Commands that ran while the database was unreachable are missing.
#[utoipa::path(
    get,
    path = "/jobs/{id}/timeline",
    params(("id" = domain::JobId, Path, description = "The job's id."), TimelineQuery),
    security(("bearer" = ["read"])),
    responses(
        (status = 200, description = "A page of the timeline.", body = TimelineView,
            headers(("Link" = String, description = "The next page (`rel=\"next\"`) if there is one."))),
        Problems
    )
)]
pub(crate) async fn get_job_timeline(
    Call(app, caller, JobInPath(id), query): Call<JobInPath, TimelineQuery>,
    uri: Uri,
) -> Result<Response, Problem> {
    let job = super::find(&app, &caller, id).await?;
    let after = query.page_token.map(|token| (token.at, i64::from_be_bytes(token.id)));
    // One more than a page, to see whether there is a next one.
    let mut entries = app.store.timeline(job.id, &query.class, after, query.limit.saturating_add(1)).await?;
    let more = entries.len() > query.limit as usize;
    entries.truncate(query.limit as usize);
    let last = entries
        .last()
        .filter(|_| more)
        .map(|last| PageToken { at: last.started_at, id: last.id.to_be_bytes() }.to_string());
    let link = last.as_deref().and_then(|token| link::next(&uri, "page_token", token));
    let view = TimelineView {
        job_id: job.id,
        entries: entries.into_iter().map(TimelineEntryView::from).collect(),
        next_page_token: last,
    };
    Ok((link, Json(view)).into_response())
}

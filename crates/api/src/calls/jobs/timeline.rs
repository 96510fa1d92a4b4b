//! `GET /jobs/{id}/timeline`: each remote command that was run for the job, by pages.

mod place;

use axum::{
    Json,
    extract::State,
    http::{Uri, header},
    response::{IntoResponse, Response},
};
use place::Place;
use utoipa::IntoParams;

use crate::{
    auth::Caller,
    http::extract::{FromQuery, JobInPath, Parameters, Query},
    ports::link,
    problem::{Problem, problems},
    state::App,
    view::{TimelineEntryView, TimelineView},
};

problems!(Problems = SECURED, JobNotFound);

const DEFAULT_LIMIT: u32 = 50;
const MOST: u32 = 200;

/// Which commands.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Filter {
    /// Only commands of this class. May be repeated.
    #[param(value_type = Option<Vec<String>>, style = Form, explode, pattern = "^[a-z_]{1,40}$", example = json!(["submit"]))]
    class: Vec<String>,
    /// At most so many.
    #[param(value_type = Option<u32>, minimum = 1, maximum = 200, default = 50)]
    limit: u32,
    /// The `next_page_token` of the page before. Repeat the classes with it.
    #[param(value_type = Option<String>, pattern = "^[A-Za-b][A-Za-z0-9_-]{20}[AQgw]$")]
    page_token: Option<Place>,
}

impl FromQuery for Filter {
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
        let limit = parameters.number("limit", 1, u64::from(MOST))?;
        Ok(Self {
            class: parameters.all("class").map(class).collect::<Result<_, _>>()?,
            limit: limit.and_then(|limit| u32::try_from(limit).ok()).unwrap_or(DEFAULT_LIMIT),
            page_token: parameters
                .parse("page_token", "the next_page_token of an earlier answer, unchanged")?,
        })
    }
}

/// Read a job's timeline
///
/// Each remote command that was run on the cluster for the job, in the order in which they began: which, on which login host,
/// how long it took and how it went. Never its text, its input or its output. A poll is one command for all jobs of a cluster:
/// it is in the timelines of those that Slurm had at the time. Kept are the newest 100 of each class, of the polls the newest
/// 2000 of the cluster, and what the service could not note down because its database was away is missing.
#[utoipa::path(
    get,
    path = "/jobs/{id}/timeline",
    tag = "jobs",
    operation_id = "get_job_timeline",
    params(("id" = domain::JobId, Path, description = "The job's id."), Filter),
    security(("bearer" = ["read"])),
    responses(
        (status = 200, description = "A page of the timeline.", body = TimelineView,
            headers(("Link" = String, description = "The next page (`rel=\"next\"`), when there is one."))),
        Problems
    )
)]
pub(crate) async fn get_job_timeline(
    State(app): State<App>,
    caller: Caller,
    JobInPath(id): JobInPath,
    Query(filter): Query<Filter>,
    uri: Uri,
) -> Result<Response, Problem> {
    let job = super::find(&app, &caller, id).await?;
    let after = filter.page_token.map(|Place(place)| place);
    // One more than is shown tells whether there is another page.
    let mut entries =
        app.store.timeline(job.id, &filter.class, after, filter.limit.saturating_add(1)).await?;
    let more = entries.len() > filter.limit as usize;
    entries.truncate(filter.limit as usize);
    let last = entries.last().filter(|_| more).map(|last| Place((last.started_at, last.id)).to_string());
    let link = last.as_deref().and_then(|token| link::next(&uri, "page_token", token));
    let view = TimelineView {
        job_id: job.id,
        entries: entries.into_iter().map(TimelineEntryView::from).collect(),
        next_page_token: last,
    };
    let mut response = Json(view).into_response();
    if let Some(link) = link {
        response.headers_mut().insert(header::LINK, link);
    }
    Ok(response)
}

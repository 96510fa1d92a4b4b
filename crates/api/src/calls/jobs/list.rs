//! `GET /jobs`: list jobs.

use axum::{
    Json,
    http::Uri,
    response::{IntoResponse, Response},
};
use domain::{ClusterName, JobId, Status, Timestamp};
use persistence::JobFilter;
use strum::IntoEnumIterator;
use utoipa::IntoParams;
use uuid::Uuid;

use super::page_token::PageToken;
use crate::{
    http::{
        extract::{Call, FromQuery, LISTED, NoPlace, Parameters},
        link,
    },
    problem::{Problem, problems},
    view::JobList,
};

problems!(Problems = SECURED);

/// Selects jobs. All given filters must match.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "the fields document the query that `JobFilter` reads")]
pub(crate) struct Filters {
    /// Jobs with this status.
    status: Option<Status>,
    /// Jobs on this cluster.
    #[param(value_type = Option<String>, max_length = 64, pattern = "^[a-z0-9][a-z0-9._-]*$")]
    cluster: Option<ClusterName>,
    /// TAO jobs with this network architecture.
    network_arch: Option<String>,
    /// TAO jobs with this action.
    action: Option<String>,
    /// Jobs with this label, as `key:value`. Repeatable; all must match.
    #[param(value_type = Option<Vec<String>>, style = Form, explode, example = json!(["team:vision"]))]
    label: Vec<(String, String)>,
    /// Jobs that were accepted after this time.
    #[param(value_type = Option<String>, format = DateTime)]
    created_after: Option<Timestamp>,
    /// Jobs that were accepted before this time.
    #[param(value_type = Option<String>, format = DateTime)]
    created_before: Option<Timestamp>,
    /// `true` lists the jobs of the service that convert images, instead of those of callers. Without the scope `admin` the list is empty.
    conversions: Option<bool>,
    /// The maximum number of jobs.
    #[param(value_type = Option<u32>, minimum = 1, maximum = 200, default = 50)]
    limit: u32,
    /// The `next_page_token` of the previous page. Repeat the filters with it.
    #[param(value_type = Option<String>, pattern = "^[A-Za-b][A-Za-z0-9_-]{31}$")]
    page_token: Option<PageToken<16>>,
}

impl FromQuery for JobFilter {
    const KNOWN: &'static [&'static str] = &[
        "status",
        "cluster",
        "network_arch",
        "action",
        "label",
        "created_after",
        "created_before",
        "conversions",
        "limit",
        "page_token",
    ];

    fn from_query(parameters: &Parameters) -> Result<Self, Problem> {
        let statuses = Status::iter().map(<&str>::from).collect::<Vec<_>>().join(", ");
        Ok(Self {
            status: parameters.parse("status", format_args!("one of {statuses}"))?,
            cluster: parameters.parse("cluster", "the name of a cluster")?,
            network_arch: parameters.one("network_arch")?.map(str::to_owned),
            action: parameters.one("action")?.map(str::to_owned),
            labels: labels(parameters)?,
            created_after: parameters.moment("created_after")?,
            created_before: parameters.moment("created_before")?,
            conversions: parameters.parse("conversions", "true or false")?.unwrap_or(false),
            limit: parameters.limit(LISTED)?,
            before: parameters
                .parse("page_token", "the next_page_token of an earlier answer, unchanged")?
                .map(|PageToken { at, id }| (at, JobId::new(Uuid::from_bytes(id)))),
        })
    }
}

fn labels(parameters: &Parameters) -> Result<Vec<(String, String)>, Problem> {
    let mut labels: Vec<(String, String)> = Vec::new();
    for text in parameters.all("label") {
        let Some((key, value)) = text.split_once(':') else {
            return Err(Problem::parameter("label", "invalid", "must be `key:value`"));
        };
        if labels.iter().any(|(known, other)| known == key && other != value) {
            let detail = "asks for two values of one label, and a job has at most one";
            return Err(Problem::parameter("label", "contradiction", detail));
        }
        labels.push((key.to_owned(), value.to_owned()));
    }
    Ok(labels)
}

/// List jobs
///
/// Returns the caller's jobs, newest first; with the scope `admin`, all jobs. New jobs do not shift the pages.
#[utoipa::path(
    get,
    path = "/jobs",
    params(Filters),
    security(("bearer" = ["read"])),
    responses(
        (status = 200, description = "A page of jobs.", body = JobList,
            headers(("Link" = String, description = "The next page (`rel=\"next\"`) if there is one."))),
        Problems
    )
)]
pub(crate) async fn list_jobs(
    Call(app, caller, NoPlace, filter): Call<NoPlace, JobFilter>,
    uri: Uri,
) -> Result<Response, Problem> {
    let _turn = app.page_turn().await;
    let page = app.store.list_jobs(&caller.viewer(), &filter).await?;
    let next = page.next.map(|(at, id)| PageToken { at, id: *id.get().as_bytes() }.to_string());

    let mut views = Vec::with_capacity(page.jobs.len());
    for job in &page.jobs {
        views.push(super::summary(&app, job).await?);
    }
    let link = next.as_deref().and_then(|token| link::next(&uri, "page_token", token));
    Ok((link, Json(JobList { jobs: views, next_page_token: next })).into_response())
}

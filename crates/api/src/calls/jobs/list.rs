//! `GET /jobs`: list jobs.

use axum::{
    Json,
    http::Uri,
    response::{IntoResponse, Response},
};
use domain::{ClusterName, JobId, Label, Owner, Status, Timestamp};
use persistence::{JobFacet, JobFilter, JobOrder};
use slurm::Partition;
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
    view::{FacetsView, JobList},
};

problems!(Problems = SECURED);

/// Selects jobs. All given filters must match.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "the fields document the query that `Listing` reads")]
pub(crate) struct Filters {
    /// Jobs with this status. Repeatable; one must match, as for the next four.
    #[param(value_type = Option<Vec<Status>>, style = Form, explode)]
    status: Vec<Status>,
    /// Jobs on this cluster.
    #[param(value_type = Option<Vec<String>>, style = Form, explode)]
    cluster: Vec<ClusterName>,
    /// Jobs of this owner. Without the scope `admin` only your own are found.
    #[param(value_type = Option<Vec<String>>, style = Form, explode)]
    owner: Vec<Owner>,
    /// Jobs that run in this partition; before they run, jobs that may run in it.
    #[param(value_type = Option<Vec<String>>, style = Form, explode)]
    partition: Vec<Partition>,
    /// Jobs whose `failure` has this rule, such as `cuda-out-of-memory`.
    #[param(value_type = Option<Vec<String>>, style = Form, explode)]
    rule: Vec<String>,
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
    /// A part of the name or of a label `key:value`, in any case, or the beginning of the id.
    #[param(value_type = Option<String>, max_length = 200)]
    q: Option<String>,
    /// `-created_at`: the newest first, the default. `created_at`: the oldest first. `-finished_at`: only finished jobs, the last one first.
    #[param(value_type = Option<String>, pattern = "^(?:-created_at|created_at|-finished_at)$")]
    sort: JobOrder,
    /// Counts the jobs of each value of these fields, separated by commas: `status`, `cluster`, `owner`, `partition`, `rule`. The filter of a
    /// field does not apply to its own counts.
    #[param(value_type = Option<String>, pattern = "^(?:status|cluster|owner|partition|rule)(?:,(?:status|cluster|owner|partition|rule))*$", example = "status,cluster")]
    facets: Vec<String>,
    /// The maximum number of jobs.
    #[param(value_type = Option<u32>, minimum = 1, maximum = 200, default = 50)]
    limit: u32,
    /// The `next_page_token` of the previous page. Repeat the filters with it.
    #[param(value_type = Option<String>, pattern = "^[A-Za-b][A-Za-z0-9_-]{31}$")]
    page_token: Option<PageToken<16>>,
}

/// The longest text to search for, in characters.
const LONGEST_TEXT: usize = 200;

/// A page, and the fields whose values are counted.
#[derive(Debug)]
pub(crate) struct Listing {
    filter: JobFilter,
    facets: Vec<JobFacet>,
}

impl FromQuery for Listing {
    const KNOWN: &'static [&'static str] = &[
        "status",
        "cluster",
        "owner",
        "partition",
        "rule",
        "network_arch",
        "action",
        "label",
        "q",
        "created_after",
        "created_before",
        "conversions",
        "sort",
        "facets",
        "limit",
        "page_token",
    ];

    fn from_query(parameters: &Parameters) -> Result<Self, Problem> {
        let statuses = Status::iter().map(<&str>::from).collect::<Vec<_>>().join(", ");
        let partitions: Vec<Partition> = parameters.parse_all("partition", "the name of a partition")?;
        let filter = JobFilter {
            statuses: parameters.parse_all("status", format_args!("one of {statuses}"))?,
            clusters: parameters.parse_all("cluster", "the name of a cluster")?,
            owners: parameters.all("owner").map(Owner::new).collect(),
            partitions: partitions.iter().map(ToString::to_string).collect(),
            rules: parameters.all("rule").map(str::to_owned).collect(),
            network_arch: parameters.one("network_arch")?.map(str::to_owned),
            action: parameters.one("action")?.map(str::to_owned),
            labels: labels(parameters)?,
            text: text(parameters)?,
            created_after: parameters.moment("created_after")?,
            created_before: parameters.moment("created_before")?,
            conversions: parameters.parse("conversions", "true or false")?.unwrap_or(false),
            order: order(parameters)?,
            limit: parameters.limit(LISTED)?,
            after: parameters
                .parse("page_token", "the next_page_token of an earlier answer, unchanged")?
                .map(|PageToken { at, id }| (at, JobId::new(Uuid::from_bytes(id)))),
        };
        let facets = parameters.one("facets")?.into_iter().flat_map(|names| names.split(','));
        let detail = "must be some of status, cluster, owner, partition and rule, separated by commas";
        let facets = facets.map(str::parse).collect::<Result<_, _>>();
        Ok(Self { filter, facets: facets.map_err(|_| Problem::parameter("facets", "invalid", detail))? })
    }
}

fn order(parameters: &Parameters) -> Result<JobOrder, Problem> {
    match parameters.one("sort")? {
        None | Some("-created_at") => Ok(JobOrder::Newest),
        Some("created_at") => Ok(JobOrder::Oldest),
        Some("-finished_at") => Ok(JobOrder::LastFinished),
        Some(_) => {
            let detail = "must be -created_at, created_at or -finished_at";
            Err(Problem::parameter("sort", "invalid", detail))
        }
    }
}

fn text(parameters: &Parameters) -> Result<Option<String>, Problem> {
    let Some(text) = parameters.one("q")?.map(str::trim).filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    if text.chars().count() > LONGEST_TEXT {
        let detail = format!("must have at most {LONGEST_TEXT} characters");
        return Err(Problem::parameter("q", "out_of_range", detail));
    }
    Ok(Some(text.to_owned()))
}

/// The labels that a job must have.
pub(crate) fn labels(parameters: &Parameters) -> Result<Vec<(String, String)>, Problem> {
    let mut labels: Vec<(String, String)> = Vec::new();
    for text in parameters.all("label") {
        let Some((key, value)) = text.split_once(':') else {
            return Err(Problem::parameter("label", "invalid", "must be `key:value`"));
        };
        let is_value = value.chars().count() <= 500 && !value.contains('\0');
        if key.parse::<Label>().is_err() || !is_value {
            return Err(Problem::parameter("label", "invalid", "no label can be so: see `labels` of a job"));
        }
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
/// Returns the caller's jobs, newest first; with the scope `admin`, all jobs. New jobs do not shift the pages. With `facets` the answer also
/// counts the jobs of each value: the 50 most frequent ones of each field, on all pages.
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
    Call(app, caller, NoPlace, listing): Call<NoPlace, Listing>,
    uri: Uri,
) -> Result<Response, Problem> {
    let _turn = app.page_turn().await;
    let Listing { filter, facets } = listing;
    let viewer = caller.viewer();
    let count = async {
        if facets.is_empty() {
            return Ok(None);
        }
        let counts = app.store.count_facets(&viewer, &filter).await?;
        Ok(Some(FacetsView::new(&facets, counts)))
    };
    let (page, facets) = tokio::try_join!(app.store.list_jobs(&viewer, &filter), count)?;
    let next = page.next.map(|(at, id)| PageToken { at, id: *id.get().as_bytes() }.to_string());

    let views = super::summaries(&app, &page.jobs).await?;
    let link = next.as_deref().and_then(|token| link::next(&uri, "page_token", token));
    Ok((link, Json(JobList { jobs: views, next_page_token: next, facets })).into_response())
}

//! `GET /stats`: figures about jobs.

use std::str::FromStr;

use axum::Json;
use domain::{ClusterName, Label, Owner, Timestamp};
use persistence::{StatsFilter, StatsGroup};
use slurm::Partition;
use utoipa::IntoParams;

use super::jobs::list::labels;
use crate::{
    http::extract::{Call, FromQuery, NoPlace, Parameters},
    problem::{Problem, problems},
    view::StatsView,
};

mod window;

use window::{Bucket, Window};

problems!(Problems = SECURED);

/// The most groups of an answer.
const MOST_GROUPS: u32 = 100;

/// Selects jobs, a window of time, and how the figures are split. All given filters must match.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "the fields document the query that `Figures` reads")]
pub(crate) struct Choices {
    /// The window begins here. Without it, 7 days before its end. It has at most 400 days.
    #[param(value_type = Option<String>, format = DateTime)]
    since: Timestamp,
    /// The window ends before this time. Without it, now.
    #[param(value_type = Option<String>, format = DateTime)]
    until: Timestamp,
    /// Splits the figures by `status`, `cluster`, `partition`, `owner`, `rule`, or the value of a label: `label:team`.
    #[param(value_type = Option<String>, example = "label:team")]
    group_by: String,
    /// Splits the figures by hours, days, or weeks that begin on Monday, in UTC: at most 1,000 buckets. The first one and the last
    /// one are cut by the window.
    #[param(inline, example = "day")]
    bucket: Option<Bucket>,
    /// Jobs on this cluster. Repeatable; one must match, as for the next two.
    #[param(value_type = Option<Vec<String>>, style = Form, explode)]
    cluster: Vec<ClusterName>,
    /// Jobs of this owner. Without the scope `admin` only your own are counted.
    #[param(value_type = Option<Vec<String>>, style = Form, explode)]
    owner: Vec<Owner>,
    /// Jobs that run in this partition; before they run, jobs that may run in it.
    #[param(value_type = Option<Vec<String>>, style = Form, explode)]
    partition: Vec<Partition>,
    /// Jobs with this label, as `key:value`. Repeatable; all must match.
    #[param(value_type = Option<Vec<String>>, style = Form, explode, example = json!(["team:vision"]))]
    label: Vec<(String, String)>,
}

/// What the query asks for; the window without its defaults.
#[derive(Debug)]
pub(crate) struct Figures {
    since: Option<Timestamp>,
    until: Option<Timestamp>,
    bucket: Option<Bucket>,
    group: Option<StatsGroup>,
    clusters: Vec<ClusterName>,
    owners: Vec<Owner>,
    partitions: Vec<String>,
    labels: Vec<(String, String)>,
}

impl FromQuery for Figures {
    const KNOWN: &'static [&'static str] =
        &["since", "until", "group_by", "bucket", "cluster", "owner", "partition", "label"];

    fn from_query(parameters: &Parameters) -> Result<Self, Problem> {
        let partitions: Vec<Partition> = parameters.parse_all("partition", "the name of a partition")?;
        Ok(Self {
            since: parameters.moment("since")?,
            until: parameters.moment("until")?,
            bucket: parameters.parse("bucket", "hour, day or week")?,
            group: parameters.one("group_by")?.map(group).transpose()?,
            clusters: parameters.parse_all("cluster", "the name of a cluster")?,
            owners: parameters.all("owner").map(Owner::new).collect(),
            partitions: partitions.iter().map(ToString::to_string).collect(),
            labels: labels(parameters)?,
        })
    }
}

fn group(text: &str) -> Result<StatsGroup, Problem> {
    match text {
        "status" => Ok(StatsGroup::Status),
        "cluster" => Ok(StatsGroup::Cluster),
        "partition" => Ok(StatsGroup::Partition),
        "owner" => Ok(StatsGroup::Owner),
        "rule" => Ok(StatsGroup::Rule),
        _ => {
            let key = text.strip_prefix("label:").filter(|key| Label::from_str(key).is_ok());
            let detail =
                "must be status, cluster, partition, owner, rule, or `label:` and the key of a label";
            key.map(|key| StatsGroup::Label(key.to_owned()))
                .ok_or_else(|| Problem::parameter("group_by", "invalid", detail))
        }
    }
}

/// Count jobs
///
/// Returns how many of the caller's jobs were accepted and how many ended in a window of time, their rate of success, and how long
/// their runs waited in Slurm's queue; with the scope `admin`, of all jobs. A job counts once, with an array or without. Jobs that were
/// deleted and the service's own conversions of images do not count. With `group_by` the answer has these figures for each value, too:
/// for the 100 values with the most jobs, those first. With `bucket` it has them for each part of the window.
#[utoipa::path(
    get,
    path = "/stats",
    operation_id = "get_stats",
    params(Choices),
    security(("bearer" = ["read"])),
    responses((status = 200, description = "The figures.", body = StatsView), Problems)
)]
pub(crate) async fn get_stats(
    Call(app, caller, NoPlace, asked): Call<NoPlace, Figures>,
) -> Result<Json<StatsView>, Problem> {
    let window = Window::new(asked.since, asked.until, asked.bucket, app.clock.now())
        .map_err(|(parameter, detail)| Problem::parameter(parameter, "contradiction", detail))?;
    let filter = StatsFilter {
        clusters: asked.clusters,
        owners: asked.owners,
        partitions: asked.partitions,
        labels: asked.labels,
        since: window.since,
        until: window.until,
        group: asked.group,
        most_groups: MOST_GROUPS,
        buckets: window.buckets,
    };
    let _turn = app.page_turn().await;
    let stats = app.store.job_stats(&caller.viewer(), &filter).await?;
    let is_grouped = filter.group.is_some();
    Ok(Json(StatsView::new((window.since, window.until), is_grouped, &window.starts(), stats)))
}

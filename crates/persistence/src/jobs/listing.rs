//! Pages of jobs, and how many jobs have each value of a field.

use domain::{ClusterName, Job, JobId, Owner, Status, Timestamp};
use serde_json::{Map, Value};
use strum::{Display, EnumString};
use uuid::Uuid;

use crate::{
    error::Result,
    jobs::{
        queries::Viewer,
        rows::{self, JobRow, select_jobs},
    },
    store::Store,
    values::count,
};

/// Which jobs a page holds. Of a list with several values, one has to match; an empty list matches all.
#[derive(Debug, Clone, Default)]
pub struct JobFilter {
    pub statuses: Vec<Status>,
    /// The jobs of the service that convert images, instead of those of callers.
    pub conversions: bool,
    pub clusters: Vec<ClusterName>,
    pub owners: Vec<Owner>,
    /// Where the job runs, or may run.
    pub partitions: Vec<String>,
    /// The rule of the failure of a job whose status is `Error`.
    pub rules: Vec<String>,
    pub network_arch: Option<String>,
    pub action: Option<String>,
    pub labels: Vec<(String, String)>,
    /// A part of the name or of a label, in any case, or the beginning of the id.
    pub text: Option<String>,
    /// Only jobs that were accepted after this time.
    pub created_after: Option<Timestamp>,
    /// Only jobs that were accepted before this time.
    pub created_before: Option<Timestamp>,
    pub order: JobOrder,
    /// The last job of the previous page: new jobs do not shift a page.
    pub after: Option<(Timestamp, JobId)>,
    /// The maximum number of jobs on the page.
    pub limit: u32,
}

/// The order of a list. Jobs of the same moment follow their ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum JobOrder {
    /// The newest first.
    #[default]
    Newest,
    /// The oldest first.
    Oldest,
    /// Only jobs that have finished, the last one first.
    LastFinished,
}

/// A page of jobs.
#[derive(Debug, Clone)]
pub struct JobPage {
    pub jobs: Vec<Job>,
    /// The next page begins after this job; `None` on the last page.
    pub next: Option<(Timestamp, JobId)>,
}

/// A field whose values are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Display, EnumString)]
#[strum(serialize_all = "lowercase")]
pub enum JobFacet {
    Status,
    Cluster,
    Owner,
    Partition,
    Rule,
}

/// How many jobs have one value of a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FacetCount {
    pub facet: JobFacet,
    pub value: String,
    pub jobs: u64,
}

/// The texts of a filter, as the statements take them.
struct Texts {
    statuses: Vec<String>,
    clusters: Vec<String>,
    owners: Vec<String>,
    labels: Value,
    /// A pattern for what the job says of itself.
    part: Option<String>,
    /// The first and the last id that begin with the text.
    ids: Option<(Uuid, Uuid)>,
}

impl Texts {
    fn of(filter: &JobFilter) -> Self {
        Self {
            statuses: filter.statuses.iter().map(ToString::to_string).collect(),
            clusters: filter.clusters.iter().map(ToString::to_string).collect(),
            owners: filter.owners.iter().map(ToString::to_string).collect(),
            labels: contained_labels(&filter.labels),
            part: filter.text.as_ref().map(|text| format!("%{}%", escape(text))),
            ids: filter.text.as_ref().and_then(|text| ids_from(text)),
        }
    }
}

/// Selects a page in one order: how a job follows the last one of the page before, and the order.
macro_rules! page {
    ($store:ident, $viewer:ident, $filter:ident, $follows:literal, $order:literal) => {{
        let texts = Texts::of($filter);
        let (after, after_id) = $filter.after.map(|(time, id)| (time, id.get())).unzip();
        select_jobs!(
            "jobs::listing::list_jobs",
            "where ($1::text is null or j.owner = $1)
               and (cardinality($2::text[]) = 0 or j.status = any($2))
               and (cardinality($3::text[]) = 0 or j.cluster = any($3))
               and (cardinality($4::text[]) = 0 or j.owner = any($4))
               and (cardinality($5::text[]) = 0 or string_to_array(j.partition, ',') && $5)
               and (cardinality($6::text[]) = 0 or j.rule = any($6))
               and ($7::text is null or j.network_arch = $7)
               and ($8::text is null or j.action = $8)
               and ($9::jsonb = '{}' or j.labels @> $9)
               and ($10::text is null or j.searched like lower($10) or j.id between $11 and $18)
               and j.desired_state <> 'delete'
               and ($12::timestamptz is null or j.created_at > $12)
               and ($13::timestamptz is null or j.created_at < $13)
               and (j.owner = '') = $14
               and ($15::timestamptz is null or " $follows ")
             order by " $order "
             limit $17",
            $viewer.owner(),
            &texts.statuses,
            &texts.clusters,
            &texts.owners,
            &$filter.partitions,
            &$filter.rules,
            $filter.network_arch.as_deref(),
            $filter.action.as_deref(),
            texts.labels,
            texts.part,
            texts.ids.map(|(first, _)| first),
            $filter.created_after,
            $filter.created_before,
            $filter.conversions,
            after,
            after_id,
            // One more than the page shows: its presence means that there is another page.
            i64::from($filter.limit) + 1,
            texts.ids.map(|(_, last)| last),
        )
        .fetch_all(&$store.pool)
        .await?
    }};
}

impl Store {
    pub async fn list_jobs(&self, viewer: &Viewer, filter: &JobFilter) -> Result<JobPage> {
        let mut rows: Vec<JobRow> = match filter.order {
            JobOrder::Newest => page!(
                self,
                viewer,
                filter,
                "(j.created_at, j.id) < ($15, $16::uuid)",
                "j.created_at desc, j.id desc"
            ),
            JobOrder::Oldest => {
                page!(self, viewer, filter, "(j.created_at, j.id) > ($15, $16::uuid)", "j.created_at, j.id")
            }
            JobOrder::LastFinished => page!(
                self,
                viewer,
                filter,
                "(j.finished_at, j.id) < ($15, $16::uuid)) and (j.finished_at is not null",
                "j.finished_at desc, j.id desc"
            ),
        };
        let limit = usize::try_from(filter.limit).unwrap_or(usize::MAX);
        let more = rows.len() > limit;
        rows.truncate(limit);
        // From the rows: an unreadable job does not end the list.
        let place = |row: &JobRow| match filter.order {
            JobOrder::Newest | JobOrder::Oldest => Some((row.created_at, JobId::new(row.id))),
            JobOrder::LastFinished => Some((row.finished_at?, JobId::new(row.id))),
        };
        let last = rows.last().and_then(place);
        Ok(JobPage { jobs: rows::readable(rows).0, next: last.filter(|_| more) })
    }

    /// How many jobs have each status, cluster, owner, partition and rule: the 50 most frequent values of each field, those first. The
    /// filter of a field does not apply to its own counts, so that they show what another choice would find.
    pub async fn count_facets(&self, viewer: &Viewer, filter: &JobFilter) -> Result<Vec<FacetCount>> {
        let texts = Texts::of(filter);
        let rows = sqlx::query!(
            r#"-- jobs::listing::count_facets
               with cube as (
                   select j.status, j.cluster, j.owner, j.partition, j.rule, count(*) as jobs
                   from jobs j
                   where ($1::text is null or j.owner = $1)
                     and ($7::text is null or j.network_arch = $7)
                     and ($8::text is null or j.action = $8)
                     and ($9::jsonb = '{}' or j.labels @> $9)
                     and ($10::text is null or j.searched like lower($10) or j.id between $11 and $15)
                     and j.desired_state <> 'delete'
                     and ($12::timestamptz is null or j.created_at > $12)
                     and ($13::timestamptz is null or j.created_at < $13)
                     and (j.owner = '') = $14
                   group by 1, 2, 3, 4, 5
               ), judged as (
                   select *, cardinality($2::text[]) = 0 or status = any($2) as status_fits,
                          cardinality($3::text[]) = 0 or cluster = any($3) as cluster_fits,
                          cardinality($4::text[]) = 0 or owner = any($4) as owner_fits,
                          cardinality($5::text[]) = 0 or string_to_array(partition, ',') && $5 as partition_fits,
                          cardinality($6::text[]) = 0 or coalesce(rule = any($6), false) as rule_fits
                   from cube
               ), counted as (
                   select 'status' as field, status as value, jobs from judged
                   where cluster_fits and owner_fits and partition_fits and rule_fits
                   union all
                   select 'cluster', cluster, jobs from judged where status_fits and owner_fits and partition_fits and rule_fits
                   union all
                   select 'owner', owner, jobs from judged where status_fits and cluster_fits and partition_fits and rule_fits
                   union all
                   select 'partition', one, jobs from judged, unnest(string_to_array(partition, ',')) one
                   where status_fits and cluster_fits and owner_fits and rule_fits
                   union all
                   select 'rule', rule, jobs from judged
                   where rule is not null and status_fits and cluster_fits and owner_fits and partition_fits
               ), summed as (
                   select field, value, sum(jobs)::bigint as jobs,
                          row_number() over (partition by field order by sum(jobs) desc, value) as place
                   from counted group by field, value
               )
               select field as "field!", value as "value!", jobs as "jobs!" from summed where place <= 50
               order by field, place"#,
            viewer.owner(),
            &texts.statuses,
            &texts.clusters,
            &texts.owners,
            &filter.partitions,
            &filter.rules,
            filter.network_arch.as_deref(),
            filter.action.as_deref(),
            texts.labels,
            texts.part,
            texts.ids.map(|(first, _)| first),
            filter.created_after,
            filter.created_before,
            filter.conversions,
            texts.ids.map(|(_, last)| last),
        )
        .fetch_all(&self.pool)
        .await?;
        let facet = |field: String, value, jobs| {
            Some(FacetCount { facet: field.parse().ok()?, value, jobs: count(jobs) })
        };
        Ok(rows.into_iter().filter_map(|row| facet(row.field, row.value, row.jobs)).collect())
    }
}

/// A JSON document that the labels of a job must contain.
pub(super) fn contained_labels(labels: &[(String, String)]) -> Value {
    labels.iter().map(|(key, value)| (key.clone(), value.clone().into())).collect::<Map<_, _>>().into()
}

/// The first and the last id that begin with this text; none does if it is no beginning of an id.
fn ids_from(text: &str) -> Option<(Uuid, Uuid)> {
    let filled = |blank: &str| Uuid::try_parse(&format!("{text}{}", blank.get(text.len()..)?)).ok();
    Some((filled("00000000-0000-0000-0000-000000000000")?, filled("ffffffff-ffff-ffff-ffff-ffffffffffff")?))
}

/// The text in a pattern of `like`, for itself.
fn escape(text: &str) -> String {
    text.replace('\\', r"\\").replace('%', r"\%").replace('_', r"\_")
}

#[cfg(test)]
mod tests;

//! Figures about jobs in a window of time: how many were accepted and how they ended, how long their runs waited in Slurm's queue, and
//! the GPU time that they held.

use std::collections::HashMap;

use domain::{ClusterName, Owner, Status, Timestamp};
use serde_json::Value;
use sqlx::PgConnection;

use crate::{
    error::Result,
    jobs::{listing::contained_labels, queries::Viewer},
    store::Store,
    values::{count, signed},
};

/// Which jobs count, in which window, and how the figures are split. Of a list with several values, one has to match; an empty list
/// matches all. Jobs of the service and jobs that are being deleted never count.
#[derive(Debug, Clone)]
pub struct StatsFilter {
    pub clusters: Vec<ClusterName>,
    pub owners: Vec<Owner>,
    /// Where the job runs, or may run.
    pub partitions: Vec<String>,
    /// All must match.
    pub labels: Vec<(String, String)>,
    /// The window begins here.
    pub since: Timestamp,
    /// The window ends before this time.
    pub until: Timestamp,
    pub group: Option<StatsGroup>,
    /// The maximum number of groups.
    pub most_groups: u32,
    pub buckets: Option<StatsBuckets>,
}

/// The field whose values make the groups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StatsGroup {
    Status,
    Cluster,
    Partition,
    Owner,
    /// The rule of the failure of a job whose status is `Error`.
    Rule,
    /// The value of the label with this key.
    Label(String),
}

impl StatsGroup {
    fn field(&self) -> &'static str {
        match self {
            Self::Status => "status",
            Self::Cluster => "cluster",
            Self::Partition => "partition",
            Self::Owner => "owner",
            Self::Rule => "rule",
            Self::Label(_) => "label",
        }
    }

    fn label(&self) -> Option<&str> {
        if let Self::Label(key) = self { Some(key) } else { None }
    }
}

/// Parts of the window with the same length, counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatsBuckets {
    /// The beginning of the first one, which is not after the window's.
    pub first: Timestamp,
    pub seconds: u32,
}

/// The figures of some jobs.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct JobFigures {
    /// Jobs that were accepted in the window.
    pub submitted: u64,
    /// Jobs that ended in the window, and are in this status since then.
    pub done: u64,
    pub error: u64,
    pub canceled: u64,
    /// Runs that started in the window, without those whose time in the queue is not known.
    pub starts: u64,
    /// Percentiles of their time in Slurm's queue, in seconds; `None` without such a run.
    pub wait_p50: Option<f64>,
    pub wait_p90: Option<f64>,
    /// The seconds of the window in which Slurm jobs held GPUs, times their GPUs, as far as accounting has told.
    pub gpu_seconds: u64,
}

/// All figures that a filter asks for.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct JobStats {
    pub totals: JobFigures,
    /// By value, the groups with the most jobs first. The value is `None` for jobs that have none.
    pub groups: Vec<(Option<String>, JobFigures)>,
    /// There are more groups.
    pub has_more_groups: bool,
    /// By number; those without a figure are left out.
    pub buckets: HashMap<u32, JobFigures>,
    /// The jobs that have not ended now, whatever the window, by status, most frequent first.
    pub unfinished: Vec<(Status, u64)>,
}

/// The texts of a filter, as the statements take them.
struct Texts<'a> {
    owner: Option<&'a str>,
    clusters: Vec<String>,
    owners: Vec<String>,
    labels: Value,
}

/// The figures of all jobs (`totals`), of a `group` with its value, or of a `bucket` with its number.
struct Line {
    level: String,
    bucket: Option<i32>,
    value: Option<String>,
    submitted: i64,
    done: i64,
    error: i64,
    canceled: i64,
    starts: i64,
    wait_p50: Option<f64>,
    wait_p90: Option<f64>,
    gpu_seconds: i64,
}

impl Line {
    fn figures(&self) -> JobFigures {
        JobFigures {
            submitted: count(self.submitted),
            done: count(self.done),
            error: count(self.error),
            canceled: count(self.canceled),
            starts: count(self.starts),
            wait_p50: self.wait_p50,
            wait_p90: self.wait_p90,
            gpu_seconds: count(self.gpu_seconds),
        }
    }
}

impl Store {
    /// The figures of the jobs that the viewer may see.
    pub async fn job_stats(&self, viewer: &Viewer, filter: &StatsFilter) -> Result<JobStats> {
        let texts = Texts {
            owner: viewer.owner(),
            clusters: filter.clusters.iter().map(ToString::to_string).collect(),
            owners: filter.owners.iter().map(ToString::to_string).collect(),
            labels: contained_labels(&filter.labels),
        };
        let mut tx = self.begin().await?;
        // Compiling the long statement would take longer than running it.
        sqlx::query!("-- jobs::stats::job_stats\nset local jit = off").execute(&mut *tx).await?;
        let lines = lines(&mut tx, &texts, filter).await?;
        let unfinished = unfinished(&mut tx, &texts, filter).await?;
        tx.commit().await?;

        let mut stats = JobStats { unfinished, ..JobStats::default() };
        for line in lines {
            let figures = line.figures();
            match (line.level.as_str(), line.bucket) {
                ("bucket", Some(number)) => {
                    stats.buckets.insert(count(number.into()), figures);
                }
                ("group", _) => stats.groups.push((line.value, figures)),
                _ => stats.totals = figures,
            }
        }
        let most = usize::try_from(filter.most_groups).unwrap_or(usize::MAX);
        stats.has_more_groups = stats.groups.len() > most;
        stats.groups.truncate(most);
        Ok(stats)
    }
}

/// Each source of figures reads an index of its times: jobs by `created_at` and by `finished_at`, runs by `started_at`.
#[expect(
    clippy::too_many_lines,
    reason = "one statement: the database joins the figures of a group, and orders the groups by them"
)]
async fn lines(db: &mut PgConnection, texts: &Texts<'_>, filter: &StatsFilter) -> Result<Vec<Line>> {
    let lines = sqlx::query_as!(
        Line,
        r#"-- jobs::stats::lines
           with fitting as not materialized (
               select j.id, j.status, j.partition, j.created_at, j.finished_at,
                      case $8::text when 'status' then array[j.status] when 'cluster' then array[j.cluster]
                                    when 'owner' then array[j.owner] when 'rule' then array[j.rule]
                                    when 'partition' then coalesce(string_to_array(j.partition, ','), array[null])
                                    when 'label' then array[j.labels ->> $9::text] end as groups
               from jobs j
               where ($1::text is null or j.owner = $1)
                 and (cardinality($2::text[]) = 0 or j.cluster = any($2))
                 and (cardinality($3::text[]) = 0 or j.owner = any($3))
                 and ($5::jsonb = '{}' or j.labels @> $5)
                 and j.owner <> '' and j.desired_state <> 'delete'
           ), counted as (
               select 'submitted' as figure, floor(extract(epoch from created_at - $10::timestamptz) / $11::float8)::int as bucket,
                      groups, count(*) as jobs
               from fitting
               where created_at >= $6::timestamptz and created_at < $7::timestamptz
                 and (cardinality($4::text[]) = 0 or string_to_array(partition, ',') && $4)
               group by 1, 2, 3
               union all
               select status, floor(extract(epoch from finished_at - $10) / $11)::int, groups, count(*)
               from fitting
               where finished_at >= $6 and finished_at < $7 and (cardinality($4) = 0 or string_to_array(partition, ',') && $4)
               group by 1, 2, 3
           ), starts as (
               -- A run is in one partition, also if its job is in another one by now.
               select floor(extract(epoch from r.started_at - $10) / $11)::int as bucket, greatest(w.seconds, 0) as wait,
                      case when $8 = 'partition' and r.partition is not null then array[r.partition] else f.groups end as groups
               from runs r
               join fitting f on f.id = r.job_id,
               lateral (select extract(epoch from r.started_at - coalesce(r.queued_since,
                            (select a.submitted_at from slurm_metadata a where a.job_id = r.job_id and a.attempt = r.attempt)
                        ))::float8 as seconds) w
               where r.started_at >= $6 and r.started_at < $7 and w.seconds is not null
                 and (cardinality($4) = 0 or string_to_array(coalesce(r.partition, f.partition), ',') && $4)
           ), held as (
               -- What a job held counts when the job is deleted, too. The time in which it was suspended is left out at its end.
               select greatest(l.started_at, $6) as from_at, least(l.started_at + l.elapsed * interval '1 second', $7) as to_at, l.gpus,
                      case $8::text when 'status' then array[j.status] when 'cluster' then array[l.cluster]
                                    when 'owner' then array[l.owner] when 'rule' then array[j.rule]
                                    when 'partition' then array[l.partition] when 'label' then array[l.labels ->> $9::text] end as groups
               from allocations l
               left join jobs j on $8 in ('status', 'rule') and j.id = l.job_id
               where ($1::text is null or l.owner = $1)
                 and (cardinality($2::text[]) = 0 or l.cluster = any($2))
                 and (cardinality($3::text[]) = 0 or l.owner = any($3))
                 and (cardinality($4) = 0 or l.partition = any($4))
                 and ($5::jsonb = '{}' or l.labels @> $5)
                 and l.owner <> '' and l.gpus > 0
                 and l.started_at < $7 and l.started_at + l.elapsed * interval '1 second' > $6
           ), bucket_times as (
               select h.gpus, n as bucket,
                      least(h.to_at, $10::timestamptz + (n + 1) * $11::float8 * interval '1 second')
                          - greatest(h.from_at, $10 + n * $11 * interval '1 second') as time
               from held h, generate_series(floor(extract(epoch from h.from_at - $10) / $11)::int,
                                            ceil(extract(epoch from h.to_at - $10) / $11)::int - 1) n
               where $10 is not null
           ), parts as (
               select 'totals' as level, null::int as bucket, null as value, figure, sum(jobs) as number, null::float8[] as waits
               from counted group by figure
               union all
               select 'bucket', bucket, null, figure, sum(jobs), null from counted where $10 is not null group by bucket, figure
               union all
               select 'group', null, value, figure, sum(jobs), null from counted, unnest(groups) value group by value, figure
               union all
               select 'totals', null, null, 'started', count(*), percentile_cont(array[0.5, 0.9]) within group (order by wait)
               from starts
               union all
               select 'bucket', bucket, null, 'started', count(*), percentile_cont(array[0.5, 0.9]) within group (order by wait)
               from starts where $10 is not null group by bucket
               union all
               select 'group', null, value, 'started', count(*), percentile_cont(array[0.5, 0.9]) within group (order by wait)
               from starts, unnest(groups) value group by value
               union all
               select 'totals', null, null, 'held', sum(extract(epoch from to_at - from_at) * gpus), null from held
               union all
               select 'bucket', bucket, null, 'held', sum(extract(epoch from time) * gpus), null from bucket_times group by bucket
               union all
               select 'group', null, value, 'held', sum(extract(epoch from to_at - from_at) * gpus), null
               from held, unnest(groups) value group by value
           ), lines as (
               select level, bucket, value,
                      coalesce(sum(number) filter (where figure = 'submitted'), 0)::bigint as submitted,
                      coalesce(sum(number) filter (where figure = 'Done'), 0)::bigint as done,
                      coalesce(sum(number) filter (where figure = 'Error'), 0)::bigint as error,
                      coalesce(sum(number) filter (where figure = 'Canceled'), 0)::bigint as canceled,
                      coalesce(sum(number) filter (where figure = 'started'), 0)::bigint as starts,
                      max(waits[1]) as wait_p50, max(waits[2]) as wait_p90,
                      coalesce(sum(number) filter (where figure = 'held'), 0)::bigint as gpu_seconds
               from parts group by level, bucket, value
           ), placed as (
               select *, row_number() over (partition by level order by submitted + done + error + canceled desc, gpu_seconds desc, starts desc, value) as place
               from lines
           )
           select level as "level!", bucket, value, submitted as "submitted!", done as "done!", error as "error!",
                  canceled as "canceled!", starts as "starts!", wait_p50, wait_p90, gpu_seconds as "gpu_seconds!"
           from placed where level <> 'group' or place <= $12
           order by level, place"#,
        texts.owner,
        &texts.clusters,
        &texts.owners,
        &filter.partitions,
        texts.labels,
        filter.since,
        filter.until,
        filter.group.as_ref().map(StatsGroup::field),
        filter.group.as_ref().and_then(StatsGroup::label),
        filter.buckets.map(|buckets| buckets.first),
        filter.buckets.map(|buckets| f64::from(buckets.seconds)),
        // One more than there may be: its presence means that there are more.
        signed(u64::from(filter.most_groups) + 1),
    );
    Ok(lines.fetch_all(db).await?)
}

async fn unfinished(
    db: &mut PgConnection,
    texts: &Texts<'_>,
    filter: &StatsFilter,
) -> Result<Vec<(Status, u64)>> {
    let rows = sqlx::query!(
        r#"-- jobs::stats::unfinished
           select status, count(*) as "jobs!"
           from jobs
           where ($1::text is null or owner = $1)
             and (cardinality($2::text[]) = 0 or cluster = any($2))
             and (cardinality($3::text[]) = 0 or owner = any($3))
             and (cardinality($4::text[]) = 0 or string_to_array(partition, ',') && $4)
             and ($5::jsonb = '{}' or labels @> $5)
             and owner <> '' and desired_state <> 'delete' and status not in ('Done', 'Error', 'Canceled')
           group by 1 order by 2 desc, 1"#,
        texts.owner,
        &texts.clusters,
        &texts.owners,
        &filter.partitions,
        texts.labels,
    );
    let rows = rows.fetch_all(db).await?;
    Ok(rows.into_iter().filter_map(|row| Some((row.status.parse().ok()?, count(row.jobs)))).collect())
}

//! The remote commands that were run for a job. They are written in batches, apart from the work: no decision depends on them.

use std::{collections::BTreeSet, time::Duration};

use domain::{ClusterName, JobId, Timestamp};
use remote::{CommandResult, Subject};
use serde_json::{Value, json};

use crate::{error::Result, store::Store, values::StoredRow};

/// How many entries of one job and class are stored: following a log must not push out the submission of the job.
const KEPT_OF_CLASS: i64 = 100;
/// How many polls of a cluster are stored.
const KEPT_POLLS: i64 = 2000;

/// A remote command that has ended, with or without an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandRun {
    pub cluster: ClusterName,
    /// [`RemoteCommand::NAME`](remote::RemoteCommand::NAME).
    pub class: &'static str,
    /// The login host that ran it; none if it is not known, or no host did.
    pub host: Option<String>,
    pub started_at: Timestamp,
    pub duration: Duration,
    pub result: CommandResult,
    pub exit_code: Option<i32>,
    /// The size of the answer.
    pub bytes: Option<u64>,
    /// How many jobs it was for.
    pub jobs: usize,
    /// Whose timelines it belongs to, each with its outcome in a few words of ours.
    pub subjects: Vec<(Subject, Option<String>)>,
}

/// An entry of a job's timeline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimelineEntry {
    pub id: i64,
    pub class: String,
    pub attempt: Option<u32>,
    pub host: Option<String>,
    pub started_at: Timestamp,
    pub duration: Duration,
    pub result: CommandResult,
    pub exit_code: Option<i32>,
    pub bytes: Option<u64>,
    pub jobs: u32,
    pub outcome: Option<String>,
}

/// A place in a timeline: after the entry with this start and id.
pub type TimelinePlace = (Timestamp, i64);

/// The rows of a command: one for each timeline that it belongs to.
fn rows(run: &CommandRun) -> impl Iterator<Item = Value> {
    run.subjects.iter().map(|(subject, outcome)| {
        let (job, attempt) = match subject {
            Subject::Attempt { job, no } => (Some(job), Some(no)),
            Subject::Job(job) => (Some(job), None),
            Subject::Cluster => (None, None),
        };
        json!({
            "job_id": job,
            "cluster": run.cluster.as_str(),
            "attempt": attempt,
            "class": run.class,
            "host": run.host,
            "started_at": run.started_at,
            "duration_ms": u64::try_from(run.duration.as_millis()).unwrap_or(u64::MAX),
            "result": run.result,
            "exit_code": run.exit_code,
            "bytes": run.bytes,
            "jobs": run.jobs,
            "outcome": outcome,
        })
    })
}

impl Store {
    /// Stores commands; those of deleted jobs are left out.
    pub async fn record_commands(&self, runs: &[CommandRun]) -> Result<()> {
        let rows: Vec<Value> = runs.iter().flat_map(rows).collect();
        if rows.is_empty() {
            return Ok(());
        }
        let mut tx = self.begin().await?;
        let touched = sqlx::query_scalar!(
            r#"-- events::timeline::record_commands
               with u as (
                   select * from jsonb_to_recordset($1) as u(
                       job_id uuid, cluster text, attempt int, class text, host text,
                       started_at timestamptz, duration_ms bigint, result text, exit_code int, bytes bigint, jobs int,
                       outcome text)
               ), alive as (
                   select id from jobs where id in (select job_id from u) for key share
               ), stored as (
                   insert into timeline (job_id, cluster, attempt, class, host, started_at, duration_ms, result, exit_code,
                                         bytes, jobs, outcome)
                   select alive.id, u.cluster, u.attempt, u.class, u.host, u.started_at, u.duration_ms, u.result, u.exit_code,
                          u.bytes, u.jobs, u.outcome
                   from u join alive on alive.id = u.job_id
                   union all
                   select null, u.cluster, null, u.class, u.host, u.started_at, u.duration_ms, u.result, u.exit_code, u.bytes,
                          u.jobs, u.outcome
                   from u where u.job_id is null
                   returning job_id
               )
               select distinct job_id as "job!" from stored where job_id is not null"#,
            Value::from(rows),
        )
        .fetch_all(&mut *tx)
        .await?;
        sqlx::query!(
            "-- events::timeline::record_commands jobs
             delete from timeline t
             using (select id, row_number() over (partition by job_id, class order by started_at desc, id desc) as place
                    from timeline where job_id = any($1)) as old
             where t.id = old.id and old.place > $2",
            &touched,
            KEPT_OF_CLASS,
        )
        .execute(&mut *tx)
        .await?;
        let is_poll =
            |run: &&CommandRun| run.subjects.iter().any(|(subject, _)| *subject == Subject::Cluster);
        let polled: BTreeSet<&str> = runs.iter().filter(is_poll).map(|run| run.cluster.as_str()).collect();
        for cluster in polled {
            sqlx::query!(
                "-- events::timeline::record_commands polls
                 delete from timeline
                 where job_id is null and cluster = $1
                   and started_at < (select started_at from timeline where job_id is null and cluster = $1
                                     order by started_at desc, id desc offset $2 limit 1)",
                cluster,
                KEPT_POLLS - 1,
            )
            .execute(&mut *tx)
            .await?;
        }
        Ok(tx.commit().await?)
    }

    /// The commands that were run for a job, in the order of their starts, with the polls of the time in which Slurm had it. An
    /// empty list of classes means all classes.
    pub async fn timeline(
        &self,
        job: JobId,
        classes: &[String],
        after: Option<TimelinePlace>,
        limit: u32,
    ) -> Result<Vec<TimelineEntry>> {
        let (began, id) = after.unzip();
        let rows = sqlx::query!(
            r#"-- events::timeline::timeline
               with own as (
                   select t.* from timeline t
                   where t.job_id = $1 and (cardinality($2::text[]) = 0 or t.class = any($2))
                     and ($3::timestamptz is null or (t.started_at, t.id) > ($3, $4::bigint))
                   order by t.started_at, t.id limit $5
               ), attempts as (
                   select j.cluster, a.submitted_at as since, coalesce(a.concluded_at, now()) as until
                   from jobs j join slurm_metadata a on a.job_id = j.id
                   where j.id = $1 and a.submitted_at is not null
               ), polls as (
                   select t.* from timeline t
                   where t.job_id is null and t.cluster = (select cluster from jobs where id = $1)
                     and (cardinality($2::text[]) = 0 or t.class = any($2))
                     and t.started_at >= (select min(since) from attempts)
                     and exists (select from attempts a where t.started_at between a.since and a.until)
                     and ($3::timestamptz is null or (t.started_at, t.id) > ($3, $4::bigint))
                   order by t.started_at, t.id limit $5
               )
               select id as "id!", class as "class!", attempt, host, started_at as "started_at!",
                      duration_ms as "duration_ms!", result as "result!", exit_code, bytes, jobs as "jobs!", outcome
               from (select * from own union all select * from polls) as both_
               order by started_at, id limit $5"#,
            job.get(),
            classes,
            began,
            id,
            i64::from(limit),
        )
        .fetch_all(&self.pool)
        .await?;
        let stored = StoredRow::of("timeline", &job);
        rows.into_iter()
            .map(|row| {
                Ok(TimelineEntry {
                    id: row.id,
                    class: row.class,
                    attempt: row.attempt.map(|no| stored.number("attempt", no)).transpose()?,
                    host: row.host,
                    started_at: row.started_at,
                    duration: Duration::from_millis(stored.number("duration_ms", row.duration_ms)?),
                    result: stored.parse("result", &row.result)?,
                    exit_code: row.exit_code,
                    bytes: row.bytes.map(|bytes| stored.number("bytes", bytes)).transpose()?,
                    jobs: stored.number("jobs", row.jobs)?,
                    outcome: row.outcome,
                })
            })
            .collect()
    }
}

#[cfg(test)]
mod tests;

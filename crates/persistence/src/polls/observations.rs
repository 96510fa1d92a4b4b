//! What polls ask about, and what they observed: the jobs of one cluster that Slurm has.

use domain::{
    ActiveJob, AttemptPlace, ClusterName, Job, JobId, ObservedChange, Reporting, StatusFiles, Timestamp,
};
use uuid::Uuid;

use crate::{
    error::{Result, StoreError},
    jobs::{
        documents::Documents,
        rows::{self, select_jobs},
    },
    polls::turns::PollLease,
    statements::store_all,
    store::{Call, Store},
    values::StoredRow,
};

/// What polls ask about, and what they observed.
pub trait Observations {
    /// The jobs that a poll asks about. An unreadable row is logged and left out.
    fn active_jobs(&self, cluster: &ClusterName) -> impl Call<Vec<ActiveJob>>;

    /// The whole jobs that have not changed since they were asked about.
    fn unchanged_jobs(&self, asked: &[&ActiveJob]) -> impl Call<Vec<Job>>;

    /// Stores what a poll observed in one transaction, and keeps the lease. Each job comes with whether a step is due now.
    ///
    /// A job that has changed in the meantime is skipped: the next poll observes it again. So is a job with a value that the
    /// database refuses, which does not hold up the others. Returns how many jobs were written.
    fn record_observations(
        &self,
        lease: &PollLease,
        changed: &[ObservedChange],
        now: Timestamp,
    ) -> impl Call<u64>;
}

impl Observations for Store {
    async fn active_jobs(&self, cluster: &ClusterName) -> Result<Vec<ActiveJob>> {
        // Reading the timeout unpacks a long specification, and only running jobs are checked for signs of life. Documents are
        // text: one that cannot be read fails its own row, not the whole statement.
        let rows = sqlx::query!(
            r#"-- polls::observations::active_jobs
               select j.id, j.version, j.phase, j.desired_state, j.submitted_at, r.kill_reason is not null as "is_doomed!",
                      r.activity is not null as "was_alive!",
                      case when j.phase = 'running' then j.spec ->> 'timeout_minutes' end as timeout_minutes,
                      case when j.phase = 'running' then j.spec #>> '{progress,path}' end as progress_file,
                      coalesce(j.phase = 'running' and jsonb_path_exists(j.spec, '$.work.list.service'), false) as "has_services!",
                      a.attempt, a.token, a.job_dir, a.slurm_job_id, coalesce(r.status_files, '{}')::text as "status_files!"
               from jobs j join slurm_metadata a on a.job_id = j.id and a.attempt = j.attempt
               left join runs r on r.job_id = j.id and r.attempt = j.attempt and r.task = 0
               where j.cluster = $1 and j.phase in ('in_queue', 'running', 'suspended') and j.array_state is null"#,
            cluster.as_str(),
        );
        let jobs = rows.map(|row| {
            let job = StoredRow::of("jobs", &row.id);
            let attempt = StoredRow::of("slurm_metadata", &row.id);
            let read = || {
                let status: StatusFiles = attempt.json("status_files", &row.status_files)?;
                Ok(ActiveJob {
                    id: JobId::new(row.id),
                    version: row.version,
                    attempt: AttemptPlace {
                        no: attempt.attempt_no(row.attempt)?,
                        token: attempt.parse("token", &row.token)?,
                        job_dir: attempt.parse("job_dir", &row.job_dir)?,
                        slurm_id: attempt.slurm_id(row.slurm_job_id)?,
                        index: None,
                    },
                    submitted_at: row.submitted_at,
                    cursors: status.cursors(),
                    phase: job.parse("phase", &row.phase)?,
                    desired: job.parse("desired_state", &row.desired_state)?,
                    is_doomed: row.is_doomed,
                    was_alive: row.was_alive,
                    timeout_minutes: job.parse_any("spec", row.timeout_minutes.as_ref())?,
                    reporting: Reporting { services: row.has_services, progress: row.progress_file },
                })
            };
            let log = |error: &StoreError| {
                tracing::error!(job.id = %row.id, %error, "a stored job cannot be read; it is skipped");
            };
            read().inspect_err(log).ok()
        });
        Ok(jobs.fetch_all(&self.pool).await?.into_iter().flatten().collect())
    }

    async fn unchanged_jobs(&self, asked: &[&ActiveJob]) -> Result<Vec<Job>> {
        let (ids, versions): (Vec<Uuid>, Vec<i64>) =
            asked.iter().map(|job| (job.id.get(), job.version)).unzip();
        let rows = select_jobs!(
            "polls::observations::unchanged_jobs",
            "where (j.id, j.version) in (select * from unnest($1::uuid[], $2::bigint[]))",
            &ids,
            &versions,
        )
        .fetch_all(&self.pool)
        .await?;
        Ok(rows::readable(rows).0)
    }

    async fn record_observations(
        &self,
        lease: &PollLease,
        changed: &[ObservedChange],
        now: Timestamp,
    ) -> Result<u64> {
        let record = |changed| self.record_observations_together(lease, changed, now);
        let refused = |next: &ObservedChange, error: &StoreError| {
            tracing::error!(job.id = %next.job.id, error = ?error, "the database refuses a job's new state");
        };
        let written = store_all(changed, record, refused).await?;
        Ok(u64::try_from(written.len()).unwrap_or(u64::MAX))
    }
}

impl Store {
    async fn record_observations_together(
        &self,
        lease: &PollLease,
        changed: &[ObservedChange],
        now: Timestamp,
    ) -> Result<Vec<Uuid>> {
        let mut tx = self.begin().await?;
        lease.hold(&mut tx).await?;
        let written = write(&mut tx, changed, now).await?;
        tx.commit().await?;
        Ok(written)
    }
}

pub(crate) async fn write(
    connection: &mut sqlx::PgConnection,
    changed: &[ObservedChange],
    now: Timestamp,
) -> Result<Vec<Uuid>> {
    let due = changed.iter().map(|next| (&next.job, next.step_due.then_some(now)));
    let Documents { jobs, runs, lines, .. } = Documents::of(due);
    // The version check skips jobs that a step or a caller has changed since the poll read them.
    let written = sqlx::query_scalar!(
        r#"-- polls::observations::write
           with u as (
               select * from jsonb_populate_recordset(null::jobs, $1)
           ), old as (
               select j.id, j.events from jobs j join u on u.id = j.id
               where j.version = u.version and j.phase in ('in_queue', 'running', 'suspended')
               for update of j
           ), lines as (
               select l.* from jsonb_populate_recordset(null::job_events, $4) l
           ), counted as (
               select job_id, count(*) as lines from lines group by job_id
           ), stored as (
               update jobs j
               set status = u.status, desired_state = u.desired_state, phase = u.phase, message = u.message, pending_reason = u.pending_reason,
                   finishing_since = u.finishing_since, started_at = u.started_at,
                   observed_at = u.observed_at, source = u.source, partition = coalesce(u.partition, j.partition),
                   due_at = case when u.phase = 'finishing' then now()
                                 else coalesce(j.due_at, now() + (u.due_at - $3)) end,
                   events = old.events + coalesce(counted.lines, 0),
                   last_modified = $3, version = j.version + 1, updated_by = 'record_poll'
               from u join old on old.id = u.id left join counted on counted.job_id = u.id
               where j.id = u.id
               returning j.id
           ), added_events as (
               insert into job_events (job_id, seq, at, kind, attempt, file, earlier_run, data)
               select l.job_id, old.events + l.seq, $3, l.kind, l.attempt, l.file, l.earlier_run, l.data
               from lines l join old on old.id = l.job_id
               where l.job_id in (select id from stored)
               order by l.job_id, l.seq
           ), runs as (
               insert into runs as known
               select r.* from jsonb_populate_recordset(null::runs, $2) r
               where r.job_id in (select id from stored)
               on conflict (job_id, attempt, task) do update
               set (slurm_state, exit_code, exit_signal, nodes, reason, partition, status_files, progress, activity,
                    kill_reason, queued_since, estimated_start, started_at, ended_at, missing_since, requeues,
                    waits_again, source, over, usage) =
                   (excluded.slurm_state, excluded.exit_code, excluded.exit_signal, excluded.nodes, excluded.reason,
                    excluded.partition, excluded.status_files, excluded.progress, excluded.activity,
                    excluded.kill_reason, excluded.queued_since, excluded.estimated_start, excluded.started_at,
                    excluded.ended_at, excluded.missing_since, excluded.requeues, excluded.waits_again,
                    excluded.source, excluded.over, excluded.usage)
               where not known.over
           )
           select id as "id!" from stored"#,
        jobs,
        runs,
        now,
        lines,
    );
    Ok(written.fetch_all(connection).await?)
}

#[cfg(test)]
mod tests;

//! What a poll is about, and what it saw: the jobs of one cluster that Slurm has and is not through with.

use domain::{
    ActiveJob, AttemptNo, AttemptPlace, ClusterName, Job, JobId, ObservedChange, StatusFiles, Timestamp,
};
use uuid::Uuid;

use crate::{
    again::again,
    error::StoreError,
    jobs::{
        rows::{self, Cell, select_jobs},
        steps::{Changes, changes},
    },
    polls::turns::PollLease,
    store::Store,
};

impl Store {
    /// What a poll asks about. A row that cannot be read is left out, and said.
    pub async fn active_jobs(&self, cluster: &ClusterName) -> Result<Vec<ActiveJob>, StoreError> {
        let readable = |row: ActiveRow| {
            let id = row.id;
            ActiveJob::try_from(row)
                .inspect_err(|error| {
                    tracing::error!(job.id = %id, error = %error, "a stored job cannot be read; it is left alone");
                })
                .ok()
        };
        // Only a job that runs is asked for signs of life, and a long specification is unpacked to say when.
        let jobs = sqlx::query_as!(
            ActiveRow,
            r#"-- observations::active_jobs
               select j.id, j.version, j.phase, j.desired_state, j.submitted_at, j.kill_reason is not null as "is_doomed!",
                      j.activity is not null as "was_alive!",
                      case when j.phase = 'running' then j.spec ->> 'timeout_minutes' end as timeout_minutes,
                      a.attempt, a.token, a.job_dir, a.slurm_job_id, a.status_files::text as "status_files!"
               from jobs j join slurm_metadata a on a.job_id = j.id and a.attempt = j.attempt
               where j.cluster = $1 and j.phase in ('in_queue', 'running', 'suspended')"#,
            cluster.as_str(),
        )
        .map(readable)
        .fetch_all(&self.pool)
        .await?;
        Ok(jobs.into_iter().flatten().collect())
    }

    /// Those of the jobs that nobody has changed since they were asked about, whole.
    pub async fn jobs_as_asked(&self, asked: &[&ActiveJob]) -> Result<Vec<Job>, StoreError> {
        let (ids, versions): (Vec<Uuid>, Vec<i64>) =
            asked.iter().map(|job| (job.id.get(), job.version)).unzip();
        let rows = select_jobs!(
            "observations::jobs_as_asked",
            "where (j.id, j.version) in (select * from unnest($1::uuid[], $2::bigint[]))",
            &ids,
            &versions,
        )
        .fetch_all(&self.pool)
        .await?;
        Ok(rows::readable(rows).0)
    }

    /// Stores what a poll saw of some jobs, each with whether a step is due now, in one transaction, and keeps the lease.
    ///
    /// A job that somebody else changed in the meantime is left alone: the next poll sees it again. So is one with
    /// something that the database refuses, which must not hold up the others. Returns how many jobs were written.
    pub async fn record_observations(
        &self,
        lease: &PollLease,
        changed: &[ObservedChange],
        now: Timestamp,
    ) -> Result<u64, StoreError> {
        match again(|| self.record_observations_together(lease, changed, now)).await {
            Err(error) if error.is_about_the_data() => {}
            together => return together,
        }
        let mut written = 0;
        for next in changed {
            match again(|| self.record_observations_together(lease, std::slice::from_ref(next), now)).await {
                Ok(one) => written += one,
                Err(error) if error.is_about_the_data() => {
                    tracing::error!(job.id = %next.job.id, error = ?error, "the database refuses a job's new state");
                }
                Err(error) => return Err(error),
            }
        }
        Ok(written)
    }

    async fn record_observations_together(
        &self,
        lease: &PollLease,
        changed: &[ObservedChange],
        now: Timestamp,
    ) -> Result<u64, StoreError> {
        let mut tx = self.pool.begin().await?;
        // Until the end of this transaction nobody else gets the right to poll.
        let ours = sqlx::query_scalar!(
            r#"-- observations::hold_lease
               select true as "ours!" from cluster_polls
               where cluster = $1 and lease_token = $2 and lease_expires_at > now() for share"#,
            lease.cluster.as_str(),
            lease.token(),
        )
        .fetch_optional(&mut *tx)
        .await?;
        if ours.is_none() {
            return Err(lease.lost());
        }
        let written = write(&mut tx, changed, now).await?;
        tx.commit().await?;
        Ok(written)
    }
}

/// As much of a job's row, and of its newest attempt's, as a poll asks by.
struct ActiveRow {
    id: Uuid,
    version: i64,
    phase: String,
    desired_state: String,
    submitted_at: Option<Timestamp>,
    is_doomed: bool,
    was_alive: bool,
    // These as text: what cannot be read must cost its own row, not the whole statement.
    timeout_minutes: Option<String>,
    attempt: i32,
    token: String,
    job_dir: String,
    slurm_job_id: Option<i64>,
    status_files: String,
}

impl TryFrom<ActiveRow> for ActiveJob {
    type Error = StoreError;

    fn try_from(row: ActiveRow) -> Result<Self, StoreError> {
        let job = Cell { table: "jobs", row: row.id };
        let attempt = Cell { table: "slurm_metadata", row: row.id };
        let status: StatusFiles =
            serde_json::from_str(&row.status_files).map_err(|_| attempt.corrupt("status_files"))?;
        Ok(Self {
            id: JobId::new(row.id),
            version: row.version,
            attempt: AttemptPlace {
                no: AttemptNo::new(attempt.number("attempt", row.attempt)?)
                    .ok_or_else(|| attempt.corrupt("attempt"))?,
                token: attempt.parse("token", &row.token)?,
                job_dir: attempt.parse("job_dir", &row.job_dir)?,
                slurm_id: row.slurm_job_id.map(|id| rows::slurm_id(&attempt, id)).transpose()?,
            },
            submitted_at: row.submitted_at,
            cursors: status.cursors(),
            phase: job.parse("phase", &row.phase)?,
            desired: job.parse("desired_state", &row.desired_state)?,
            is_doomed: row.is_doomed,
            was_alive: row.was_alive,
            timeout_minutes: row.timeout_minutes.map(|minutes| job.parse("spec", &minutes)).transpose()?,
        })
    }
}

pub(crate) async fn write(
    connection: &mut sqlx::PgConnection,
    changed: &[ObservedChange],
    now: Timestamp,
) -> Result<u64, StoreError> {
    let due = |next: &ObservedChange| next.step_due.then_some(now);
    let pairs = changed.iter().map(|next| -> (&Job, _) { (&next.job, due(next)) });
    let Changes { jobs, attempts, lines } = changes(pairs)?;
    // Guarded by the version that the poll read, since a step or a caller may have moved the job since.
    let written = sqlx::query_scalar!(
        r#"-- observations::write
           with u as (
               select * from jsonb_to_recordset($1) as u(
                   id uuid, version bigint, status text, phase text, message text, pending_reason text,
                   progress jsonb, activity jsonb, kill_reason text, missing_since timestamptz, finishing_since timestamptz, started_at timestamptz,
                   observed_at timestamptz,
                   source text, due_at timestamptz)
           ), old as (
               select j.id, j.events from jobs j join u on u.id = j.id
               where j.version = u.version and j.phase in ('in_queue', 'running', 'suspended')
               for update of j
           ), lines as (
               select l.* from jsonb_to_recordset($4) as l(
                   job_id uuid, ord bigint, attempt int, kind text, file text, earlier_run boolean, data jsonb)
           ), counted as (
               select job_id, count(*) as lines from lines group by job_id
           ), stored as (
               update jobs j
               set status = u.status, phase = u.phase, message = u.message, pending_reason = u.pending_reason,
                   progress = u.progress, activity = u.activity, kill_reason = u.kill_reason, missing_since = u.missing_since,
                   finishing_since = u.finishing_since, started_at = u.started_at,
                   observed_at = u.observed_at, source = u.source, due_at = case when u.phase = 'finishing' then now()
                                 else coalesce(j.due_at, now() + (u.due_at - $3)) end,
                   events = old.events + coalesce(counted.lines, 0),
                   last_modified = $3, version = j.version + 1, updated_by = 'record_poll'
               from u join old on old.id = u.id left join counted on counted.job_id = u.id
               where j.id = u.id
               returning j.id
           ), said as (
               insert into job_events (job_id, seq, at, kind, attempt, file, earlier_run, data)
               select l.job_id, old.events + l.ord, $3, l.kind, l.attempt, l.file, l.earlier_run, l.data
               from lines l join old on old.id = l.job_id
               where l.job_id in (select id from stored)
               order by l.job_id, l.ord
           ), attempts as (
               update slurm_metadata m
               set slurm_state = a.slurm_state, exit_code = a.exit_code, exit_signal = a.exit_signal,
                   nodes = a.nodes, reason = a.reason, partition = a.partition,
                   status_files = a.status_files, queued_since = a.queued_since,
                   estimated_start = a.estimated_start, started_at = a.started_at,
                   ended_at = a.ended_at, requeues = a.requeues, requeue_unexplained = a.requeue_unexplained
               from jsonb_populate_recordset(null::slurm_metadata, $2) a
               where m.job_id = a.job_id and m.attempt = a.attempt and a.job_id in (select id from stored)
           )
           select count(*) as "count!" from stored"#,
        jobs,
        attempts,
        now,
        lines,
    )
    .fetch_one(connection)
    .await?;
    Ok(u64::try_from(written).unwrap_or(0))
}

#[cfg(test)]
mod tests;

//! Results of steps: one statement for any number of jobs, guarded by the token of the lease.
//!
//! Steps write `jobs` and `slurm_metadata`, and polls write `runs`. A run changes its writer at its end: the poll that sees it
//! sets `over`, and from then on only the step that concludes the run writes it. So no write has to be merged with another.
//! `jobs` also holds the summary of the runs (phase, status, message): a poll rewrites it together with them.

use std::collections::{HashMap, HashSet};

use domain::{JobId, Secrets, Timestamp, Transition};
use uuid::Uuid;

use crate::{
    error::{Result, StoreError},
    jobs::{documents::Documents, leases::Lease},
    statements::{retry_rolled_back, store_all},
    store::{Call, Store},
    values::StoredRow,
};

/// What a step needs, and its result.
pub trait StepRecords {
    /// Opens the secrets of jobs. Jobs that have none, or have ended, are missing from the result. Each job opens or fails on
    /// its own: one that was sealed with a lost key does not hold up the others.
    fn open_secrets(&self, jobs: &[JobId]) -> impl Call<HashMap<JobId, Result<Secrets>>>;

    /// Stores intents before they are carried out, and keeps the lease. Returns the jobs that were stored; the worker has lost
    /// the lease on the others.
    fn record_intents(
        &self,
        lease: &Lease,
        steps: &[Transition],
        now: Timestamp,
    ) -> impl Call<HashSet<JobId>>;

    /// Stores the batch scripts of attempts, as they were submitted. An attempt without one has that of the attempt before it.
    fn record_scripts(&self, scripts: &[(JobId, u32, Option<String>)]) -> impl Call<()>;

    /// Stores results and returns the lease on their jobs. Returns the jobs that were stored; a result without its lease is
    /// dropped.
    fn record_steps(&self, lease: &Lease, steps: &[Transition], now: Timestamp) -> impl Call<HashSet<JobId>>;
}

impl StepRecords for Store {
    async fn open_secrets(&self, jobs: &[JobId]) -> Result<HashMap<JobId, Result<Secrets>>> {
        let ids: Vec<_> = jobs.iter().map(|id| id.get()).collect();
        let rows = sqlx::query!(
            r#"-- jobs::steps::open_secrets
               select id, secrets as "secrets!" from jobs where id = any($1) and secrets is not null"#,
            &ids
        )
        .fetch_all(&self.pool)
        .await?;
        let open = |id: Uuid, sealed: &[u8]| {
            let corrupt = || StoredRow::of("jobs", &id).corrupt("secrets");
            let plain = self.sealer.open(sealed, id.as_bytes()).ok_or_else(corrupt)?;
            Secrets::from_plain(&plain).map_err(|_| corrupt())
        };
        Ok(rows.into_iter().map(|row| (JobId::new(row.id), open(row.id, &row.secrets))).collect())
    }

    async fn record_intents(
        &self,
        lease: &Lease,
        steps: &[Transition],
        now: Timestamp,
    ) -> Result<HashSet<JobId>> {
        self.record(lease, steps, false, now).await
    }

    async fn record_scripts(&self, scripts: &[(JobId, u32, Option<String>)]) -> Result<()> {
        let ids: Vec<_> = scripts.iter().map(|(id, ..)| id.get()).collect();
        let numbers: Vec<_> =
            scripts.iter().map(|(_, no, _)| i32::try_from(*no).unwrap_or(i32::MAX)).collect();
        let texts: Vec<_> = scripts.iter().map(|(.., text)| text.clone()).collect();
        self.run(sqlx::query!(
            "-- jobs::steps::record_scripts
             update slurm_metadata a
             set script = coalesce(u.script, (select b.script from slurm_metadata b
                                              where b.job_id = a.job_id and b.attempt < a.attempt
                                                and b.script is not null
                                              order by b.attempt desc
                                              limit 1))
             from unnest($1::uuid[], $2::int[], $3::text[]) as u(job_id, attempt, script)
             where a.job_id = u.job_id and a.attempt = u.attempt",
            &ids,
            &numbers,
            &texts as &[Option<String>],
        ))
        .await
    }

    async fn record_steps(
        &self,
        lease: &Lease,
        steps: &[Transition],
        now: Timestamp,
    ) -> Result<HashSet<JobId>> {
        self.record(lease, steps, true, now).await
    }
}

impl Store {
    async fn record(
        &self,
        lease: &Lease,
        steps: &[Transition],
        release: bool,
        now: Timestamp,
    ) -> Result<HashSet<JobId>> {
        let record = |steps| async move {
            let mut connection = self.pool.acquire().await?;
            self.record_together(&mut connection, lease, steps, release, now).await
        };
        let stored = if steps.len() > 1 {
            let refused = |step: &Transition, error: &StoreError| {
                tracing::error!(job.id = %step.job.id, error = ?error, "the database refuses a job's new state");
            };
            store_all(steps, record, refused).await?
        } else {
            retry_rolled_back(|| record(steps)).await?
        };
        Ok(stored.into_iter().map(JobId::new).collect())
    }

    #[expect(clippy::too_many_lines, reason = "one statement: all of it happens, or nothing")]
    pub(crate) async fn record_together(
        &self,
        connection: &mut sqlx::PgConnection,
        lease: &Lease,
        steps: &[Transition],
        release: bool,
        now: Timestamp,
    ) -> Result<Vec<Uuid>> {
        if steps.is_empty() {
            return Ok(Vec::new());
        }
        let Documents { jobs, attempts, runs, lines } =
            Documents::of(steps.iter().map(|step| (&step.job, step.due_at)));
        // The owner may have changed the desired state during the step: it is kept, and the job is due at once. Due times are
        // relative to the server clock, whatever the worker's clock says. A step adds the run of its new attempt, and writes
        // one that is over; polls own all others.
        let stored = sqlx::query_scalar!(
            r#"-- jobs::steps::record_together
               with u as (
                   select * from jsonb_populate_recordset(null::jobs, $1)
               ), old as (
                   select j.id, j.phase, j.events from jobs j join u on u.id = j.id
                   where j.lease_token = $3 and j.lease_expires_at > now()
                     -- A step that leaves the job in the queue must not overwrite what a poll has seen since.
                     and not (j.array_state is null and u.phase = 'in_queue' and j.version <> u.version
                              and j.phase in ('in_queue', 'running', 'suspended', 'finishing'))
                     -- A job that it needs may have been retried since.
                     and not (u.phase = 'ended' and (u.skipped or coalesce(u.array_state ->> 'skipped', '') <> '') and j.version <> u.version)
                   for update of j
               ), lines as (
                   select l.* from jsonb_populate_recordset(null::job_events, $6) l
                   join old on old.id = l.job_id and old.phase = 'finishing'
               ), counted as (
                   select job_id, count(*) as lines from lines group by job_id
               ), stored as (
                   update jobs j
                   set status = case when j.desired_state <> u.desired_state and u.phase <> 'ended'
                                     then case j.desired_state when 'cancel' then 'Canceling' when 'pause' then 'Pausing' else u.status end
                                     else u.status end,
                       phase = u.phase, message = u.message, pending_reason = u.pending_reason, attempt = u.attempt,
                       retry_count = u.retry_count, failures = u.failures, skipped = u.skipped,
                       finishing_since = u.finishing_since,
                       submitted_at = u.submitted_at, started_at = u.started_at, finished_at = u.finished_at,
                       observed_at = u.observed_at, source = u.source, array_state = u.array_state,
                       due_at = case when u.phase = 'ended' then null
                                     -- A poll has seen news of its tasks since, or a job that it needs has begun or ended.
                                     when (j.array_state is not null or u.phase = 'waiting') and j.version <> u.version then now()
                                     when j.desired_state <> u.desired_state then now() else now() + (u.due_at - $5) end,
                       secrets = case when u.phase = 'ended' then null else j.secrets end,
                       lease_token = case when $4 then null else j.lease_token end,
                       lease_expires_at = case when $4 then null else j.lease_expires_at end,
                       lease_attempts = case when $4 then 0 else j.lease_attempts end,
                       events = old.events + coalesce(counted.lines, 0),
                       last_modified = $5, version = j.version + 1, updated_by = 'record_steps'
                   from u join old on old.id = u.id left join counted on counted.job_id = u.id
                   where j.id = u.id
                   returning j.id
               ), added_events as (
                   insert into job_events (job_id, seq, at, kind, attempt, file, earlier_run, data)
                   select l.job_id, old.events + l.seq, $5, l.kind, l.attempt, l.file, l.earlier_run, l.data
                   from lines l join old on old.id = l.job_id
                   where l.job_id in (select id from stored)
                   order by l.job_id, l.seq
               ), attempts as (
                   insert into slurm_metadata (
                       job_id, attempt, token, job_dir, tasks, base, slurm_job_id, script, intended_at, submit_fence,
                       submit_fence_cleared, submit_fence_shut_at, submitted_at, failed_submissions, absent_at,
                       excluded_nodes, explained_requeues, ahead_closed, concluded_at, outcome, why, rule, matched_line, images)
                   select a.job_id, a.attempt, a.token, a.job_dir, a.tasks, a.base, a.slurm_job_id, a.script, a.intended_at,
                          a.submit_fence, a.submit_fence_cleared, a.submit_fence_shut_at, a.submitted_at,
                          a.failed_submissions, a.absent_at, coalesce(a.excluded_nodes, '{}'), a.explained_requeues, a.ahead_closed,
                          a.concluded_at, a.outcome, a.why, a.rule, a.matched_line, a.images
                   from jsonb_populate_recordset(null::slurm_metadata, $2) a
                   where a.job_id in (select id from stored)
                   on conflict (job_id, attempt) do update
                   set slurm_job_id = excluded.slurm_job_id,
                       submit_fence = excluded.submit_fence, submit_fence_cleared = excluded.submit_fence_cleared,
                       submit_fence_shut_at = excluded.submit_fence_shut_at,
                       submitted_at = excluded.submitted_at,
                       failed_submissions = excluded.failed_submissions, absent_at = excluded.absent_at, excluded_nodes = excluded.excluded_nodes,
                       explained_requeues = excluded.explained_requeues, ahead_closed = excluded.ahead_closed,
                       concluded_at = excluded.concluded_at, outcome = excluded.outcome, why = excluded.why,
                       rule = excluded.rule, matched_line = excluded.matched_line,
                       images = excluded.images
               ), runs as (
                   insert into runs as known
                   select r.* from jsonb_populate_recordset(null::runs, $7) r
                   where r.job_id in (select id from stored)
                   on conflict (job_id, attempt, task) do update
                   set (slurm_state, exit_code, exit_signal, nodes, reason, partition, status_files, progress, activity,
                        kill_reason, queued_since, estimated_start, started_at, ended_at, missing_since, requeues,
                        waits_again, source, over, usage, results, failure) =
                       (excluded.slurm_state, excluded.exit_code, excluded.exit_signal, excluded.nodes, excluded.reason,
                        excluded.partition, excluded.status_files, excluded.progress, excluded.activity,
                        excluded.kill_reason, excluded.queued_since, excluded.estimated_start, excluded.started_at,
                        excluded.ended_at, excluded.missing_since, excluded.requeues, excluded.waits_again,
                        excluded.source, excluded.over, excluded.usage, coalesce(excluded.results, known.results), coalesce(excluded.failure, known.failure))
                   where known.over
               ), unseen as (
                   -- The attempt goes on with its other Slurm job, which no poll has seen: what is stored is of the first one.
                   delete from runs r using jsonb_populate_recordset(null::slurm_metadata, $2) a join u on u.id = a.job_id
                   where r.job_id = a.job_id and r.attempt = a.attempt and r.task = 0 and r.over and u.array_state is null
                     and r.job_id in (select id from stored)
                     and not exists (select from jsonb_populate_recordset(null::runs, $7) n where n.job_id = a.job_id and n.attempt = a.attempt)
               )
               select id as "id!" from stored"#,
            jobs,
            attempts,
            lease.token,
            release,
            now,
            lines,
            runs,
        );
        Ok(stored.fetch_all(connection).await?)
    }
}

//! The results of steps: one statement for any number of jobs, guarded by the lease's token.

use std::{collections::HashSet, time::Duration};

use domain::{Job, JobId, Timestamp};
use serde_json::Value;

use crate::{
    again::again,
    error::StoreError,
    jobs::{
        changes::{AttemptChange, JobChange, LineChange},
        leases::{Lease, millis},
    },
    store::Store,
};

/// A job after a step.
#[derive(Debug)]
pub struct StepRecord {
    pub job: Job,
    /// When it is due again; none when only a poll moves it.
    pub due_at: Option<Timestamp>,
}

impl Store {
    /// Stores intents before they are carried out; the lease is kept. Returns the jobs that were stored: those
    /// missing are no longer ours to act on.
    pub async fn record_intents(
        &self,
        lease: &Lease,
        steps: &[StepRecord],
        now: Timestamp,
    ) -> Result<HashSet<JobId>, StoreError> {
        self.record(lease, steps, false, now).await
    }

    /// Stores results and gives the lease on their jobs back. Returns the jobs that were stored: a result whose
    /// lease was lost is dropped.
    pub async fn record_steps(
        &self,
        lease: &Lease,
        steps: &[StepRecord],
        now: Timestamp,
    ) -> Result<HashSet<JobId>, StoreError> {
        self.record(lease, steps, true, now).await
    }

    async fn record(
        &self,
        lease: &Lease,
        steps: &[StepRecord],
        release: bool,
        now: Timestamp,
    ) -> Result<HashSet<JobId>, StoreError> {
        match again(|| self.record_together(lease, steps, release, now)).await {
            Err(error) if error.is_about_the_data() && steps.len() > 1 => {}
            together => return together,
        }
        // One job has something that the database refuses: the others must not wait for it.
        let mut stored = HashSet::new();
        for step in steps {
            match again(|| self.record_together(lease, std::slice::from_ref(step), release, now)).await {
                Ok(ids) => stored.extend(ids),
                Err(error) if error.is_about_the_data() => {
                    tracing::error!(job.id = %step.job.id, error = ?error, "the database refuses a job's new state");
                }
                Err(error) => return Err(error),
            }
        }
        Ok(stored)
    }

    async fn record_together(
        &self,
        lease: &Lease,
        steps: &[StepRecord],
        release: bool,
        now: Timestamp,
    ) -> Result<HashSet<JobId>, StoreError> {
        if steps.is_empty() {
            return Ok(HashSet::new());
        }
        let Changes { jobs, attempts, lines } = changes(steps.iter().map(|step| (&step.job, step.due_at)))?;
        // A wish to cancel may have come in while the step was under way: it is kept, and carried out at once.
        // What is due is counted from the database's clock, whatever the worker's says. While Slurm has the job, its
        // progress and status files are the poll's: only a step that concludes it moves the cursors and adds what it read.
        let stored = sqlx::query_scalar!(
            r#"-- record::record
               with u as (
                   select * from jsonb_to_recordset($1) as u(
                       id uuid, version bigint, desired_state text, status text, phase text, message text, pending_reason text,
                       attempt int, retry_count int, failures jsonb, progress jsonb, activity jsonb, kill_reason text, missing_since timestamptz, finishing_since timestamptz,
                       submitted_at timestamptz, started_at timestamptz, finished_at timestamptz,
                       observed_at timestamptz, source text, due_at timestamptz)
               ), old as (
                   select j.id, j.phase, j.events from jobs j join u on u.id = j.id
                   where j.lease_token = $3 and j.lease_expires_at > now()
                     -- What leaves the job in the queue has to know what a poll has seen of it meanwhile.
                     and not (u.phase = 'in_queue' and j.version <> u.version
                              and j.phase in ('in_queue', 'running', 'suspended', 'finishing'))
                   for update of j
               ), lines as (
                   select l.* from jsonb_to_recordset($6) as l(
                       job_id uuid, ord bigint, attempt int, kind text, file text, earlier_run boolean, data jsonb)
                   join old on old.id = l.job_id and old.phase = 'finishing'
               ), counted as (
                   select job_id, count(*) as lines from lines group by job_id
               ), stored as (
                   update jobs j
                   set status = case when j.desired_state <> u.desired_state and u.phase <> 'ended'
                                     then case j.desired_state when 'cancel' then 'Canceling' when 'pause' then 'Pausing' else u.status end
                                     else u.status end,
                       phase = u.phase, message = u.message, pending_reason = u.pending_reason, attempt = u.attempt,
                       retry_count = u.retry_count, failures = u.failures, missing_since = u.missing_since,
                       progress = case when old.phase in ('in_queue', 'running', 'suspended') and j.attempt = u.attempt
                                       then j.progress else u.progress end,
                       activity = case when old.phase in ('in_queue', 'running', 'suspended') and j.attempt = u.attempt
                                       then j.activity else u.activity end,
                       kill_reason = case when old.phase in ('in_queue', 'running', 'suspended') and j.attempt = u.attempt
                                       then j.kill_reason else u.kill_reason end,
                       finishing_since = u.finishing_since,
                       submitted_at = u.submitted_at, started_at = u.started_at, finished_at = u.finished_at,
                       observed_at = u.observed_at, source = u.source,
                       due_at = case when u.phase = 'ended' then null
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
               ), said as (
                   insert into job_events (job_id, seq, at, kind, attempt, file, earlier_run, data)
                   select l.job_id, old.events + l.ord, $5, l.kind, l.attempt, l.file, l.earlier_run, l.data
                   from lines l join old on old.id = l.job_id
                   where l.job_id in (select id from stored)
                   order by l.job_id, l.ord
               ), attempts as (
                   insert into slurm_metadata (
                       job_id, attempt, token, job_dir, slurm_job_id, slurm_state, exit_code, exit_signal, nodes, reason,
                       partition, script, status_files, intended_at, submit_fence, submit_fence_cleared, submit_fence_shut_at, submitted_at,
                       queued_since, estimated_start, started_at, ended_at, setbacks, absent_at, excluded_nodes, requeues, requeue_unexplained, concluded_at, outcome, why,
                       rule, matched_line, image, image_note)
                   select a.job_id, a.attempt, a.token, a.job_dir, a.slurm_job_id, a.slurm_state, a.exit_code, a.exit_signal,
                          a.nodes, a.reason, a.partition, a.script, a.status_files,
                          a.intended_at, a.submit_fence, a.submit_fence_cleared, a.submit_fence_shut_at, a.submitted_at,
                          a.queued_since, a.estimated_start, a.started_at, a.ended_at, a.setbacks, a.absent_at,
                          coalesce(a.excluded_nodes, '{}'), a.requeues, a.requeue_unexplained, a.concluded_at,
                          a.outcome, a.why, a.rule, a.matched_line, a.image, a.image_note
                   from jsonb_populate_recordset(null::slurm_metadata, $2) a
                   where a.job_id in (select id from stored)
                   on conflict (job_id, attempt) do update
                   set slurm_job_id = excluded.slurm_job_id, slurm_state = excluded.slurm_state,
                       exit_code = excluded.exit_code, exit_signal = excluded.exit_signal, nodes = excluded.nodes,
                       reason = excluded.reason, partition = excluded.partition,
                       status_files = case when (select phase from old where id = excluded.job_id) = 'finishing'
                                           then excluded.status_files else slurm_metadata.status_files end, submit_fence = excluded.submit_fence,
                       submit_fence_cleared = excluded.submit_fence_cleared, submit_fence_shut_at = excluded.submit_fence_shut_at,
                       submitted_at = excluded.submitted_at, queued_since = excluded.queued_since,
                       estimated_start = excluded.estimated_start, started_at = excluded.started_at, ended_at = excluded.ended_at,
                       setbacks = excluded.setbacks, absent_at = excluded.absent_at, excluded_nodes = excluded.excluded_nodes,
                       requeues = excluded.requeues, requeue_unexplained = excluded.requeue_unexplained,
                       concluded_at = excluded.concluded_at, outcome = excluded.outcome, why = excluded.why,
                       rule = excluded.rule, matched_line = excluded.matched_line,
                       image = excluded.image, image_note = excluded.image_note
               )
               select id as "id!" from stored"#,
            jobs,
            attempts,
            lease.token,
            release,
            now,
            lines,
        )
        .fetch_all(&self.pool)
        .await?;
        Ok(stored.into_iter().map(JobId::new).collect())
    }

    /// Gives the lease on jobs back without a new state: they are due again `again_in` from now, or not at all
    /// until something else makes them so. Nothing else of a job is touched, because a poll may be writing it.
    pub async fn put_off(
        &self,
        lease: &Lease,
        jobs: &[Job],
        again_in: Option<Duration>,
    ) -> Result<(), StoreError> {
        if jobs.is_empty() {
            return Ok(());
        }
        let ids: Vec<_> = jobs.iter().map(|job| job.id.get()).collect();
        let versions: Vec<_> = jobs.iter().map(|job| job.version).collect();
        let desired: Vec<_> = jobs.iter().map(|job| job.desired.to_string()).collect();
        sqlx::query!(
            "-- record::put_off
             update jobs j
             set due_at = case when j.phase = 'finishing' then now() when j.phase = 'ended' and j.desired_state <> 'delete' then null
                               -- A wish came in, or a poll asks for a step: nobody would wake the job again.
                               when j.desired_state <> u.desired_state or ($3::float8 is null and j.version <> u.version) then now()
                               else now() + $3 * interval '1 millisecond' end,
                 lease_token = null, lease_expires_at = null, lease_attempts = 0, updated_by = 'put_off'
             from unnest($1::uuid[], $4::bigint[], $5::text[]) as u(id, version, desired_state)
             where j.id = u.id and j.lease_token = $2 and j.lease_expires_at > now()",
            &ids,
            lease.token,
            again_in.map(millis),
            &versions,
            &desired,
        )
        .execute(&self.pool)
        .await?;
        Ok(())
    }

    /// Keeps the batch script of an attempt, as it was submitted.
    pub async fn record_scripts(&self, scripts: &[(JobId, u32, String)]) -> Result<(), StoreError> {
        let ids: Vec<_> = scripts.iter().map(|(id, ..)| id.get()).collect();
        let numbers: Vec<_> =
            scripts.iter().map(|(_, no, _)| i32::try_from(*no).unwrap_or(i32::MAX)).collect();
        let texts: Vec<_> = scripts.iter().map(|(.., text)| text.clone()).collect();
        sqlx::query!(
            "-- record::record_scripts
             update slurm_metadata a set script = u.script
             from unnest($1::uuid[], $2::int[], $3::text[]) as u(job_id, attempt, script)
             where a.job_id = u.job_id and a.attempt = u.attempt",
            &ids,
            &numbers,
            &texts,
        )
        .execute(&self.pool)
        .await?;
        Ok(())
    }
}

/// The documents that the statements read.
pub(crate) struct Changes {
    pub(crate) jobs: Value,
    /// Those attempts that there are.
    pub(crate) attempts: Value,
    /// What was read in their status files.
    pub(crate) lines: Value,
}

pub(crate) fn changes<'a>(
    jobs: impl Iterator<Item = (&'a Job, Option<Timestamp>)> + Clone,
) -> Result<Changes, StoreError> {
    let changed: Vec<_> = jobs.clone().map(|(job, due_at)| JobChange::new(job, due_at)).collect();
    let attempts: Vec<_> = jobs
        .clone()
        .filter_map(|(job, _)| job.attempt.as_ref().map(|attempt| AttemptChange::new(job.id, attempt)))
        .collect();
    let lines: Vec<_> = jobs.flat_map(|(job, _)| LineChange::all_of(job)).collect();
    let json =
        |value: serde_json::Result<Value>| value.map_err(|_| StoreError::Unstorable("a job is no JSON"));
    Ok(Changes {
        jobs: json(serde_json::to_value(changed))?,
        attempts: json(serde_json::to_value(attempts))?,
        lines: json(serde_json::to_value(lines))?,
    })
}

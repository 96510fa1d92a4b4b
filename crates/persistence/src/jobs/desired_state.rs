//! Changes of the desired state: cancel, pause, resume, retry or delete a stored job.
//!
//! A request is stored and the workers are woken; it does not wait for a cluster. Each statement changes the job only in a
//! state in which the request is possible. The caller gets the job as it is afterwards.

use domain::{ArrayState, Job, JobId, Phase, Secrets, Timestamp};
use slurm::TaskSet;

use crate::{
    callers::idempotency::Once,
    error::Result,
    jobs::{lane::Lane, needs, queries::Viewer},
    listen,
    statements::retry_rolled_back,
    store::Store,
    values::{StoredRow, to_json},
};

/// The status of the response to an accepted request.
const ACCEPTED: i16 = 202;

/// What a retry begins with.
#[derive(Debug)]
pub struct Retry<'a> {
    /// The job's own were erased when it ended.
    pub secrets: &'a Secrets,
    /// Names its cluster if the cluster is in the database; the request is not possible if that cluster was deleted.
    pub incarnation: Option<i64>,
    /// Of a job with an array: its state, with the tasks that go again as not submitted.
    pub array: Option<&'a ArrayState>,
}

/// The result of a request.
#[derive(Debug)]
pub enum Requested {
    /// It is stored and will be carried out.
    Taken(Job),
    /// It is not possible in the current state of the job; nothing changed.
    Stays(Job),
    /// The viewer has no such job.
    NoJob,
}

/// Stores a request about job `$id` of `$viewer`: the columns to set, and the state of the job in which the request is
/// possible. In both, `$3` is the time, and further arguments begin with `$4`. `$also` is what is stored with it.
///
/// With an idempotency key in `$once`, the request and the key are stored together or not at all.
///
/// A macro, because the checked SQL macros take literals only.
macro_rules! store_request {
    ($store:expr, $once:expr, $name:literal, $set:literal, $when:literal, $also:literal, $id:expr, $viewer:expr, $now:expr $(, $arg:expr)*) => {
        retry_rolled_back(|| async {
            let mut tx = $store.begin().await?;
            let due = sqlx::query!(
                "-- jobs::desired_state::" + $name + "
                 with recursive taken as (
                     update jobs
                     set " + $set + ",
                         due_at = now(), last_modified = $3, version = version + 1, updated_by = '" + $name + "'
                     where id = $1 and ($2::text is null or owner = $2) and " + $when + "
                     returning id, cluster, phase
                 )" + $also + "
                 select cluster, phase from taken",
                $id.get(),
                $viewer.owner(),
                $now
                $(, $arg)*
            )
            .fetch_optional(&mut *tx)
            .await?
            .map(|row| (row.cluster, row.phase));
            $store.requested(tx, due, $id, $viewer, $once).await
        })
        .await
    };
}

impl Store {
    /// Requests to cancel a job. Nothing changes if the job has ended.
    pub async fn request_cancel(&self, id: JobId, viewer: &Viewer, now: Timestamp) -> Result<Requested> {
        store_request!(
            self,
            None,
            "request_cancel",
            "desired_state = 'cancel', status = 'Canceling', message = 'Canceling.'",
            "phase <> 'ended' and desired_state in ('run', 'pause')",
            "",
            id,
            viewer,
            now
        )
    }

    /// Requests to take a job off the cluster and keep it. Possible only while its desired state is to run.
    pub async fn request_pause(&self, id: JobId, viewer: &Viewer, now: Timestamp) -> Result<Requested> {
        store_request!(
            self,
            None,
            "request_pause",
            "desired_state = 'pause', status = 'Pausing', message = 'Pausing.'",
            "phase <> 'ended' and desired_state = 'run'",
            "",
            id,
            viewer,
            now
        )
    }

    /// Requests to submit a paused job again, under the same id.
    pub async fn request_resume(
        &self,
        id: JobId,
        viewer: &Viewer,
        once: Option<&Once>,
        now: Timestamp,
    ) -> Result<Requested> {
        store_request!(
            self,
            once,
            "request_resume",
            "desired_state = 'run', status = 'Resuming',
                 phase = case when exists (select from needs n where n.job_id = jobs.id and not n.met) then 'waiting' else 'queued' end,
                 message = 'Resuming; waiting to be submitted.'",
            "phase = 'paused' and desired_state = 'pause'",
            "",
            id,
            viewer,
            now
        )
    }

    /// Requests to cancel tasks of a job with an array. Nothing changes if the job has ended.
    pub async fn request_cancel_tasks(
        &self,
        id: JobId,
        viewer: &Viewer,
        tasks: &TaskSet,
        now: Timestamp,
    ) -> Result<Requested> {
        let mut tx = self.begin().await?;
        let known = sqlx::query_scalar!(
            "-- jobs::desired_state::request_cancel_tasks known
             select canceled_tasks from jobs
             where id = $1 and ($2::text is null or owner = $2) and phase <> 'ended' and array_state is not null
             for update",
            id.get(),
            viewer.owner(),
        )
        .fetch_optional(&mut *tx)
        .await?;
        let Some(known) = known else { return self.requested(tx, None, id, viewer, None).await };
        let known: TaskSet = StoredRow::of("jobs", &id).parse("canceled_tasks", &known)?;
        let due = sqlx::query!(
            "-- jobs::desired_state::request_cancel_tasks
             update jobs
             set canceled_tasks = $2, due_at = now(), last_modified = $3, version = version + 1,
                 updated_by = 'request_cancel_tasks'
             where id = $1
             returning cluster, phase",
            id.get(),
            known.union(tasks).to_string(),
            now,
        )
        .fetch_one(&mut *tx)
        .await?;
        self.requested(tx, Some((due.cluster, due.phase)), id, viewer, None).await
    }

    /// Requests to submit a failed or canceled job again, under the same id and with a new budget of retries.
    pub async fn request_retry(
        &self,
        id: JobId,
        viewer: &Viewer,
        retry: &Retry<'_>,
        once: Option<&Once>,
        now: Timestamp,
    ) -> Result<Requested> {
        let sealed = self.seal_secrets(id, retry.secrets)?;
        let state = retry.array.map(|array| to_json("the state of an array", array)).transpose()?;
        let withdrawn = retry.array.map(|array| array.withdrawn.to_string());
        let again = retry.array.iter().flat_map(|array| array.open().iter().collect::<Vec<_>>());
        let again: Vec<i32> = again.filter_map(|task| i32::try_from(task).ok()).collect();
        store_request!(
            self,
            once,
            "request_retry",
            "desired_state = 'run', status = 'Pending',
                 phase = case when exists (select from needs n where n.job_id = jobs.id and not n.met) then 'waiting' else 'queued' end,
                 message = 'Retrying; waiting to be submitted.',
                 retry_count = 0, failures = '[]', skipped = false, pending_reason = null, submitted_at = null,
                 started_at = null, finished_at = null, secrets = $4, array_state = coalesce($6, array_state),
                 canceled_tasks = coalesce($7, canceled_tasks)",
            "phase = 'ended' and status in ('Error', 'Canceled') and desired_state <> 'delete'
               and ($5::bigint is null
                    or exists (select from clusters c where c.name = jobs.cluster and c.incarnation = $5 for share))",
            ", superseded as (
                 update runs r set superseded = true from taken where r.job_id = taken.id and r.task = any($8::int[])
             ), stopped as (
                 -- Jobs that were canceled because this one had failed, or have tasks that were, and those that were because of them. Their
                 -- secrets were erased, so those that have some stay.
                 select n.job_id from taken t join needs n on n.needed = t.id join jobs d on d.id = n.job_id
                 where d.phase = 'ended' and (d.skipped or d.array_state ->> 'skipped' <> '') and d.desired_state = 'run'
                   and d.spec->'secret_env' = '[]' and coalesce(d.spec->'cloud_secret_keys', '[]') = '[]'
                   and not jsonb_path_exists(d.spec, '$.work.list[*].secret_env[*]')
                 union
                 select n.job_id from stopped s join needs n on n.needed = s.job_id join jobs d on d.id = n.job_id
                 where d.phase = 'ended' and (d.skipped or d.array_state ->> 'skipped' <> '') and d.desired_state = 'run'
                   and d.spec->'secret_env' = '[]' and coalesce(d.spec->'cloud_secret_keys', '[]') = '[]'
                   and not jsonb_path_exists(d.spec, '$.work.list[*].secret_env[*]')
             ), reopened as (
                 update jobs d
                 set status = 'Pending', phase = 'waiting', skipped = false, message = 'Waiting again for the jobs that it needs.', finished_at = null,
                     due_at = now(), last_modified = $3, version = d.version + 1, updated_by = 'request_retry'
                 from stopped where d.id = stopped.job_id
             )",
            id,
            viewer,
            now,
            sealed,
            retry.incarnation,
            state,
            withdrawn,
            &again
        )
    }

    /// Deletes a job that has ended. With `artifacts`, its files on the cluster are removed first; the job is invisible until
    /// then. A job that another one needs stays until that has ended. `incarnation` names its cluster if the cluster is in the database; with `artifacts`, the request is not possible
    /// if that cluster was deleted.
    pub async fn request_delete(
        &self,
        id: JobId,
        viewer: &Viewer,
        artifacts: bool,
        incarnation: Option<i64>,
        now: Timestamp,
    ) -> Result<Requested> {
        let Some(job) = self.find_job(id, viewer).await? else { return Ok(Requested::NoJob) };
        let mut tx = self.begin().await?;
        // With the lock no job can be added that needs this one; those that were added before are visible to the next statement.
        sqlx::query!(
            "-- jobs::desired_state::request_delete hold
             select id from jobs where id = $1 for update",
            id.get()
        )
        .fetch_optional(&mut *tx)
        .await?;
        if needs::needed_by(&mut *tx, id).await?.is_some() {
            return Ok(Requested::Stays(job));
        }
        // The lock on the cluster keeps it from being deleted before the pending removal is visible.
        let cluster = if artifacts {
            sqlx::query_scalar!(
                "-- jobs::desired_state::request_delete with artifacts
                 update jobs
                 set desired_state = 'delete', due_at = now(), last_modified = $2, version = version + 1,
                     updated_by = 'request_delete'
                 where id = $1 and phase = 'ended' and desired_state <> 'delete'
                   and ($3::bigint is null
                        or exists (select from clusters c where c.name = jobs.cluster and c.incarnation = $3 for share))
                 returning cluster",
                id.get(),
                now,
                incarnation,
            )
            .fetch_optional(&mut *tx)
            .await?
        } else {
            sqlx::query_scalar!(
                "-- jobs::desired_state::request_delete
                 delete from jobs where id = $1 and phase = 'ended' and desired_state <> 'delete' returning cluster",
                id.get(),
            )
            .fetch_optional(&mut *tx)
            .await?
        };
        let Some(cluster) = cluster else {
            tx.rollback().await?;
            return Ok(match self.find_job(id, viewer).await? {
                // Another request was faster, or the cluster was deleted.
                Some(newer) if job.phase == Phase::Ended => Requested::Stays(newer),
                Some(_) => Requested::Stays(job),
                None => Requested::NoJob,
            });
        };
        if let Ok(cluster) = cluster.parse() {
            listen::wake(&mut tx, &cluster, Some(Lane::of(Phase::Ended))).await?;
        }
        tx.commit().await?;
        Ok(Requested::Taken(job))
    }

    async fn requested(
        &self,
        mut tx: sqlx::Transaction<'_, sqlx::Postgres>,
        due: Option<(String, String)>,
        id: JobId,
        viewer: &Viewer,
        once: Option<&Once>,
    ) -> Result<Requested> {
        let taken = due.is_some();
        if let (true, Some(once)) = (taken, once)
            && !self.keep_answer(&mut tx, once, id, ACCEPTED).await?
        {
            // Another request has used the key in the meantime.
            tx.rollback().await?;
            let found = self.find_job(id, viewer).await?;
            return Ok(found.map_or(Requested::NoJob, Requested::Stays));
        }
        if let Some((cluster, phase)) = due
            && let Ok(cluster) = cluster.parse()
        {
            listen::wake(&mut tx, &cluster, phase.parse().ok().map(Lane::of)).await?;
        }
        tx.commit().await?;
        Ok(match self.find_job(id, viewer).await? {
            Some(job) if taken => Requested::Taken(job),
            Some(job) => Requested::Stays(job),
            None => Requested::NoJob,
        })
    }
}

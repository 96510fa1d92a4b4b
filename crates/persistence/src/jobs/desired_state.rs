//! What callers want of jobs that are there: to cancel, pause, resume, send again or delete them.
//!
//! A wish is stored and the workers are woken; nothing here waits for a cluster. Each statement changes the job only
//! in a state in which the wish makes sense, and the job is returned as it is afterwards: the caller tells by it
//! whether the wish was taken.

use domain::{Job, JobId, Phase, Secrets, Timestamp};

use crate::{
    callers::idempotency::Once,
    error::StoreError,
    jobs::{leases::Lane, stored::Viewer},
    listen,
    store::Store,
};

/// The status of the answer to a wish that is taken.
const ACCEPTED: i16 = 202;

/// What became of a wish.
#[derive(Debug)]
pub enum Requested {
    /// It will be carried out.
    Taken(Job),
    /// It makes no sense in the state in which the job is, and nothing was changed.
    Stays(Job),
    /// There is no such job, for this viewer.
    NoJob,
}

/// Notes a wish about job `$id` of `$viewer`: what is set, and in which state of the job the wish makes sense. In both, `$3`
/// is the time, and what more is given begins with `$4`.
///
/// With a key in `$once`, the wish is stored together with it, or not at all.
///
/// A macro because the checked SQL macros take literals only.
macro_rules! note_wish {
    ($store:expr, $once:expr, $name:literal, $set:literal, $when:literal, $id:expr, $viewer:expr, $now:expr $(, $arg:expr)*) => {{
        let mut tx = $store.pool.begin().await?;
        let due = sqlx::query!(
            "-- wishes::" + $name + "
             update jobs
             set " + $set + ",
                 due_at = now(), last_modified = $3, version = version + 1, updated_by = '" + $name + "'
             where id = $1 and ($2::text is null or owner = $2) and " + $when + "
             returning cluster, phase",
            $id.get(),
            $viewer.owner(),
            $now
            $(, $arg)*
        )
        .fetch_optional(&mut *tx)
        .await?
        .map(|row| (row.cluster, row.phase));
        $store.granted(tx, due, $id, $viewer, $once).await
    }};
}

impl Store {
    /// Notes the wish to cancel. A job that has ended stays as it is.
    pub async fn request_cancel(
        &self,
        id: JobId,
        viewer: &Viewer,
        now: Timestamp,
    ) -> Result<Requested, StoreError> {
        note_wish!(
            self,
            None,
            "request_cancel",
            "desired_state = 'cancel', status = 'Canceling', message = 'Canceling.'",
            "phase <> 'ended' and desired_state in ('run', 'pause')",
            id,
            viewer,
            now
        )
    }

    /// Notes the wish to take a job off the cluster and keep it. Only a job that is to run can be paused.
    pub async fn request_pause(
        &self,
        id: JobId,
        viewer: &Viewer,
        now: Timestamp,
    ) -> Result<Requested, StoreError> {
        note_wish!(
            self,
            None,
            "request_pause",
            "desired_state = 'pause', status = 'Pausing', message = 'Pausing.'",
            "phase <> 'ended' and desired_state = 'run'",
            id,
            viewer,
            now
        )
    }

    /// Sends a job that is at rest to the cluster again, under the same id.
    pub async fn request_resume(
        &self,
        id: JobId,
        viewer: &Viewer,
        once: Option<&Once>,
        now: Timestamp,
    ) -> Result<Requested, StoreError> {
        note_wish!(
            self,
            once,
            "request_resume",
            "desired_state = 'run', status = 'Resuming', phase = 'queued', message = 'Resuming; waiting to be submitted.'",
            "phase = 'paused' and desired_state = 'pause'",
            id,
            viewer,
            now
        )
    }

    /// Sends a job that failed or was canceled again, under the same id, with its whole budget of retries. Its secrets
    /// were erased when it ended: `secrets` are the ones to use. Of a cluster that is kept in the database `incarnation` says
    /// which one it is; when it is gone, the job stays.
    pub async fn request_retry(
        &self,
        id: JobId,
        viewer: &Viewer,
        secrets: &Secrets,
        once: Option<&Once>,
        incarnation: Option<i64>,
        now: Timestamp,
    ) -> Result<Requested, StoreError> {
        let sealed = self.seal_secrets(id, secrets)?;
        note_wish!(
            self,
            once,
            "request_retry",
            "desired_state = 'run', status = 'Pending', phase = 'queued', message = 'To be sent again; waiting to be submitted.',
                 retry_count = 0, failures = '[]', progress = '{}', pending_reason = null, submitted_at = null,
                 started_at = null, finished_at = null, secrets = $4",
            "phase = 'ended' and status in ('Error', 'Canceled') and desired_state <> 'delete'
               and ($5::bigint is null
                    or exists (select from clusters c where c.name = jobs.cluster and c.incarnation = $5 for share))",
            id,
            viewer,
            now,
            sealed,
            incarnation
        )
    }

    /// Deletes a job that has ended. With `artifacts`, what it left on the cluster goes first: until then it is stored,
    /// and nobody sees it any more. Of a cluster that is kept in the database `incarnation` says which one it is; when it is
    /// gone, nobody would remove anything there, and the job stays.
    pub async fn request_delete(
        &self,
        id: JobId,
        viewer: &Viewer,
        artifacts: bool,
        incarnation: Option<i64>,
        now: Timestamp,
    ) -> Result<Requested, StoreError> {
        let Some(job) = self.find_job(id, viewer).await? else { return Ok(Requested::NoJob) };
        let mut tx = self.pool.begin().await?;
        // The cluster is held until everybody can see that there is something to remove: who wants to forget it waits for that.
        let cluster = if artifacts {
            sqlx::query_scalar!(
                "-- wishes::request_delete with artifacts
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
                "-- wishes::request_delete
                 delete from jobs where id = $1 and phase = 'ended' and desired_state <> 'delete' returning cluster",
                id.get(),
            )
            .fetch_optional(&mut *tx)
            .await?
        };
        let Some(cluster) = cluster else {
            tx.rollback().await?;
            return Ok(match self.find_job(id, viewer).await? {
                // Another wish was quicker, or its cluster is gone.
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

    async fn granted(
        &self,
        mut tx: sqlx::Transaction<'_, sqlx::Postgres>,
        due: Option<(String, String)>,
        id: JobId,
        viewer: &Viewer,
        once: Option<&Once>,
    ) -> Result<Requested, StoreError> {
        let taken = due.is_some();
        if let (true, Some(once)) = (taken, once)
            && !self.keep_answer(&mut tx, once, id, ACCEPTED).await?
        {
            // Somebody has used the key for something else meanwhile.
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

//! Results of steps and polls of conversions. Each wakes the jobs that wait for it.

use std::collections::HashSet;

use domain::{ClusterName, Conversion, Timestamp};
use serde_json::Value;
use sqlx::PgConnection;
use uuid::Uuid;

use super::{rows::document, turns::ConversionLease};
use crate::{
    error::{Result, StoreError},
    jobs::lane::Lane,
    listen,
    statements::{retry_rolled_back, store_all},
    store::{Call, Store},
};

/// A conversion after a step.
#[derive(Debug)]
pub struct ConversionRecord {
    pub conversion: Conversion,
    pub due_at: Option<Timestamp>,
}

/// Results of steps and polls of conversions.
pub trait ConversionRecords {
    /// Stores conversions after a step, and returns the lease on them if `release` is set. Returns the ids of those that were
    /// stored; a result without its lease is dropped.
    fn record_conversions(
        &self,
        lease: &ConversionLease,
        cluster: &ClusterName,
        records: &[ConversionRecord],
        release: bool,
        now: Timestamp,
    ) -> impl Call<HashSet<Uuid>>;

    /// Stores what a poll observed. A conversion that has changed since it was read is skipped: the next poll observes it
    /// again.
    fn record_observed_conversions(&self, cluster: &ClusterName, conversions: &[Conversion])
    -> impl Call<()>;
}

impl ConversionRecords for Store {
    async fn record_conversions(
        &self,
        lease: &ConversionLease,
        cluster: &ClusterName,
        records: &[ConversionRecord],
        release: bool,
        now: Timestamp,
    ) -> Result<HashSet<Uuid>> {
        let record = |records| self.record_conversions_together(lease, cluster, records, release, now);
        let stored = if records.len() > 1 {
            store_all(records, record, |record, error| log_refused(&record.conversion, error)).await?
        } else {
            retry_rolled_back(|| record(records)).await?
        };
        Ok(stored.into_iter().collect())
    }

    async fn record_observed_conversions(
        &self,
        cluster: &ClusterName,
        conversions: &[Conversion],
    ) -> Result<()> {
        let record = |conversions| self.record_seen_together(cluster, conversions);
        store_all(conversions, record, log_refused).await?;
        Ok(())
    }
}

impl Store {
    async fn record_conversions_together(
        &self,
        lease: &ConversionLease,
        cluster: &ClusterName,
        records: &[ConversionRecord],
        release: bool,
        now: Timestamp,
    ) -> Result<Vec<Uuid>> {
        if records.is_empty() {
            return Ok(Vec::new());
        }
        let changes: Vec<_> =
            records.iter().map(|record| document(&record.conversion, record.due_at)).collect();
        let mut tx = self.pool.begin().await?;
        // A job that came during the step, or found a file damaged, has raised the version: then the next step is due at once.
        let stored = sqlx::query_scalar!(
            "-- conversions::records::record_conversions_together
             update image_conversions c
             set state = u.state, message = u.message, file = u.file, file_seen_at = u.file_seen_at,
                 file_began_at = u.file_began_at,
                 damaged_files = case when c.version = u.version then u.damaged_files else c.damaged_files end,
                 damaged_at = case when c.version = u.version then u.damaged_at else c.damaged_at end, error = u.error, failures = u.failures, retry_at = u.retry_at,
                 infrastructure_failures = u.infrastructure_failures, abandoned = u.abandoned, run = u.run, token = u.token,
                 state_dir = u.state_dir, target = u.target, slurm_job_id = u.slurm_job_id, slurm_state = u.slurm_state,
                 exit_code = u.exit_code, exit_signal = u.exit_signal, intended_at = u.intended_at,
                 submit_fence = u.submit_fence, submit_fence_cleared = u.submit_fence_cleared,
                 submit_fence_shut_at = u.submit_fence_shut_at, absent_at = u.absent_at,
                 failed_submissions = u.failed_submissions, submitted_at = u.submitted_at, queued_since = u.queued_since,
                 began_at = u.began_at, finishing_since = u.finishing_since, missing_since = u.missing_since,
                 due_at = case when c.version <> u.version then now() else now() + (u.due_at - $4) end,
                 lease_token = case when $3 then null else c.lease_token end,
                 lease_expires_at = case when $3 then null else c.lease_expires_at end,
                 version = c.version + 1, updated_by = 'record_conversions'
             from jsonb_populate_recordset(null::image_conversions, $1) u
             where c.id = u.id and c.lease_token = $2 and c.lease_expires_at > now()
             returning c.id",
            Value::from(changes),
            lease.token,
            release,
            now,
        )
        .fetch_all(&mut *tx)
        .await?;
        wake_waiters(&mut tx, cluster, &stored).await?;
        tx.commit().await?;
        Ok(stored)
    }

    async fn record_seen_together(
        &self,
        cluster: &ClusterName,
        conversions: &[Conversion],
    ) -> Result<Vec<Uuid>> {
        if conversions.is_empty() {
            return Ok(Vec::new());
        }
        // The statement derives when they are due.
        let changes: Vec<_> = conversions.iter().map(|conversion| document(conversion, None)).collect();
        let mut tx = self.pool.begin().await?;
        let stored = sqlx::query_scalar!(
            "-- conversions::records::record_seen_together
             update image_conversions c
             set state = u.state, message = u.message, slurm_state = u.slurm_state, exit_code = u.exit_code,
                 exit_signal = u.exit_signal, queued_since = u.queued_since, began_at = u.began_at,
                 finishing_since = u.finishing_since, missing_since = u.missing_since,
                 abandoned = coalesce(c.abandoned, u.abandoned),
                 due_at = case when u.state = 'finishing' or (c.abandoned is null and u.abandoned is not null)
                               then now() else c.due_at end,
                 version = c.version + 1, updated_by = 'record_observed_conversions'
             from jsonb_populate_recordset(null::image_conversions, $1) u
             where c.id = u.id and c.version = u.version and c.state in ('in_queue', 'running')
             returning c.id",
            Value::from(changes),
        )
        .fetch_all(&mut *tx)
        .await?;
        wake_waiters(&mut tx, cluster, &stored).await?;
        tx.commit().await?;
        Ok(stored)
    }
}

/// A refused conversion is tried again when its lease ends.
fn log_refused(conversion: &Conversion, error: &StoreError) {
    tracing::error!(
        conversion.id = %conversion.id, image = %conversion.image, error = ?error,
        "the database refuses a conversion's new state"
    );
}

/// Makes the jobs that wait for these conversions due at once.
async fn wake_waiters(
    connection: &mut PgConnection,
    cluster: &ClusterName,
    conversions: &[Uuid],
) -> Result<()> {
    if conversions.is_empty() {
        return Ok(());
    }
    sqlx::query!(
        "-- conversions::records::wake_waiters
         update jobs j set due_at = now(), updated_by = 'wake_waiters'
         from image_waits w
         where w.conversion_id = any($1) and j.id = w.job_id and j.phase = 'converting_image'",
        conversions,
    )
    .execute(&mut *connection)
    .await?;
    listen::wake(connection, cluster, Some(Lane::Submit)).await
}

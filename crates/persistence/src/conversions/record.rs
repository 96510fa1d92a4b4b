//! The results of steps and polls of conversions; each wakes the jobs that wait for it.

use std::collections::HashSet;

use domain::{ClusterName, Conversion, ConversionState, Timestamp};
use serde_json::Value;
use sqlx::PgConnection;
use uuid::Uuid;

use super::{leases::ConversionLease, rows::ConversionChange};
use crate::{error::StoreError, listen, store::Store};

/// A conversion after a step.
#[derive(Debug)]
pub struct ConversionRecord {
    pub conversion: Conversion,
    pub due_at: Option<Timestamp>,
}

impl Store {
    /// Stores conversions after a step, and gives the lease on them back if `release` says so. Returns those that were
    /// stored: a result whose lease was lost is dropped.
    pub async fn record_conversions(
        &self,
        lease: &ConversionLease,
        cluster: &ClusterName,
        records: &[ConversionRecord],
        release: bool,
        now: Timestamp,
    ) -> Result<HashSet<Uuid>, StoreError> {
        if records.is_empty() {
            return Ok(HashSet::new());
        }
        let changes = changes(records.iter().map(|record| (&record.conversion, record.due_at)))?;
        let mut tx = self.pool.begin().await?;
        // Somebody who came while the step was under way has raised the version: then it is looked at again at once.
        let stored = sqlx::query_scalar!(
            "-- conversions::record_conversions
             update image_conversions c
             set state = u.state, message = u.message, file = u.file, file_seen_at = u.file_seen_at,
                 file_began_at = u.file_began_at, error = u.error, failures = u.failures, retry_at = u.retry_at,
                 mishaps = u.mishaps, abandoned = u.abandoned, run = u.run, token = u.token, state_dir = u.state_dir,
                 target = u.target, slurm_job_id = u.slurm_job_id, slurm_state = u.slurm_state,
                 exit_code = u.exit_code, exit_signal = u.exit_signal, intended_at = u.intended_at,
                 sent_at = u.sent_at, submitted_at = u.submitted_at, began_at = u.began_at,
                 finishing_since = u.finishing_since, missing_since = u.missing_since, retake = u.retake,
                 setbacks = u.setbacks, absent_at = u.absent_at,
                 due_at = case when c.version <> u.version then now() else now() + (u.due_at - $4) end,
                 lease_token = case when $3 then null else c.lease_token end,
                 lease_expires_at = case when $3 then null else c.lease_expires_at end,
                 version = c.version + 1, updated_by = 'record_conversions'
             from jsonb_populate_recordset(null::image_conversions, $1) u
             where c.id = u.id and c.lease_token = $2 and c.lease_expires_at > now()
             returning c.id",
            changes,
            lease.token,
            release,
            now,
        )
        .fetch_all(&mut *tx)
        .await?;
        wake_waiters(&mut tx, cluster, &stored).await?;
        tx.commit().await?;
        Ok(stored.into_iter().collect())
    }

    /// Stores what a poll saw of conversions. One that somebody else changed in the meantime is left alone: the next
    /// poll sees it again.
    pub async fn record_seen_conversions(
        &self,
        cluster: &ClusterName,
        conversions: &[Conversion],
        now: Timestamp,
    ) -> Result<(), StoreError> {
        if conversions.is_empty() {
            return Ok(());
        }
        let due = |c: &Conversion| (c.state == ConversionState::Finishing).then_some(now);
        let changes = changes(conversions.iter().map(|conversion| (conversion, due(conversion))))?;
        let mut tx = self.pool.begin().await?;
        let stored = sqlx::query_scalar!(
            "-- conversions::record_seen_conversions
             update image_conversions c
             set state = u.state, message = u.message, slurm_state = u.slurm_state, exit_code = u.exit_code,
                 exit_signal = u.exit_signal, began_at = u.began_at, finishing_since = u.finishing_since,
                 missing_since = u.missing_since,
                 due_at = case when u.state = 'finishing' then now() else c.due_at end,
                 version = c.version + 1, updated_by = 'record_seen_conversions'
             from jsonb_populate_recordset(null::image_conversions, $1) u
             where c.id = u.id and c.version = u.version and c.state in ('in_queue', 'running')
             returning c.id",
            changes,
        )
        .fetch_all(&mut *tx)
        .await?;
        wake_waiters(&mut tx, cluster, &stored).await?;
        tx.commit().await?;
        Ok(())
    }
}

/// The jobs that wait for these conversions look at once what has become of them.
async fn wake_waiters(
    connection: &mut PgConnection,
    cluster: &ClusterName,
    conversions: &[Uuid],
) -> Result<(), StoreError> {
    if conversions.is_empty() {
        return Ok(());
    }
    sqlx::query!(
        "-- conversions::wake_waiters
         update jobs j set due_at = now(), updated_by = 'wake_waiters'
         from image_waits w
         where w.conversion_id = any($1) and j.id = w.job_id and j.phase = 'converting_image'",
        conversions,
    )
    .execute(&mut *connection)
    .await?;
    listen::wake(connection, cluster).await
}

fn changes<'a>(
    conversions: impl Iterator<Item = (&'a Conversion, Option<Timestamp>)>,
) -> Result<Value, StoreError> {
    let changes: Vec<_> =
        conversions.map(|(conversion, due_at)| ConversionChange::new(conversion, due_at)).collect();
    serde_json::to_value(changes).map_err(|_| StoreError::Unstorable("a conversion is no JSON"))
}

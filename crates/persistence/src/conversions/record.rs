//! The results of steps and polls of conversions; each wakes the jobs that wait for it.

use std::collections::HashSet;

use domain::{ClusterName, Conversion, Timestamp};
use serde_json::Value;
use sqlx::PgConnection;
use uuid::Uuid;

use super::{leases::ConversionLease, rows::ConversionChange};
use crate::{error::StoreError, jobs::leases::Lane, listen, store::Store};

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
        match self.record_conversions_together(lease, cluster, records, release, now).await {
            Err(error) if error.is_about_the_data() && records.len() > 1 => {}
            together => return together,
        }
        // One of them has something that the database refuses: the others must not wait for it.
        let mut stored = HashSet::new();
        for record in records {
            let alone = std::slice::from_ref(record);
            let ids = self.record_conversions_together(lease, cluster, alone, release, now).await;
            stored.extend(unless_refused(&record.conversion, ids)?);
        }
        Ok(stored)
    }

    async fn record_conversions_together(
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
                 submit_fence = u.submit_fence, submit_fence_cleared = u.submit_fence_cleared, submit_fence_shut_at = u.submit_fence_shut_at, submitted_at = u.submitted_at, queued_since = u.queued_since,
                 began_at = u.began_at, finishing_since = u.finishing_since, missing_since = u.missing_since,
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
    ) -> Result<(), StoreError> {
        match self.record_seen_together(cluster, conversions).await {
            Err(error) if error.is_about_the_data() => {}
            together => return together,
        }
        for conversion in conversions {
            let seen = self.record_seen_together(cluster, std::slice::from_ref(conversion)).await;
            unless_refused(conversion, seen)?;
        }
        Ok(())
    }

    async fn record_seen_together(
        &self,
        cluster: &ClusterName,
        conversions: &[Conversion],
    ) -> Result<(), StoreError> {
        if conversions.is_empty() {
            return Ok(());
        }
        // When they are due follows from what was seen.
        let changes = changes(conversions.iter().map(|conversion| (conversion, None)))?;
        let mut tx = self.pool.begin().await?;
        let stored = sqlx::query_scalar!(
            "-- conversions::record_seen_conversions
             update image_conversions c
             set state = u.state, message = u.message, slurm_state = u.slurm_state, exit_code = u.exit_code,
                 exit_signal = u.exit_signal, queued_since = u.queued_since, began_at = u.began_at,
                 finishing_since = u.finishing_since, missing_since = u.missing_since,
                 abandoned = coalesce(c.abandoned, u.abandoned),
                 due_at = case when u.state = 'finishing' or (c.abandoned is null and u.abandoned is not null)
                               then now() else c.due_at end,
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

/// What was stored of one conversion: nothing, if the database refuses it. It is looked at again when its lease ends.
fn unless_refused<T: Default>(
    conversion: &Conversion,
    stored: Result<T, StoreError>,
) -> Result<T, StoreError> {
    match stored {
        Err(error) if error.is_about_the_data() => {
            tracing::error!(
                conversion.id = %conversion.id, image = %conversion.image, error = ?error,
                "the database refuses a conversion's new state"
            );
            Ok(T::default())
        }
        stored => stored,
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
    listen::wake(connection, cluster, Some(Lane::Submit)).await
}

fn changes<'a>(
    conversions: impl Iterator<Item = (&'a Conversion, Option<Timestamp>)>,
) -> Result<Value, StoreError> {
    let changes: Vec<_> =
        conversions.map(|(conversion, due_at)| ConversionChange::new(conversion, due_at)).collect();
    serde_json::to_value(changes).map_err(|_| StoreError::Unstorable("a conversion is no JSON"))
}

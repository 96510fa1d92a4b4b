//! Deleting jobs: those whose files on the cluster are removed first, and those that finished long ago.

use std::time::Duration;

use domain::JobId;
use slurm::RemotePath;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::{
    error::Result,
    jobs::leases::Lease,
    store::{Call, Store},
    values::{count, millis},
};

/// One statement stops adding jobs at this number of events: each is a row whose lock is held until the end.
const EVENTS: i64 = 10_000;

/// The directories of a deleted job.
#[derive(Debug, Clone)]
pub struct PurgeTarget {
    pub job: JobId,
    /// How many removals have failed.
    pub failed: u32,
    /// The base directories of its attempts, each once.
    pub base_dirs: Vec<RemotePath>,
    /// Whether the stored directory of another attempt cannot be read.
    pub unreadable: bool,
}

/// Deleted jobs whose files on the cluster are removed first.
pub trait Purges {
    /// The directories of jobs; each attempt has stored the base directory of its time.
    fn purge_targets(&self, jobs: &[JobId]) -> impl Call<Vec<PurgeTarget>>;

    /// Deletes jobs whose files are removed.
    fn delete_purged(&self, lease: &Lease, jobs: &[JobId]) -> impl Call<()>;

    /// Returns the lease on jobs whose files could not be removed; each is due again after its time.
    fn put_off_purges(&self, lease: &Lease, jobs: &[(JobId, Duration)]) -> impl Call<()>;
}

impl Purges for Store {
    async fn purge_targets(&self, jobs: &[JobId]) -> Result<Vec<PurgeTarget>> {
        let ids: Vec<_> = jobs.iter().map(|id| id.get()).collect();
        let rows = sqlx::query!(
            r#"-- jobs::deletions::purge_targets
               select j.id, j.purges_failed::bigint as "purges_failed!",
                      array(select distinct a.job_dir from slurm_metadata a where a.job_id = j.id) as "dirs!"
               from jobs j where j.id = any($1)"#,
            &ids
        )
        .fetch_all(&self.pool)
        .await?;
        let remains = rows.into_iter().map(|row| {
            let base_dirs: Vec<RemotePath> = row.dirs.iter().filter_map(|dir| dir.parse().ok()).collect();
            let unreadable = base_dirs.len() < row.dirs.len();
            PurgeTarget { job: JobId::new(row.id), failed: count(row.purges_failed), unreadable, base_dirs }
        });
        Ok(remains.collect())
    }

    async fn delete_purged(&self, lease: &Lease, jobs: &[JobId]) -> Result<()> {
        let ids: Vec<_> = jobs.iter().map(|id| id.get()).collect();
        self.run(sqlx::query!(
            "-- jobs::deletions::delete_purged
             delete from jobs
             where id = any($1) and desired_state = 'delete' and lease_token = $2 and lease_expires_at > now()",
            &ids,
            lease.token,
        ))
        .await
    }

    async fn put_off_purges(&self, lease: &Lease, jobs: &[(JobId, Duration)]) -> Result<()> {
        if jobs.is_empty() {
            return Ok(());
        }
        let ids: Vec<_> = jobs.iter().map(|(id, _)| id.get()).collect();
        let waits: Vec<_> = jobs.iter().map(|(_, wait)| millis(*wait)).collect();
        self.run(sqlx::query!(
            "-- jobs::deletions::put_off_purges
             update jobs j
             set due_at = now() + u.wait * interval '1 millisecond', purges_failed = j.purges_failed + 1,
                 lease_token = null, lease_expires_at = null, lease_attempts = 0, updated_by = 'put_off_purges'
             from unnest($1::uuid[], $3::float8[]) as u(id, wait)
             where j.id = u.id and j.desired_state = 'delete' and j.lease_token = $2 and j.lease_expires_at > now()",
            &ids,
            lease.token,
            &waits,
        ))
        .await
    }
}

impl Store {
    /// Deletes jobs that finished more than `keep` ago, oldest first, with all that is stored about them. It deletes at most
    /// `at_most` at a time, fewer if they have many events, and returns how many. Zero means that there are no more.
    ///
    /// A job stays while a webhook message about it waits, while its files are being removed, and while a job that needs it has not
    /// ended. Several processes may call
    /// this at once.
    pub async fn delete_finished(&self, keep: Duration, at_most: u32) -> Result<u64> {
        let mut tx = self.begin().await?;
        let held = hold_finished(&mut tx, keep, at_most).await?;
        let deleted = delete_held(&mut tx, &held).await?;
        tx.commit().await?;
        Ok(deleted)
    }
}

/// Locks the jobs that may be deleted, so that no message of theirs can be redelivered meanwhile, and returns their ids.
async fn hold_finished(connection: &mut PgConnection, keep: Duration, at_most: u32) -> Result<Vec<Uuid>> {
    let held = sqlx::query_scalar!(
        "-- jobs::deletions::hold_finished
         with old as materialized (
             select j.id, j.finished_at, j.events from jobs j
             where j.finished_at < now() - $1 * interval '1 millisecond' and j.phase = 'ended' and j.desired_state <> 'delete'
               and not exists (select from webhook_deliveries d where d.job_id = j.id and d.state = 'pending')
               and not exists (select from needs n join jobs d on d.id = n.job_id where n.needed = j.id and d.phase <> 'ended')
             order by j.finished_at limit $2
             for update skip locked
         ), portion as (
             select id, (sum(events) over (order by finished_at, id) - events)::bigint as before from old
         )
         select id from portion where before < $3",
        millis(keep),
        i64::from(at_most),
        EVENTS,
    );
    Ok(held.fetch_all(connection).await?)
}

/// Deletes held jobs without waiting messages. A redelivery may have been requested between the snapshot of the statement
/// that chose the jobs and their locks.
async fn delete_held(connection: &mut PgConnection, held: &[Uuid]) -> Result<u64> {
    let deleted = sqlx::query!(
        "-- jobs::deletions::delete_held
         delete from jobs j where j.id = any($1)
           and not exists (select from webhook_deliveries d where d.job_id = j.id and d.state = 'pending')",
        held,
    )
    .execute(connection)
    .await?;
    Ok(deleted.rows_affected())
}

#[cfg(test)]
mod tests;

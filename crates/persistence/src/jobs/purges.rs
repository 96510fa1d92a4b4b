//! Deleted jobs whose remains on the cluster go before them.

use std::time::Duration;

use domain::JobId;
use slurm::RemotePath;

use crate::{
    error::StoreError,
    jobs::leases::{Lease, millis},
    store::Store,
};

/// Where the attempts of a deleted job have left something.
#[derive(Debug, Clone)]
pub struct Remains {
    pub job: JobId,
    /// How often it was tried to remove them, and failed.
    pub failed: u32,
    /// The base directories of its attempts, each once.
    pub base_dirs: Vec<RemotePath>,
    /// Whether that of another attempt is stored and cannot be read.
    pub unreadable: bool,
}

impl Store {
    /// Where jobs have left something; each attempt has kept the base directory of its time.
    pub async fn remains(&self, jobs: &[JobId]) -> Result<Vec<Remains>, StoreError> {
        let ids: Vec<_> = jobs.iter().map(|id| id.get()).collect();
        let rows = sqlx::query!(
            r#"-- purges::remains
               select j.id, j.purges_failed,
                      array(select distinct a.job_dir from slurm_metadata a where a.job_id = j.id) as "dirs!"
               from jobs j where j.id = any($1)"#,
            &ids
        )
        .fetch_all(&self.pool)
        .await?;
        let remains = rows.into_iter().map(|row| {
            let base_dirs: Vec<RemotePath> = row.dirs.iter().filter_map(|dir| dir.parse().ok()).collect();
            Remains {
                job: JobId::new(row.id),
                failed: u32::try_from(row.purges_failed).unwrap_or_default(),
                unreadable: base_dirs.len() < row.dirs.len(),
                base_dirs,
            }
        });
        Ok(remains.collect())
    }

    /// Deletes jobs whose owners wanted them gone, now that nothing of them is on the cluster.
    pub async fn delete_purged(&self, lease: &Lease, jobs: &[JobId]) -> Result<(), StoreError> {
        let ids: Vec<_> = jobs.iter().map(|id| id.get()).collect();
        sqlx::query!(
            "-- purges::delete_purged
             delete from jobs
             where id = any($1) and desired_state = 'delete' and lease_token = $2 and lease_expires_at > now()",
            &ids,
            lease.token,
        )
        .execute(&self.pool)
        .await?;
        Ok(())
    }

    /// Gives the lease on jobs back whose remains could not be removed: each is tried again after its time.
    pub async fn put_off_purges(&self, lease: &Lease, jobs: &[(JobId, Duration)]) -> Result<(), StoreError> {
        if jobs.is_empty() {
            return Ok(());
        }
        let ids: Vec<_> = jobs.iter().map(|(id, _)| id.get()).collect();
        let waits: Vec<_> = jobs.iter().map(|(_, wait)| millis(*wait)).collect();
        sqlx::query!(
            "-- purges::put_off_purges
             update jobs j
             set due_at = now() + u.wait * interval '1 millisecond', purges_failed = j.purges_failed + 1,
                 lease_token = null, lease_expires_at = null, lease_attempts = 0, updated_by = 'put_off_purges'
             from unnest($1::uuid[], $3::float8[]) as u(id, wait)
             where j.id = u.id and j.desired_state = 'delete' and j.lease_token = $2 and j.lease_expires_at > now()",
            &ids,
            lease.token,
            &waits,
        )
        .execute(&self.pool)
        .await?;
        Ok(())
    }
}

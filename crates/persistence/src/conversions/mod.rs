//! Conversions of images: who waits for which, the right to take a step of one, and what came of it.

mod leases;
mod record;
mod rows;

use domain::{ClusterName, Conversion, ImageRef, JobId};
use slurm::RemotePath;

use crate::{error::StoreError, listen, store::Store};
use rows::{readable, select_conversions};

pub use leases::ConversionLease;
pub use record::ConversionRecord;

#[cfg(test)]
mod tests;

/// A job that wants an image from the cache.
#[derive(Debug, Clone)]
pub struct ImageRequest {
    pub job: JobId,
    pub cache_path: RemotePath,
    pub image: ImageRef,
    /// Whether it wants the image as it is now.
    pub fresh: bool,
}

impl Store {
    /// Notes who wants which image, and returns the conversion of each; one is made of an image that nobody has
    /// wanted before.
    pub async fn want_images(
        &self,
        cluster: &ClusterName,
        wishes: &[ImageRequest],
    ) -> Result<Vec<Conversion>, StoreError> {
        let mut paths: Vec<String> = wishes.iter().map(|wish| wish.cache_path.to_string()).collect();
        paths.sort_unstable();
        paths.dedup();
        let found = self.note_wishes(cluster, wishes, &paths).await?;
        if found.len() == paths.len() {
            return Ok(found);
        }
        let all: Vec<String> = wishes.iter().map(|wish| wish.cache_path.to_string()).collect();
        let images: Vec<String> = wishes.iter().map(|wish| wish.image.to_string()).collect();
        // In one order, so that two workers who want the same images never wait for each other.
        sqlx::query!(
            "-- conversions::want_images
             insert into image_conversions (cluster, cache_path, image, state, message, due_at)
             select distinct on (u.cache_path)
                    $1, u.cache_path, u.image, 'wanted', 'Checking the cache for the image.', now()
             from unnest($2::text[], $3::text[]) as u(cache_path, image)
             order by u.cache_path
             on conflict (cluster, cache_path) do nothing",
            cluster.as_str(),
            &all,
            &images,
        )
        .execute(&self.pool)
        .await?;
        self.note_wishes(cluster, wishes, &paths).await
    }

    async fn note_wishes(
        &self,
        cluster: &ClusterName,
        wishes: &[ImageRequest],
        paths: &[String],
    ) -> Result<Vec<Conversion>, StoreError> {
        let jobs: Vec<_> = wishes.iter().map(|wish| wish.job.get()).collect();
        let of_jobs: Vec<String> = wishes.iter().map(|wish| wish.cache_path.to_string()).collect();
        let fresh: Vec<bool> = wishes.iter().map(|wish| wish.fresh).collect();
        let mut tx = self.pool.begin().await?;
        sqlx::query!(
            "-- conversions::note_wishes
             insert into image_waits as w (job_id, conversion_id, fresh)
             select u.job_id, c.id, u.fresh
             from unnest($2::uuid[], $3::text[], $4::bool[]) as u(job_id, cache_path, fresh)
             join image_conversions c on c.cluster = $1 and c.cache_path = u.cache_path
             join jobs j on j.id = u.job_id
             on conflict (job_id) do update set conversion_id = excluded.conversion_id, fresh = excluded.fresh
             where (w.conversion_id, w.fresh) is distinct from (excluded.conversion_id, excluded.fresh)",
            cluster.as_str(),
            &jobs,
            &of_jobs,
            &fresh,
        )
        .execute(&mut *tx)
        .await?;
        let rows = select_conversions!(
            "conversions::note_wishes conversions",
            "where c.cluster = $1 and c.cache_path = any($2)",
            cluster.as_str(),
            paths,
        )
        .fetch_all(&mut *tx)
        .await?;
        tx.commit().await?;
        Ok(readable(rows).0)
    }

    /// Wakes conversions that rest: what they know is too old for somebody who wants their file now.
    pub async fn reopen_conversions(
        &self,
        cluster: &ClusterName,
        conversions: &[&Conversion],
    ) -> Result<(), StoreError> {
        if conversions.is_empty() {
            return Ok(());
        }
        let ids: Vec<_> = conversions.iter().map(|conversion| conversion.id).collect();
        let mut tx = self.pool.begin().await?;
        sqlx::query!(
            "-- conversions::reopen_conversions
             update image_conversions
             set state = 'wanted', message = 'Checking the cache for the image.', due_at = now(),
                 version = version + 1, updated_by = 'reopen_conversions'
             where id = any($1) and (state in ('ready', 'failed')
                                     or (state = 'wanted' and (due_at is null or lease_token is not null)))",
            &ids,
        )
        .execute(&mut *tx)
        .await?;
        listen::wake(&mut tx, cluster, None).await?;
        tx.commit().await?;
        Ok(())
    }

    /// Conversions of one cluster that Slurm has and is not through with: what a poll asks about, too.
    pub async fn active_conversions(&self, cluster: &ClusterName) -> Result<Vec<Conversion>, StoreError> {
        let rows = select_conversions!(
            "conversions::active_conversions",
            "where c.cluster = $1 and c.state in ('in_queue', 'running')",
            cluster.as_str(),
        )
        .fetch_all(&self.pool)
        .await?;
        Ok(readable(rows).0)
    }

    /// Makes the conversions due that these jobs have waited for: perhaps nobody does any more.
    pub async fn look_after_conversions(
        &self,
        cluster: &ClusterName,
        jobs: &[JobId],
    ) -> Result<(), StoreError> {
        if jobs.is_empty() {
            return Ok(());
        }
        let ids: Vec<_> = jobs.iter().map(|id| id.get()).collect();
        let mut tx = self.pool.begin().await?;
        sqlx::query!(
            "-- conversions::look_after_conversions
             update image_conversions c set due_at = now(), version = version + 1, updated_by = 'look_after_conversions'
             from image_waits w
             where w.job_id = any($1) and c.id = w.conversion_id and c.state in ('submitting', 'in_queue', 'running')",
            &ids,
        )
        .execute(&mut *tx)
        .await?;
        listen::wake(&mut tx, cluster, None).await?;
        tx.commit().await?;
        Ok(())
    }

    /// Makes those of the jobs due at once whose conversion has moved since it was read: the wake-up that it sent came
    /// before they slept. Each comes with its conversion as it was.
    pub async fn wake_overtaken(&self, jobs: &[(JobId, &Conversion)]) -> Result<(), StoreError> {
        let ids: Vec<_> = jobs.iter().map(|(id, _)| id.get()).collect();
        let conversions: Vec<_> = jobs.iter().map(|(_, conversion)| conversion.id).collect();
        let versions: Vec<_> = jobs.iter().map(|(_, conversion)| conversion.version).collect();
        sqlx::query!(
            "-- conversions::wake_overtaken
             update jobs j set due_at = now(), updated_by = 'wake_overtaken'
             from unnest($1::uuid[], $2::uuid[], $3::bigint[]) as u(job_id, conversion_id, version)
             join image_conversions c on c.id = u.conversion_id and c.version <> u.version
             where j.id = u.job_id and j.phase = 'converting_image'",
            &ids,
            &conversions,
            &versions,
        )
        .execute(&self.pool)
        .await?;
        Ok(())
    }
}

//! Jobs that wait for images.

use domain::{ClusterName, Conversion, FileFault, ImageRef, JobId};
use slurm::RemotePath;

use super::rows::{readable, select_conversions};
use crate::{
    error::Result,
    listen,
    store::{Call, Store},
};

/// A job that needs an image from the cache.
#[derive(Debug, Clone)]
pub struct ImageRequest {
    pub job: JobId,
    pub cache_path: RemotePath,
    pub image: ImageRef,
    /// Whether it needs the image as the registry has it now.
    pub fresh: bool,
}

/// Which jobs wait for which conversions.
pub trait ImageRequests {
    /// Stores which job needs which image, and returns the conversion of each image; new ones are added.
    fn request_images(&self, cluster: &ClusterName, requests: &[ImageRequest]) -> impl Call<Vec<Conversion>>;

    /// Makes finished conversions due again: their last result is too old for a job that needs the file now.
    fn reopen_conversions(&self, cluster: &ClusterName, conversions: &[&Conversion]) -> impl Call<()>;

    /// Records that jobs could not use these files. No job gets a damaged file again, nor a missing one before a check. The files
    /// of one image are found damaged at most once an hour.
    fn distrust_files(&self, cluster: &ClusterName, files: &[(&RemotePath, FileFault)]) -> impl Call<()>;

    /// The conversions of one cluster that Slurm has: polls ask about them, too.
    fn active_conversions(&self, cluster: &ClusterName) -> impl Call<Vec<Conversion>>;

    /// Makes the conversions due that these jobs have waited for: perhaps no other job needs them.
    fn recheck_conversions(&self, cluster: &ClusterName, jobs: &[JobId]) -> impl Call<()>;

    /// Makes jobs due whose conversion has changed since it was read: its wake-up came before they waited. Each job comes with
    /// the conversion that was read.
    fn wake_changed(&self, jobs: &[(JobId, &Conversion)]) -> impl Call<()>;
}

impl ImageRequests for Store {
    async fn request_images(
        &self,
        cluster: &ClusterName,
        requests: &[ImageRequest],
    ) -> Result<Vec<Conversion>> {
        let mut paths: Vec<String> = requests.iter().map(|request| request.cache_path.to_string()).collect();
        paths.sort_unstable();
        paths.dedup();
        let found = self.store_requests(cluster, requests, &paths).await?;
        if found.len() == paths.len() {
            return Ok(found);
        }
        let all: Vec<String> = requests.iter().map(|request| request.cache_path.to_string()).collect();
        let images: Vec<String> = requests.iter().map(|request| request.image.to_string()).collect();
        // Always in the same order, so that two workers with the same images never wait for each other.
        self.execute(sqlx::query!(
            "-- conversions::requests::request_images
             insert into image_conversions (cluster, cache_path, image, state, message, due_at)
             select distinct on (u.cache_path)
                    $1, u.cache_path, u.image, 'requested', 'Checking the cache for the image.', now()
             from unnest($2::text[], $3::text[]) as u(cache_path, image)
             order by u.cache_path
             on conflict (cluster, cache_path) do nothing",
            cluster.as_str(),
            &all,
            &images,
        ))
        .await?;
        self.store_requests(cluster, requests, &paths).await
    }

    async fn reopen_conversions(&self, cluster: &ClusterName, conversions: &[&Conversion]) -> Result<()> {
        if conversions.is_empty() {
            return Ok(());
        }
        let ids: Vec<_> = conversions.iter().map(|conversion| conversion.id).collect();
        let mut tx = self.pool.begin().await?;
        sqlx::query!(
            "-- conversions::requests::reopen_conversions
             update image_conversions
             set state = 'requested', message = 'Checking the cache for the image.', due_at = now(),
                 version = version + 1, updated_by = 'reopen_conversions'
             where id = any($1) and (state in ('ready', 'failed')
                                     or (state = 'requested' and (due_at is null or lease_token is not null)))",
            &ids,
        )
        .execute(&mut *tx)
        .await?;
        listen::wake(&mut tx, cluster, None).await?;
        Ok(tx.commit().await?)
    }

    async fn distrust_files(&self, cluster: &ClusterName, files: &[(&RemotePath, FileFault)]) -> Result<()> {
        if files.is_empty() {
            return Ok(());
        }
        let paths: Vec<String> = files.iter().map(|(file, _)| file.to_string()).collect();
        let damaged: Vec<bool> = files.iter().map(|(_, fault)| *fault == FileFault::Damaged).collect();
        // As `Conversion::distrusted`.
        self.run(sqlx::query!(
            "-- conversions::requests::distrust_files
             update image_conversions c
             set file_seen_at = null,
                 damaged_files = case when u.damaged then array_append(c.damaged_files, c.file) else c.damaged_files end,
                 damaged_at = case when u.damaged then now() else c.damaged_at end,
                 version = version + 1, updated_by = 'distrust_files'
             from (select file, bool_or(damaged) as damaged
                   from unnest($2::text[], $3::bool[]) as u(file, damaged) group by file) u
             where c.cluster = $1 and c.file = u.file
               and case when u.damaged
                        then c.file <> all (c.damaged_files)
                             and (c.damaged_at is null or c.damaged_at <= now() - interval '1 hour')
                        else c.file_seen_at is not null end",
            cluster.as_str(),
            &paths,
            &damaged,
        ))
        .await
    }

    async fn active_conversions(&self, cluster: &ClusterName) -> Result<Vec<Conversion>> {
        let rows = select_conversions!(
            "conversions::requests::active_conversions",
            "where c.cluster = $1 and c.state in ('in_queue', 'running')",
            cluster.as_str(),
        )
        .fetch_all(&self.pool)
        .await?;
        Ok(readable(rows).0)
    }

    async fn recheck_conversions(&self, cluster: &ClusterName, jobs: &[JobId]) -> Result<()> {
        if jobs.is_empty() {
            return Ok(());
        }
        let ids: Vec<_> = jobs.iter().map(|id| id.get()).collect();
        let mut tx = self.pool.begin().await?;
        sqlx::query!(
            "-- conversions::requests::recheck_conversions
             update image_conversions c set due_at = now(), version = version + 1, updated_by = 'recheck_conversions'
             from image_waits w
             where w.job_id = any($1) and c.id = w.conversion_id and c.state in ('submitting', 'in_queue', 'running')",
            &ids,
        )
        .execute(&mut *tx)
        .await?;
        listen::wake(&mut tx, cluster, None).await?;
        Ok(tx.commit().await?)
    }

    async fn wake_changed(&self, jobs: &[(JobId, &Conversion)]) -> Result<()> {
        let ids: Vec<_> = jobs.iter().map(|(id, _)| id.get()).collect();
        let conversions: Vec<_> = jobs.iter().map(|(_, conversion)| conversion.id).collect();
        let versions: Vec<_> = jobs.iter().map(|(_, conversion)| conversion.version).collect();
        self.run(sqlx::query!(
            "-- conversions::requests::wake_changed
             update jobs j set due_at = now(), updated_by = 'wake_changed'
             from unnest($1::uuid[], $2::uuid[], $3::bigint[]) as u(job_id, conversion_id, version)
             join image_conversions c on c.id = u.conversion_id and c.version <> u.version
             where j.id = u.job_id and j.phase = 'converting_image'",
            &ids,
            &conversions,
            &versions,
        ))
        .await
    }
}

impl Store {
    async fn store_requests(
        &self,
        cluster: &ClusterName,
        requests: &[ImageRequest],
        paths: &[String],
    ) -> Result<Vec<Conversion>> {
        let jobs: Vec<_> = requests.iter().map(|request| request.job.get()).collect();
        let of_jobs: Vec<String> = requests.iter().map(|request| request.cache_path.to_string()).collect();
        let fresh: Vec<bool> = requests.iter().map(|request| request.fresh).collect();
        let mut tx = self.pool.begin().await?;
        sqlx::query!(
            "-- conversions::requests::store_requests
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
            "conversions::requests::store_requests conversions",
            "where c.cluster = $1 and c.cache_path = any($2)",
            cluster.as_str(),
            paths,
        )
        .fetch_all(&mut *tx)
        .await?;
        tx.commit().await?;
        Ok(readable(rows).0)
    }
}

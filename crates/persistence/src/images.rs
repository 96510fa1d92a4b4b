//! What is known of the images in the clusters' caches, and the jobs that wait for conversions.

mod rows;

use std::collections::HashSet;

use domain::{CachedImage, ClusterName, FileFault, ImageRef, Job, JobId, Secrets, Timestamp};
use serde_json::Value;
use slurm::RemotePath;
use uuid::Uuid;

use rows::{ImageRow, document, readable};

use crate::{
    error::Result,
    jobs::insert::NewJob,
    listen,
    statements::retry_rolled_back,
    store::{Call, Store},
};

/// A job that wants an image from the cache.
#[derive(Debug, Clone)]
pub struct ImageRequest {
    pub job: JobId,
    pub cache_path: RemotePath,
    pub image: ImageRef,
}

/// An image after a look, with the job that converts it if one begins.
#[derive(Debug, Clone)]
pub struct ImageRecord {
    pub image: CachedImage,
    pub conversion: Option<Job>,
}

/// A job that waits for a conversion.
#[derive(Debug, Clone, Copy)]
pub struct Wait {
    pub job: JobId,
    /// The job that converts its image.
    pub conversion: JobId,
    /// When it looks again, if nothing happens before.
    pub until: Timestamp,
    /// Its version as it is now: with another one, somebody has changed the job since.
    pub version: i64,
}

/// Images in the caches of clusters.
pub trait Images {
    /// The images that jobs want; new ones are added. One that cannot be read is missing.
    fn request_images(&self, cluster: &ClusterName, requests: &[ImageRequest])
    -> impl Call<Vec<CachedImage>>;

    /// Stores images, and accepts the jobs that convert them. Returns the paths of those that were stored. An image whose path is missing
    /// has changed since it was read.
    fn record_images(&self, cluster: &ClusterName, records: &[ImageRecord])
    -> impl Call<HashSet<RemotePath>>;

    /// Stores that jobs in `converting_image` need conversions. They are due when theirs begins or ends, and at the
    /// given time; at once if it has ended, was deleted, or somebody has changed the job.
    fn await_conversions(&self, cluster: &ClusterName, waits: &[Wait], now: Timestamp) -> impl Call<()>;

    /// Cancels conversions that no job waits for.
    fn give_up_conversions(
        &self,
        cluster: &ClusterName,
        conversions: &[JobId],
        now: Timestamp,
    ) -> impl Call<()>;

    /// Records that jobs could not use these files. No job gets a damaged file again, nor a missing one before a look. The files
    /// of one image are found damaged at most once an hour.
    fn distrust_files(&self, cluster: &ClusterName, files: &[(&RemotePath, FileFault)]) -> impl Call<()>;
}

impl Images for Store {
    async fn request_images(
        &self,
        cluster: &ClusterName,
        requests: &[ImageRequest],
    ) -> Result<Vec<CachedImage>> {
        let mut paths: Vec<String> = requests.iter().map(|request| request.cache_path.to_string()).collect();
        paths.sort_unstable();
        paths.dedup();
        let jobs: Vec<_> = requests.iter().map(|request| request.job.get()).collect();
        let found = self.images_at(cluster, &paths, &jobs).await?;
        if found.len() == paths.len() {
            return Ok(readable(found));
        }
        let all: Vec<String> = requests.iter().map(|request| request.cache_path.to_string()).collect();
        let images: Vec<String> = requests.iter().map(|request| request.image.to_string()).collect();
        // Always in the same order, so that two workers with the same images never wait for each other.
        self.execute(sqlx::query!(
            "-- images::request_images
             insert into cached_images (cluster, cache_path, image)
             select distinct on (u.cache_path) $1, u.cache_path, u.image
             from unnest($2::text[], $3::text[]) as u(cache_path, image)
             order by u.cache_path
             on conflict (cluster, cache_path) do nothing",
            cluster.as_str(),
            &all,
            &images,
        ))
        .await?;
        Ok(readable(self.images_at(cluster, &paths, &jobs).await?))
    }

    async fn record_images(
        &self,
        cluster: &ClusterName,
        records: &[ImageRecord],
    ) -> Result<HashSet<RemotePath>> {
        if records.is_empty() {
            return Ok(HashSet::new());
        }
        retry_rolled_back(|| self.record_images_together(cluster, records)).await
    }

    async fn await_conversions(&self, cluster: &ClusterName, waits: &[Wait], now: Timestamp) -> Result<()> {
        if waits.is_empty() {
            return Ok(());
        }
        retry_rolled_back(|| self.await_together(cluster, waits, now)).await
    }

    async fn give_up_conversions(
        &self,
        cluster: &ClusterName,
        conversions: &[JobId],
        now: Timestamp,
    ) -> Result<()> {
        if conversions.is_empty() {
            return Ok(());
        }
        let ids: Vec<_> = conversions.iter().map(|id| id.get()).collect();
        let mut tx = self.begin().await?;
        // As the trigger, which cancels those that lose their last waiting job.
        sqlx::query!(
            "-- images::give_up_conversions
             update jobs c
             set desired_state = 'cancel', status = 'Canceling', message = 'Canceling: no job needs the image any more.', due_at = now(),
                 last_modified = $2, version = version + 1, updated_by = 'give_up_conversions'
             where c.id = any($1) and c.phase <> 'ended' and c.desired_state in ('run', 'pause')
               and not exists (select from needs n join jobs w on w.id = n.job_id
                               where n.needed = c.id and n.place = -1 and w.phase = 'converting_image')",
            &ids,
            now,
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
        // As `CachedImage::distrusted`.
        self.run(sqlx::query!(
            "-- images::distrust_files
             update cached_images c
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
}

impl Store {
    /// The images at these paths. `jobs` are about to choose a file of theirs, and have chosen none.
    async fn images_at(
        &self,
        cluster: &ClusterName,
        paths: &[String],
        jobs: &[Uuid],
    ) -> Result<Vec<ImageRow>> {
        let rows = sqlx::query_as!(
            ImageRow,
            r#"-- images::images_at
               select c.cluster, c.cache_path, c.image, c.file, c.file_seen_at, c.file_began_at, c.damaged_files, c.damaged_at, c.error,
                      c.failures, c.retry_at, c.target, c.version, j.id as "conversion?", j.status as "status?",
                      j.phase as "phase?", j.submitted_at, j.message as "message?", j.desired_state as "desired_state?", j.created_at as "created_at?", j.started_at, j.finished_at,
                      -- A leased job may just have chosen a file that was found damaged since.
                      exists (
                          select from jobs r
                          left join slurm_metadata a on a.job_id = r.id and a.attempt = r.attempt
                          cross join lateral
                              (select jsonb_path_query_array(r.spec, '$.work.list[*].image') || coalesce(r.spec -> 'image', 'null') as images) of_spec
                          where c.damaged_files <> '{}' and r.cluster = c.cluster and r.phase <> 'ended'
                            and (a.concluded_at is null
                                 and jsonb_path_query_array(a.images, '$[*].image') ?| c.damaged_files
                                 or of_spec.images ?| c.damaged_files
                                 or of_spec.images ? c.image and r.lease_expires_at > now() and r.id <> all ($3))
                      ) as "reads_damaged!"
               from cached_images c left join jobs j on j.id = c.conversion
               where c.cluster = $1 and c.cache_path = any($2)
               order by c.cache_path"#,
            cluster.as_str(),
            paths,
            jobs,
        );
        Ok(rows.fetch_all(&self.pool).await?)
    }

    async fn record_images_together(
        &self,
        cluster: &ClusterName,
        records: &[ImageRecord],
    ) -> Result<HashSet<RemotePath>> {
        let changes: Vec<Value> = records.iter().map(|record| document(&record.image)).collect();
        let mut tx = self.begin().await?;
        let current = sqlx::query_scalar!(
            "-- images::record_images_together current
             select c.cache_path
             from jsonb_populate_recordset(null::cached_images, $2) u
             join cached_images c on c.cluster = $1 and c.cache_path = u.cache_path and c.version = u.version
             order by c.cache_path
             for update of c",
            cluster.as_str(),
            Value::from(changes.clone()),
        )
        .fetch_all(&mut *tx)
        .await?;
        let stored: HashSet<RemotePath> = current.iter().filter_map(|path| path.parse().ok()).collect();
        let begun = records.iter().filter(|record| stored.contains(&record.image.cache_path));
        let begun = begun.filter_map(|record| record.conversion.clone());
        let begun: Vec<NewJob> =
            begun.map(|job| NewJob { job, secrets: Secrets::default(), request_hash: [0; 32] }).collect();
        if !begun.is_empty() {
            self.insert_rows(&mut *tx, &begun.iter().collect::<Vec<_>>()).await?;
        }
        sqlx::query!(
            "-- images::record_images_together
             update cached_images c
             set file = u.file, file_seen_at = u.file_seen_at, file_began_at = u.file_began_at, damaged_files = u.damaged_files,
                 damaged_at = u.damaged_at, error = u.error, failures = u.failures, retry_at = u.retry_at, conversion = u.conversion,
                 target = u.target, version = c.version + 1, updated_by = 'record_images'
             from jsonb_populate_recordset(null::cached_images, $2) u
             where c.cluster = $1 and c.cache_path = u.cache_path and c.version = u.version",
            cluster.as_str(),
            Value::from(changes),
        )
        .execute(&mut *tx)
        .await?;
        tx.commit().await?;
        Ok(stored)
    }

    async fn await_together(&self, cluster: &ClusterName, waits: &[Wait], now: Timestamp) -> Result<()> {
        let jobs: Vec<_> = waits.iter().map(|wait| wait.job.get()).collect();
        let conversions: Vec<_> = waits.iter().map(|wait| wait.conversion.get()).collect();
        let until: Vec<_> = waits.iter().map(|wait| wait.until).collect();
        let versions: Vec<_> = waits.iter().map(|wait| wait.version).collect();
        let mut tx = self.begin().await?;
        // The locks hold until the needs are visible to the end of a conversion, and to a job that leaves.
        sqlx::query!(
            "-- images::await_together
             with converting as (
                 select c.id, c.phase from jobs c where c.id = any($2) order by c.id for share
             ), waiting as (
                 update jobs w
                 set due_at = case when c.phase <> 'ended' and w.version = u.version then now() + (u.until - $4) else now() end, updated_by = 'await_conversions'
                 from unnest($1::uuid[], $2::uuid[], $3::timestamptz[], $5::bigint[]) as u(id, conversion, until, version)
                 left join converting c on c.id = u.conversion
                 where w.id = u.id and w.phase = 'converting_image'
                 returning w.id, c.id as conversion
             )
             insert into needs as n (job_id, place, needed)
             select id, -1, conversion from waiting where conversion is not null
             on conflict (job_id, place) do update set needed = excluded.needed
             where n.needed is distinct from excluded.needed",
            &jobs,
            &conversions,
            &until,
            now,
            &versions,
        )
        .execute(&mut *tx)
        .await?;
        listen::wake(&mut tx, cluster, None).await?;
        Ok(tx.commit().await?)
    }
}

#[cfg(test)]
mod tests;

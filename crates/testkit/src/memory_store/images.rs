//! What is known of the images in the clusters' caches, and the jobs that wait for conversions.

use std::collections::HashSet;

use domain::{
    CachedImage, ClusterName, Conversion, DesiredState, FileFault, ImageRef, JobId, Phase, Status, Timestamp,
};
use persistence::{ImageRecord, ImageRequest, Images, Lane, StoreError, Wait};
use slurm::RemotePath;

use super::{JobRow, MemoryStore, Tables, is_free};

impl Images for MemoryStore {
    async fn request_images(
        &self,
        cluster: &ClusterName,
        requests: &[ImageRequest],
    ) -> Result<Vec<CachedImage>, StoreError> {
        let now = self.now();
        let mut tables = self.tables();
        let jobs: Vec<JobId> = requests.iter().map(|request| request.job).collect();
        for ImageRequest { cache_path, image, .. } in requests {
            let key = (cluster.clone(), cache_path.clone());
            let new = || CachedImage::new(cluster.clone(), cache_path.clone(), image.clone());
            tables.images.entry(key).or_insert_with(new);
        }
        let paths: HashSet<&RemotePath> = requests.iter().map(|request| &request.cache_path).collect();
        let wanted =
            tables.images.values().filter(|one| one.cluster == *cluster && paths.contains(&one.cache_path));
        Ok(wanted.map(|image| tables.current(image, &jobs, now)).collect())
    }

    async fn record_images(
        &self,
        cluster: &ClusterName,
        records: &[ImageRecord],
    ) -> Result<HashSet<RemotePath>, StoreError> {
        let now = self.now();
        let mut tables = self.tables();
        let mut stored = HashSet::new();
        for ImageRecord { image, conversion } in records {
            let key = (cluster.clone(), image.cache_path.clone());
            let Some(known) = tables.images.get_mut(&key).filter(|known| known.version == image.version)
            else {
                continue;
            };
            *known = CachedImage { version: image.version + 1, reads_damaged: false, ..image.clone() };
            if let Some(job) = conversion {
                tables.jobs.insert(job.id, JobRow::new(job.clone(), None, [0; 32], now));
                tables.wake(cluster, Some(Lane::of(job.phase)));
            }
            stored.insert(image.cache_path.clone());
        }
        Ok(stored)
    }

    async fn await_conversions(
        &self,
        cluster: &ClusterName,
        waits: &[Wait],
        at: Timestamp,
    ) -> Result<(), StoreError> {
        let now = self.now();
        let mut tables = self.tables();
        for Wait { job: id, conversion, until, version } in waits {
            let lives = tables.jobs.get(conversion).map(|row| row.job.phase != Phase::Ended);
            let Some(row) = tables.jobs.get_mut(id).filter(|row| row.job.phase == Phase::ConvertingImage)
            else {
                continue;
            };
            if lives.is_some() {
                row.conversion = Some(*conversion);
            }
            let rests = lives == Some(true) && row.job.version == *version;
            row.due_at = Some(if rests { now + (*until - at) } else { now });
        }
        if !waits.is_empty() {
            tables.wake(cluster, None);
        }
        Ok(())
    }

    async fn give_up_conversions(
        &self,
        _: &ClusterName,
        conversions: &[JobId],
        at: Timestamp,
    ) -> Result<(), StoreError> {
        let now = self.now();
        let mut tables = self.tables();
        for conversion in conversions {
            tables.cancel_unneeded(*conversion, at, now);
        }
        Ok(())
    }

    async fn distrust_files(
        &self,
        cluster: &ClusterName,
        files: &[(&RemotePath, FileFault)],
    ) -> Result<(), StoreError> {
        let now = self.now();
        for image in self.tables().images.values_mut().filter(|image| image.cluster == *cluster) {
            for (file, fault) in files {
                if image.file.as_ref() == Some(*file)
                    && let Some(distrusted) = image.distrusted(*fault, now)
                {
                    *image = distrusted;
                }
            }
        }
        Ok(())
    }
}

impl Tables {
    /// The image with what is stored of its conversion. `jobs` are about to choose a file of it.
    fn current(&self, image: &CachedImage, jobs: &[JobId], now: Timestamp) -> CachedImage {
        let stored = |known: &Conversion| {
            let job = &self.jobs.get(&known.job)?.job;
            Some(Conversion {
                job: known.job,
                target: known.target.clone(),
                status: job.status,
                phase: job.phase,
                submitted_at: job.submitted_at,
                message: job.message.clone(),
                is_unneeded: job.desired != DesiredState::Run,
                created_at: job.created_at,
                started_at: job.started_at,
                finished_at: job.finished_at,
            })
        };
        CachedImage {
            conversion: image.conversion.as_ref().and_then(stored),
            reads_damaged: self.reads_damaged(image, jobs, now),
            ..image.clone()
        }
    }

    /// Whether a job may be reading a damaged file, or holds a lease in which it may have chosen it.
    fn reads_damaged(&self, image: &CachedImage, choosing: &[JobId], now: Timestamp) -> bool {
        let is_damaged =
            |one: &ImageRef| matches!(one, ImageRef::File(file) if image.damaged_files.contains(file));
        !image.damaged_files.is_empty()
            && self.jobs.values().any(|JobRow { job, attempt, attempts, held, .. }| {
                let open = attempts.get(attempt).filter(|attempt| attempt.is_open());
                let uses = open.into_iter().flat_map(|attempt| &attempt.images).map(|launch| &launch.image);
                let chooses = || {
                    job.spec.images().contains(&&image.image)
                        && !is_free(*held, now)
                        && !choosing.contains(&job.id)
                };
                job.cluster == image.cluster
                    && job.phase != Phase::Ended
                    && (uses.chain(job.spec.images()).any(is_damaged) || chooses())
            })
    }

    /// After each change of a row: a conversion is canceled when the last job leaves that waited for it.
    pub(super) fn leave_conversion(&mut self, id: JobId, before: Phase, clock: Timestamp) {
        let Some(row) = self.jobs.get_mut(&id) else { return };
        if before != Phase::ConvertingImage || row.job.phase == Phase::ConvertingImage {
            return;
        }
        let at = row.job.last_modified;
        if let Some(conversion) = row.conversion.take() {
            self.cancel_unneeded(conversion, at, clock);
        }
    }

    /// Cancels a conversion, unless a job waits for it.
    fn cancel_unneeded(&mut self, conversion: JobId, at: Timestamp, clock: Timestamp) {
        let waits =
            |row: &JobRow| row.conversion == Some(conversion) && row.job.phase == Phase::ConvertingImage;
        if self.jobs.values().any(waits) {
            return;
        }
        let Some(row) = self.jobs.get_mut(&conversion) else { return };
        if row.job.phase == Phase::Ended
            || !matches!(row.job.desired, DesiredState::Run | DesiredState::Pause)
        {
            return;
        }
        let stage = row.stage();
        let job = &mut row.job;
        (job.desired, job.status, job.last_modified) = (DesiredState::Cancel, Status::Canceling, at);
        "Canceling: no job needs the image any more.".clone_into(&mut job.message);
        job.version += 1;
        row.due_at = Some(clock);
        row.changed_from(stage);
        let cluster = row.job.cluster.clone();
        self.wake(&cluster, None);
    }
}

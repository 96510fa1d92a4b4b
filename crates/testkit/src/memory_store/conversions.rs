//! Conversions of images: the jobs that wait for them, the right to take a step of one, and the results.

use std::{collections::HashSet, time::Duration};

use domain::{
    Abandoned, ClusterName, Conversion, ConversionState, Demand, DesiredState, FileFault, ImageRef, JobId,
    Phase, Timestamp,
};
use persistence::{
    ConversionLease, ConversionRecord, ConversionRecords, ConversionTurns, ImageRequest, ImageRequests, Lane,
    LeaseTerms, StoreError,
};
use slurm::RemotePath;
use uuid::Uuid;

use super::{Held, JobRow, MemoryStore, Right, Tables, Turn, after, is_free, is_held, until};

#[derive(Debug)]
pub(super) struct ConversionRow {
    conversion: Conversion,
    due_at: Option<Timestamp>,
    held: Held,
}

impl ConversionRow {
    pub(super) fn conversion(&self) -> &Conversion {
        &self.conversion
    }
}

/// Which conversion a job waits for, or has waited for.
#[derive(Debug)]
pub(super) struct Wait {
    conversion: Uuid,
    fresh: bool,
}

impl ImageRequests for MemoryStore {
    async fn request_images(
        &self,
        cluster: &ClusterName,
        requests: &[ImageRequest],
    ) -> Result<Vec<Conversion>, StoreError> {
        let now = self.now();
        let mut tables = self.tables();
        let mut found: Vec<Conversion> = Vec::new();
        for request in requests {
            let conversion = tables.conversion_of(cluster, request, now);
            if tables.jobs.contains_key(&request.job) {
                tables.waits.insert(request.job, Wait { conversion: conversion.id, fresh: request.fresh });
            }
            if found.iter().all(|known| known.id != conversion.id) {
                found.push(conversion);
            }
        }
        Ok(found)
    }

    async fn reopen_conversions(
        &self,
        cluster: &ClusterName,
        conversions: &[&Conversion],
    ) -> Result<(), StoreError> {
        let now = self.now();
        let mut tables = self.tables();
        for conversion in conversions {
            let Some(row) = tables.conversions.get_mut(&conversion.id) else { continue };
            if match row.conversion.state {
                ConversionState::Ready | ConversionState::Failed => true,
                ConversionState::Requested => row.due_at.is_none() || row.held.is_some(),
                _ => false,
            } {
                row.conversion = row.conversion.reopened();
                row.conversion.version += 1;
                row.due_at = Some(now);
            }
        }
        if !conversions.is_empty() {
            tables.wake(cluster, None);
        }
        Ok(())
    }

    async fn distrust_files(
        &self,
        cluster: &ClusterName,
        files: &[(&RemotePath, FileFault)],
    ) -> Result<(), StoreError> {
        let now = self.now();
        for row in self.tables().conversions.values_mut().filter(|row| row.conversion.cluster == *cluster) {
            for (file, fault) in files {
                if row.conversion.file.as_ref() == Some(*file)
                    && let Some(distrusted) = row.conversion.distrusted(*fault, now)
                {
                    row.conversion = distrusted;
                }
            }
        }
        Ok(())
    }

    async fn active_conversions(&self, cluster: &ClusterName) -> Result<Vec<Conversion>, StoreError> {
        let tables = self.tables();
        let rows = tables.conversions.values().map(|row| &row.conversion);
        Ok(rows.filter(|one| one.cluster == *cluster && one.is_in_slurm()).cloned().collect())
    }

    async fn recheck_conversions(&self, cluster: &ClusterName, jobs: &[JobId]) -> Result<(), StoreError> {
        let now = self.now();
        let mut tables = self.tables();
        let ids: HashSet<Uuid> =
            jobs.iter().filter_map(|job| tables.waits.get(job)).map(|wait| wait.conversion).collect();
        for row in tables.conversions.values_mut().filter(|row| ids.contains(&row.conversion.id)) {
            if matches!(
                row.conversion.state,
                ConversionState::Submitting | ConversionState::InQueue | ConversionState::Running
            ) {
                row.due_at = Some(now);
                row.conversion.version += 1;
            }
        }
        if !jobs.is_empty() {
            tables.wake(cluster, None);
        }
        Ok(())
    }

    async fn wake_changed(&self, jobs: &[(JobId, &Conversion)]) -> Result<(), StoreError> {
        let now = self.now();
        let mut tables = self.tables();
        for (id, known) in jobs {
            let moved =
                tables.conversions.get(&known.id).is_some_and(|row| row.conversion.version != known.version);
            if let Some(row) = tables.jobs.get_mut(id).filter(|_| moved)
                && row.job.phase == Phase::ConvertingImage
            {
                row.due_at = Some(now);
            }
        }
        Ok(())
    }
}

impl ConversionTurns for MemoryStore {
    async fn acquire_conversions(
        &self,
        cluster: &ClusterName,
        token: Uuid,
        terms: LeaseTerms,
    ) -> Result<ConversionLease, StoreError> {
        let now = self.now();
        let mut tables = self.tables();
        let mut due: Vec<_> = tables
            .conversions
            .values_mut()
            .filter(|row| row.conversion.cluster == *cluster && is_free(row.held, now))
            .filter(|row| row.due_at.is_some_and(|due| due <= now))
            .collect();
        due.sort_by_key(|row| row.due_at);
        due.truncate(terms.limit as usize);
        let mut leased = Vec::with_capacity(due.len());
        for row in due {
            row.held = Some((token, after(now, terms.duration)));
            leased.push(row.conversion.clone());
        }
        tables.turns.extend(leased.iter().map(|one| Turn::Given(Right::Conversion(one.id), token)));
        let leased = leased.into_iter().map(|conversion| {
            let demand = tables.demand(conversion.id, now);
            (conversion, demand)
        });
        Ok(ConversionLease { token, conversions: leased.collect(), granted_on: Some(now) })
    }

    async fn extend_conversions(
        &self,
        lease: &ConversionLease,
        duration: Duration,
    ) -> Result<(), StoreError> {
        let now = self.now();
        let mut extended = 0;
        for row in self.tables().conversions.values_mut().filter(|row| is_held(row.held, lease.token, now)) {
            row.held = Some((lease.token, after(now, duration)));
            extended += 1;
        }
        if extended == 0 { Err(StoreError::LeaseLost { what: "conversions".to_owned() }) } else { Ok(()) }
    }

    async fn put_off_conversions(
        &self,
        lease: &ConversionLease,
        conversions: &[(Uuid, Option<Abandoned>)],
        due_in: Option<Duration>,
    ) -> Result<(), StoreError> {
        let now = self.now();
        let mut tables = self.tables();
        for (id, abandoned) in conversions {
            let Some(row) = tables.conversions.get_mut(id).filter(|row| is_held(row.held, lease.token, now))
            else {
                continue;
            };
            row.due_at = match row.conversion.state {
                ConversionState::Finishing => Some(now),
                _ => due_in.map(|pause| after(now, pause)),
            };
            row.conversion.abandoned = abandoned.or(row.conversion.abandoned);
            row.held = None;
        }
        Ok(())
    }

    async fn next_conversion_in(&self, cluster: &ClusterName) -> Result<Option<Duration>, StoreError> {
        let now = self.now();
        let tables = self.tables();
        let rows = tables.conversions.values().filter(|row| row.conversion.cluster == *cluster);
        let next = rows
            .filter_map(|row| Some(row.due_at?.max(row.held.map_or(row.due_at?, |(_, until)| until))))
            .min();
        Ok(next.map(|due| until(due, now)))
    }
}

impl ConversionRecords for MemoryStore {
    async fn record_conversions(
        &self,
        lease: &ConversionLease,
        cluster: &ClusterName,
        records: &[ConversionRecord],
        release: bool,
        now: Timestamp,
    ) -> Result<HashSet<Uuid>, StoreError> {
        let clock = self.now();
        let mut tables = self.tables();
        let mut stored = HashSet::new();
        for ConversionRecord { conversion, due_at } in records {
            let Some(row) = tables
                .conversions
                .get_mut(&conversion.id)
                .filter(|row| is_held(row.held, lease.token, clock))
            else {
                continue;
            };
            let version = row.conversion.version;
            row.due_at = match due_at {
                _ if version != conversion.version => Some(clock),
                due_at => due_at.map(|due| clock + (due - now)),
            };
            let known = std::mem::replace(
                &mut row.conversion,
                Conversion { version: version + 1, ..conversion.clone() },
            );
            if version != conversion.version {
                row.conversion.damaged_files = known.damaged_files;
                row.conversion.damaged_at = known.damaged_at;
            }
            if release {
                row.held = None;
            }
            stored.insert(conversion.id);
        }
        tables.turns.extend(stored.iter().map(|id| Turn::Used(Right::Conversion(*id), lease.token)));
        tables.wake_waiters(cluster, &stored, clock);
        Ok(stored)
    }

    async fn record_observed_conversions(
        &self,
        cluster: &ClusterName,
        conversions: &[Conversion],
    ) -> Result<(), StoreError> {
        let clock = self.now();
        let mut tables = self.tables();
        let mut stored = HashSet::new();
        for seen in conversions {
            let Some(row) = tables
                .conversions
                .get_mut(&seen.id)
                .filter(|row| row.conversion.version == seen.version && row.conversion.is_in_slurm())
            else {
                continue;
            };
            let known = &mut row.conversion;
            known.state = seen.state;
            known.message.clone_from(&seen.message);
            if let (Some(run), Some(now)) = (&mut known.run, &seen.run) {
                run.slurm_state.clone_from(&now.slurm_state);
                run.exit = now.exit;
                run.queued_since = now.queued_since;
                run.began_at = now.began_at;
                run.finishing_since = now.finishing_since;
                run.missing_since = now.missing_since;
            }
            known.version += 1;
            let is_new_reason = known.abandoned.is_none() && seen.abandoned.is_some();
            known.abandoned = known.abandoned.or(seen.abandoned);
            if known.state == ConversionState::Finishing || is_new_reason {
                row.due_at = Some(clock);
            }
            stored.insert(seen.id);
        }
        tables.wake_waiters(cluster, &stored, clock);
        Ok(())
    }
}

impl Tables {
    /// The conversion that a request is for; added if it does not exist.
    fn conversion_of(&mut self, cluster: &ClusterName, request: &ImageRequest, now: Timestamp) -> Conversion {
        let known = self.conversions.values().map(|row| &row.conversion);
        let mut known = known.filter(|one| one.cluster == *cluster && one.cache_path == request.cache_path);
        if let Some(conversion) = known.next() {
            return conversion.clone();
        }
        let conversion = Conversion {
            id: Uuid::from_u128(0x5150 << 64 | (self.conversions.len() as u128 + 1)),
            cluster: cluster.clone(),
            cache_path: request.cache_path.clone(),
            image: request.image.clone(),
            state: ConversionState::Requested,
            message: "Checking the cache for the image.".to_owned(),
            file: None,
            file_seen_at: None,
            damaged_files: Vec::new(),
            damaged_at: None,
            file_began_at: None,
            error: None,
            failures: 0,
            retry_at: None,
            mishaps: 0,
            abandoned: None,
            run: None,
            version: 1,
        };
        let row = ConversionRow { conversion: conversion.clone(), due_at: Some(now), held: None };
        self.conversions.insert(conversion.id, row);
        conversion
    }

    /// The jobs that wait for a conversion now.
    fn demand(&self, conversion: Uuid, now: Timestamp) -> Demand {
        let mut demand = Demand::default();
        for (id, wait) in self.waits.iter().filter(|(_, wait)| wait.conversion == conversion) {
            let Some(row) = self.jobs.get(id) else { continue };
            let waits = matches!(row.job.phase, Phase::Queued | Phase::ConvertingImage | Phase::RetryWait);
            if waits && row.job.desired == DesiredState::Run {
                demand.waiters += 1;
                demand.fresh_since = demand.fresh_since.max(wait.fresh.then_some(row.job.created_at));
            }
        }
        demand.reads_damaged = demand.waiters > 0 && self.reads_damaged(conversion, now);
        demand
    }

    /// Whether a job may be reading a damaged file, or holds a lease in which it may have chosen it.
    fn reads_damaged(&self, id: Uuid, now: Timestamp) -> bool {
        let Some(row) = self.conversions.get(&id) else { return false };
        let is_damaged = |image: &ImageRef| matches!(image, ImageRef::File(file) if row.conversion.damaged_files.contains(file));
        !row.conversion.damaged_files.is_empty()
            && self.jobs.values().any(|JobRow { job, attempt, attempts, held, .. }| {
                let open = attempts.get(attempt).filter(|attempt| attempt.is_open());
                let uses = open.and_then(|attempt| attempt.image.as_ref()).map(|launch| &launch.image);
                let waits = || self.waits.get(&job.id).is_some_and(|wait| wait.conversion == id);
                job.cluster == row.conversion.cluster
                    && job.phase != Phase::Ended
                    && (uses.into_iter().chain(&job.spec.image).any(is_damaged)
                        || !is_free(*held, now) && waits())
            })
    }

    /// Makes the jobs that wait for these conversions due at once.
    fn wake_waiters(&mut self, cluster: &ClusterName, conversions: &HashSet<Uuid>, now: Timestamp) {
        if conversions.is_empty() {
            return;
        }
        for (id, _) in self.waits.iter().filter(|(_, wait)| conversions.contains(&wait.conversion)) {
            if let Some(row) = self.jobs.get_mut(id).filter(|row| row.job.phase == Phase::ConvertingImage) {
                row.due_at = Some(now);
            }
        }
        self.wake(cluster, Some(Lane::Submit));
    }
}

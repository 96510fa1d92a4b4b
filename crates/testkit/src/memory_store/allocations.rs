//! What Slurm accounts for.

use std::{collections::BTreeMap, time::Duration};

use chrono::TimeDelta;
use domain::{ClusterName, Phase, Timestamp};
use persistence::{AllocationRecords, StoreError};
use remote::{Accounted, AttemptKey};
use slurm::{JobName, SlurmJobId};

use super::{MemoryStore, Tables, after};

/// A Slurm job and what accounting told about it.
#[derive(Debug)]
pub(super) struct AccountRow {
    cluster: ClusterName,
    id: SlurmJobId,
    key: AttemptKey,
    ask_at: Timestamp,
    asked_since: Option<Timestamp>,
    found_at: Option<Timestamp>,
    settled: bool,
}

/// The allocations of a Slurm job by its id and their start, in seconds since 1970; each with its seconds.
pub(super) type Allocated = BTreeMap<(SlurmJobId, i64), u64>;

impl MemoryStore {
    /// The allocations that are stored. Of a Slurm job whose runs have all ended, also when that was found.
    pub fn allocations(&self) -> (Allocated, BTreeMap<(JobName, SlurmJobId), Timestamp>) {
        let tables = self.tables();
        let found = |((name, id), row): (&(JobName, SlurmJobId), &AccountRow)| {
            Some(((name.clone(), *id), row.found_at?))
        };
        (tables.allocations.clone(), tables.accounts.iter().filter_map(found).collect())
    }
}

impl Tables {
    /// Notes the Slurm jobs that are not noted yet. A trigger does this in the real store.
    pub(super) fn note_unaccounted(&mut self, now: Timestamp) {
        for (id, row) in &self.jobs {
            for attempt in row.attempts.values() {
                let Some(slurm_id) = attempt.slurm_id else { continue };
                self.accounts.entry((attempt.token.clone(), slurm_id)).or_insert_with(|| AccountRow {
                    cluster: row.job.cluster.clone(),
                    id: slurm_id,
                    key: attempt.key(*id),
                    ask_at: now,
                    asked_since: None,
                    found_at: None,
                    settled: false,
                });
            }
        }
    }

    /// The ends of these Slurm jobs change.
    pub(super) fn account_again(&mut self, ids: &[SlurmJobId], now: Timestamp) {
        for row in self.accounts.values_mut().filter(|row| !row.settled && ids.contains(&row.id)) {
            row.found_at = None;
            row.ask_at = row.ask_at.min(now + TimeDelta::minutes(1));
        }
    }

    /// The Slurm jobs of attempts that have not been concluded.
    fn open_names(&self) -> Vec<JobName> {
        let jobs = self.jobs.values().filter(|row| row.job.phase != Phase::Ended);
        let open = jobs.flat_map(|row| row.attempts.values()).filter(|attempt| attempt.is_open());
        open.map(|attempt| attempt.token.clone()).collect()
    }
}

impl AllocationRecords for MemoryStore {
    async fn take_unaccounted(
        &self,
        cluster: &ClusterName,
        most: u32,
        patience: Duration,
    ) -> Result<Vec<(SlurmJobId, AttemptKey)>, StoreError> {
        let now = self.now();
        let mut tables = self.tables();
        let open = tables.open_names();
        let due = tables.accounts.iter_mut().filter(|((name, _), row)| {
            row.cluster == *cluster && !row.settled && row.ask_at <= now && !open.contains(name)
        });
        let take = |(_, row): (&(JobName, SlurmJobId), &mut AccountRow)| {
            row.ask_at = after(now, patience);
            row.asked_since.get_or_insert(now);
            (row.id, row.key.clone())
        };
        Ok(due.take(usize::try_from(most).unwrap_or(usize::MAX)).map(take).collect())
    }

    async fn record_allocations(
        &self,
        _: &ClusterName,
        jobs: &[(SlurmJobId, AttemptKey)],
        told: &[Accounted],
        soon: Duration,
        late: Duration,
    ) -> Result<(), StoreError> {
        let now = self.now();
        let mut tables = self.tables();
        for ((id, key), told) in jobs.iter().zip(told) {
            for run in told.runs.iter().filter(|run| run.is_over() && run.elapsed > 0) {
                if let Some(start) = run.start {
                    tables.allocations.insert((run.id, start), run.elapsed);
                }
            }
            let Some(row) = tables.accounts.get_mut(&(key.name.clone(), *id)) else { continue };
            let over = told.is_over();
            let since = (now - row.asked_since.unwrap_or(now)).to_std().unwrap_or_default();
            row.settled |= over && row.found_at.is_some() && since >= late;
            let wait = match row.found_at {
                Some(_) if over => late.saturating_sub(since).max(soon),
                None if over => soon,
                _ => since.clamp(Duration::from_secs(15), Duration::from_hours(1)),
            };
            row.ask_at = after(now, wait);
            row.found_at = over.then_some(now);
        }
        Ok(())
    }
}

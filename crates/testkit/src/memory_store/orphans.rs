//! Orphans: jobs on a cluster with our names that the service does not track.

use std::collections::HashMap;

use domain::{Ahead, AttemptNo, ClusterName, JobId, Origin, Orphan, Phase, Record, Timestamp};
use persistence::{OrphanRecords, PollLease, StoreError};
use serde_json::json;
use slurm::SlurmJobId;

use super::{MemoryStore, Tables, is_held};

impl OrphanRecords for MemoryStore {
    async fn records_of(
        &self,
        cluster: &ClusterName,
        origins: &[Origin],
    ) -> Result<HashMap<Origin, Record>, StoreError> {
        let tables = self.tables();
        Ok(origins.iter().map(|origin| (*origin, tables.record_of(cluster, origin.job))).collect())
    }

    async fn record_orphans(
        &self,
        lease: &PollLease,
        orphans: &[Orphan],
        condemned: &[SlurmJobId],
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let clock = self.now();
        let mut tables = self.tables();
        match tables.polls.get_mut(&lease.cluster).filter(|row| is_held(row.held, lease.token, clock)) {
            Some(row) => row.orphans = orphans.to_vec(),
            None => return Err(lease.lost()),
        }
        for orphan in orphans.iter().filter(|orphan| condemned.contains(&orphan.slurm_id)) {
            let Some(row) = orphan.job().and_then(|id| tables.jobs.get_mut(&id)) else { continue };
            let data = json!({
                "orphan": orphan.kind, "slurm_job_id": orphan.slurm_id.to_string(),
                "slurm_job_name": orphan.name, "message": orphan.sentence(),
            });
            row.add_event("orphan", None, false, data, row.attempt, now);
        }
        tables.account_again(condemned, clock);
        Ok(())
    }
}

impl Tables {
    fn record_of(&self, cluster: &ClusterName, id: JobId) -> Record {
        match self.jobs.get(&id) {
            None if self.deleted.contains(&id) => Record::Deleted,
            None => Record::None,
            Some(row) if row.job.cluster != *cluster => Record::Elsewhere,
            Some(row) => {
                let newest = row.attempts.get(&row.attempt);
                let is_over = newest.is_some_and(|attempt| attempt.verdict.is_some());
                Record::Known {
                    newest: AttemptNo::new(row.attempt),
                    open: row.job.phase != Phase::Ended && !is_over,
                    slurm_id: newest.and_then(|attempt| attempt.slurm_id),
                    ahead: match row.job.phase {
                        _ if !row.job.spec.restart.prequeue => Ahead::Never,
                        Phase::Ended | Phase::Paused => Ahead::Useless,
                        _ => Ahead::Expected,
                    },
                }
            }
        }
    }
}

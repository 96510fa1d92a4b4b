//! The right to take a step of a job.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use domain::{ClusterName, DesiredState, Job, Phase};
use persistence::{DueJobs, Lane, Lease, LeaseTerms, StoreError};
use uuid::Uuid;

use super::{Inbox, MemoryNotices, MemoryStore, Right, Turn, after, is_free, is_held, until};

impl DueJobs for MemoryStore {
    type Notices = MemoryNotices;

    async fn listen_due(&self) -> Result<MemoryNotices, StoreError> {
        let inbox = Arc::new(Mutex::new(Inbox::default()));
        self.tables().listeners.push(Arc::clone(&inbox));
        Ok(MemoryNotices(inbox))
    }

    async fn acquire_due(
        &self,
        cluster: &ClusterName,
        lane: Lane,
        token: Uuid,
        terms: LeaseTerms,
    ) -> Result<Lease, StoreError> {
        Ok(self.acquire(cluster, lane, token, terms))
    }

    async fn extend(&self, lease: &Lease, duration: Duration) -> Result<(), StoreError> {
        let now = self.now();
        let mut extended = 0;
        for row in self.tables().jobs.values_mut().filter(|row| is_held(row.held, lease.token, now)) {
            row.held = Some((lease.token, after(now, duration)));
            extended += 1;
        }
        if extended == 0 { Err(StoreError::LeaseLost { what: "jobs".to_owned() }) } else { Ok(()) }
    }

    async fn put_off(&self, lease: &Lease, jobs: &[Job], due_in: Option<Duration>) -> Result<(), StoreError> {
        let now = self.now();
        let mut tables = self.tables();
        for job in jobs {
            let Some(row) = tables.jobs.get_mut(&job.id).filter(|row| is_held(row.held, lease.token, now))
            else {
                continue;
            };
            let has_changed =
                row.job.desired != job.desired || (due_in.is_none() && row.job.version != job.version);
            row.due_at = match row.job.phase {
                Phase::Finishing => Some(now),
                Phase::Ended if row.job.desired != DesiredState::Delete => None,
                _ if has_changed => Some(now),
                _ => due_in.map(|pause| after(now, pause)),
            };
            row.held = None;
        }
        Ok(())
    }

    async fn next_due_in(&self, cluster: &ClusterName, lane: Lane) -> Result<Option<Duration>, StoreError> {
        let now = self.now();
        let tables = self.tables();
        let next = tables
            .jobs
            .values()
            .filter(|row| row.job.cluster == *cluster && Lane::of(row.job.phase) == lane)
            .filter_map(|row| Some(row.due_at?.max(row.held.map_or(row.due_at?, |(_, until)| until))))
            .min();
        Ok(next.map(|due| until(due, now)))
    }
}

impl MemoryStore {
    fn acquire(&self, cluster: &ClusterName, lane: Lane, token: Uuid, terms: LeaseTerms) -> Lease {
        let now = self.now();
        let mut tables = self.tables();
        let mut due: Vec<_> = tables
            .jobs
            .values_mut()
            .filter(|row| row.job.cluster == *cluster && Lane::of(row.job.phase) == lane)
            .filter(|row| row.due_at.is_some_and(|due| due <= now) && is_free(row.held, now))
            .filter(|row| {
                !terms.only_stopped || row.job.desired != DesiredState::Run || row.job.phase == Phase::Waiting
            })
            .collect();
        due.sort_by_key(|row| row.due_at);
        due.truncate(terms.limit as usize);
        for row in &mut due {
            row.held = Some((token, after(now, terms.duration)));
        }
        let jobs: Vec<_> = due.iter().map(|row| row.current()).collect();
        tables.turns.extend(jobs.iter().map(|job| Turn::Given(Right::Step(job.id), token)));
        Lease { token, jobs, granted_on: Some(now) }
    }
}

//! The right to poll a cluster, by lease, and what polls observed.

use std::time::Duration;

use chrono::TimeDelta;
use domain::{ActiveJob, ClusterName, Job, ObservedChange, Orphan, Phase, Run, Timestamp};
use persistence::{Observations, PollLease, PollResult, PollTurns, StoreError};
use uuid::Uuid;

use super::{Held, MemoryStore, Right, Tables, Turn, after, is_free, is_held, until};

#[derive(Debug)]
pub(super) struct PollRow {
    pub(super) held: Held,
    due_at: Timestamp,
    polled_at: Option<Timestamp>,
    interval: TimeDelta,
    unreachable_for: TimeDelta,
    pub(super) orphans: Vec<Orphan>,
}

impl PollTurns for MemoryStore {
    async fn acquire_poll(
        &self,
        cluster: &ClusterName,
        token: Uuid,
        duration: Duration,
    ) -> Result<Option<PollLease>, StoreError> {
        let now = self.now();
        let mut tables = self.tables();
        let row = tables.polls.entry(cluster.clone()).or_insert_with(|| PollRow {
            held: None,
            due_at: now,
            polled_at: None,
            interval: TimeDelta::seconds(5),
            unreachable_for: TimeDelta::zero(),
            orphans: Vec::new(),
        });
        if row.due_at > now || !is_free(row.held, now) {
            return Ok(None);
        }
        row.held = Some((token, after(now, duration)));
        let lease = PollLease {
            cluster: cluster.clone(),
            polled_at: row.polled_at,
            orphans: row.orphans.clone(),
            granted_on: now,
            token,
            interval: row.interval,
            unreachable_before: row.unreachable_for,
        };
        tables.turns.push(Turn::Given(Right::Poll, token));
        Ok(Some(lease))
    }

    async fn extend_poll(&self, lease: &PollLease, duration: Duration) -> Result<(), StoreError> {
        let now = self.now();
        match self.tables().polls.get_mut(&lease.cluster).filter(|row| is_held(row.held, lease.token, now)) {
            Some(row) => row.held = Some((lease.token, after(now, duration))),
            None => return Err(lease.lost()),
        }
        Ok(())
    }

    async fn record_poll(
        &self,
        lease: &PollLease,
        result: PollResult<'_>,
        interval: Duration,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let clock = self.now();
        let mut tables = self.tables();
        let Some(row) =
            tables.polls.get_mut(&lease.cluster).filter(|row| is_held(row.held, lease.token, clock))
        else {
            return Err(lease.lost());
        };
        row.held = None;
        row.due_at = after(clock, interval);
        let PollResult::Answered = result else { return Ok(()) };
        row.polled_at = Some(now);
        row.interval = TimeDelta::from_std(interval).unwrap_or(TimeDelta::MAX);
        row.unreachable_for = lease.unreachable_for(now);
        tables.turns.push(Turn::Used(Right::Poll, lease.token));
        Ok(())
    }

    async fn poll_soon(&self, cluster: &ClusterName, pace: Duration) -> Result<(), StoreError> {
        let now = self.now();
        if let Some(row) = self.tables().polls.get_mut(cluster) {
            row.due_at = row.due_at.min(now.max(after(row.polled_at.unwrap_or(now), pace)));
        }
        Ok(())
    }

    async fn next_poll_in(&self, cluster: &ClusterName) -> Result<Option<Duration>, StoreError> {
        let now = self.now();
        let tables = self.tables();
        let next = |row: &PollRow| row.held.map_or(row.due_at, |(_, until)| row.due_at.max(until));
        Ok(tables.polls.get(cluster).map(|row| until(next(row), now)))
    }
}

impl Observations for MemoryStore {
    async fn active_jobs(&self, cluster: &ClusterName) -> Result<Vec<ActiveJob>, StoreError> {
        let tables = self.tables();
        let active =
            |row: &&super::JobRow| row.job.cluster == *cluster && row.is_active() && row.job.array.is_none();
        let rows = tables.jobs.values().filter(active);
        Ok(rows.filter_map(|row| ActiveJob::of(&row.current())).collect())
    }

    async fn unchanged_jobs(&self, asked: &[&ActiveJob]) -> Result<Vec<Job>, StoreError> {
        let tables = self.tables();
        let as_asked = |job: &&ActiveJob| {
            tables.jobs.get(&job.id).filter(|row| row.job.version == job.version).map(super::JobRow::current)
        };
        Ok(asked.iter().filter_map(as_asked).collect())
    }

    async fn record_observations(
        &self,
        lease: &PollLease,
        changed: &[ObservedChange],
        now: Timestamp,
    ) -> Result<u64, StoreError> {
        let clock = self.now();
        let mut tables = self.tables();
        if !tables.polls.get(&lease.cluster).is_some_and(|row| is_held(row.held, lease.token, clock)) {
            return Err(lease.lost());
        }
        tables.turns.push(Turn::Used(Right::Poll, lease.token));
        Ok(changed.iter().filter(|next| tables.write(next, now, clock)).count() as u64)
    }
}

impl Tables {
    /// Writes a job if it has not changed since the poll read it.
    fn write(&mut self, next: &ObservedChange, now: Timestamp, clock: Timestamp) -> bool {
        let job = &next.job;
        let Some(row) =
            self.jobs.get_mut(&job.id).filter(|row| row.job.version == job.version && row.is_active())
        else {
            return false;
        };
        let (stage, before) = (row.stage(), row.before());
        row.add_lines(job, now);
        let old = &mut row.job;
        old.status = job.status;
        old.phase = job.phase;
        old.message.clone_from(&job.message);
        old.pending_reason.clone_from(&job.pending_reason);
        old.finishing_since = job.finishing_since;
        old.started_at = job.started_at;
        old.observed_at = job.observed_at;
        old.source = job.source;
        old.last_modified = now;
        old.version += 1;
        row.due_at = match job.phase {
            Phase::Finishing => Some(clock),
            _ => row.due_at.or(next.step_due.then_some(clock)),
        };
        if let Some(attempt) = &job.attempt {
            let known = row.runs.entry(attempt.no.get()).or_default();
            if !known.is_over {
                *known = Run { status: job.run.status.stored(), ..job.run.clone() };
            }
        }
        row.changed_from(stage);
        let broken = row.broken_rule().map(|rule| format!("{}: {rule}", job.id));
        self.refused.extend(broken);
        self.wake_needing(job.id, before, clock);
        true
    }
}

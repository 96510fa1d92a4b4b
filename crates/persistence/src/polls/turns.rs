//! The right to poll a cluster, by lease: one process at a time has it.

use std::{collections::HashMap, time::Duration};

use chrono::TimeDelta;
use domain::{ClusterName, Orphan, Timestamp};
use serde_json::Value;
use uuid::Uuid;

use crate::{
    error::{Result, StoreError},
    store::{Call, Store},
    values::{count, duration, millis},
};

/// The right to poll one cluster.
#[derive(Debug)]
pub struct PollLease {
    pub cluster: ClusterName,
    /// The last poll that was answered properly.
    pub polled_at: Option<Timestamp>,
    /// Jobs with our names that the service does not track, from the last poll.
    pub orphans: Vec<Orphan>,
    /// The time by the server clock.
    pub granted_on: Timestamp,
    pub token: Uuid,
    /// The poll interval at the last poll.
    pub interval: TimeDelta,
    /// The total time without an answer until the last poll.
    pub unreachable_before: TimeDelta,
}

impl PollLease {
    /// How long the cluster has been unreachable in total, if it answers now.
    pub fn unreachable_for(&self, now: Timestamp) -> TimeDelta {
        let gap = self.polled_at.map_or(TimeDelta::zero(), |last| now - last);
        if gap > self.interval * 3 + TimeDelta::seconds(30) {
            self.unreachable_before + gap
        } else {
            self.unreachable_before
        }
    }

    /// Keeps the right to poll until the end of the transaction. Fails if it is lost.
    pub(crate) async fn hold(&self, connection: &mut sqlx::PgConnection) -> Result<()> {
        let ours = sqlx::query_scalar!(
            r#"-- polls::turns::hold
               select true as "ours!" from cluster_polls
               where cluster = $1 and lease_token = $2 and lease_expires_at > now() for share"#,
            self.cluster.as_str(),
            self.token,
        );
        ours.fetch_optional(connection).await?.map(drop).ok_or_else(|| self.lost())
    }

    pub fn lost(&self) -> StoreError {
        StoreError::LeaseLost { what: format!("the poll of cluster {}", self.cluster) }
    }
}

/// The result of a poll.
#[derive(Debug, Clone, Copy)]
pub enum PollResult<'a> {
    /// The cluster answered, and the [observations](crate::Observations::record_observations) are stored.
    Answered,
    /// No job was active.
    Idle,
    /// The RPC budget did not allow it.
    PutOff,
    /// No proper answer: nothing is known, so nothing changes.
    Unanswered {
        error: &'a str,
        /// The cluster rejects all our keys.
        auth_required: bool,
    },
}

/// When a cluster was last polled.
#[derive(Debug, Clone, Copy)]
pub struct Pulse {
    /// The last poll that was answered properly.
    pub polled_at: Option<Timestamp>,
    /// The poll interval at that time.
    pub interval: Duration,
}

/// The polls of one cluster.
#[derive(Debug, Clone)]
pub struct PollState {
    /// The last poll that was answered properly.
    pub polled_at: Option<Timestamp>,
    /// The poll interval at that time.
    pub interval: Duration,
    /// The unanswered polls since.
    pub failures: u32,
    /// Why the last poll was not answered.
    pub error: Option<String>,
    /// Whether that is because the cluster rejects all our keys.
    pub auth_required: bool,
    /// When the next poll is due, by the server clock.
    pub due_at: Timestamp,
    /// Jobs that polls ask about.
    pub active_jobs: u64,
    /// Active jobs that neither squeue nor sacct knows now.
    pub missing_jobs: u64,
    /// Jobs on the cluster with our names that the service does not track.
    pub orphans: Vec<Orphan>,
}

/// The right to poll a cluster.
pub trait PollTurns {
    /// Takes the right to poll a cluster if a poll is due and no other process has it. `token` has to be new.
    fn acquire_poll(
        &self,
        cluster: &ClusterName,
        token: Uuid,
        duration: Duration,
    ) -> impl Call<Option<PollLease>>;

    /// Extends the lease, because the cluster has not answered yet.
    fn extend_poll(&self, lease: &PollLease, duration: Duration) -> impl Call<()>;

    /// Stores the result of a poll and returns the lease. The next poll is due after `interval`.
    fn record_poll(
        &self,
        lease: &PollLease,
        result: PollResult<'_>,
        interval: Duration,
        now: Timestamp,
    ) -> impl Call<()>;

    /// Brings the next poll of a cluster forward, because a job has just changed there. It stays at least `pace` after the last
    /// poll.
    fn poll_soon(&self, cluster: &ClusterName, pace: Duration) -> impl Call<()>;

    /// The time until the cluster's next poll; `None` before its first.
    fn next_poll_in(&self, cluster: &ClusterName) -> impl Call<Option<Duration>>;
}

impl PollTurns for Store {
    async fn acquire_poll(
        &self,
        cluster: &ClusterName,
        token: Uuid,
        duration: Duration,
    ) -> Result<Option<PollLease>> {
        let won = sqlx::query!(
            r#"-- polls::turns::acquire_poll
             insert into cluster_polls as p (cluster, lease_token, lease_expires_at)
             values ($1, $2, now() + $3 * interval '1 millisecond')
             on conflict (cluster) do update
             set lease_token = excluded.lease_token, lease_expires_at = excluded.lease_expires_at
             where p.due_at <= now() and (p.lease_token is null or p.lease_expires_at <= now())
             returning polled_at, interval_ms, unreachable_ms, orphans, clock_timestamp() as "now!""#,
            cluster.as_str(),
            token,
            millis(duration),
        )
        .fetch_optional(&self.pool)
        .await?;
        Ok(won.map(|row| PollLease {
            cluster: cluster.clone(),
            polled_at: row.polled_at,
            orphans: read_orphans(cluster, row.orphans),
            granted_on: row.now,
            token,
            interval: TimeDelta::milliseconds(row.interval_ms),
            unreachable_before: TimeDelta::milliseconds(row.unreachable_ms),
        }))
    }

    async fn extend_poll(&self, lease: &PollLease, duration: Duration) -> Result<()> {
        let statement = sqlx::query!(
            "-- polls::turns::extend_poll
             update cluster_polls set lease_expires_at = now() + $3 * interval '1 millisecond'
             where cluster = $1 and lease_token = $2 and lease_expires_at > now()",
            lease.cluster.as_str(),
            lease.token,
            millis(duration),
        );
        let extended = self.execute(statement).await?;
        if extended == 0 { Err(lease.lost()) } else { Ok(()) }
    }

    async fn record_poll(
        &self,
        lease: &PollLease,
        result: PollResult<'_>,
        interval: Duration,
        now: Timestamp,
    ) -> Result<()> {
        let (answered, failed, error, auth_required) = match result {
            PollResult::Answered => (true, false, None, false),
            PollResult::Idle | PollResult::PutOff => (false, false, None, false),
            PollResult::Unanswered { error, auth_required } => (false, true, Some(error), auth_required),
        };
        let statement = sqlx::query!(
            "-- polls::turns::record_poll
             update cluster_polls
             set lease_token = null, lease_expires_at = null, due_at = now() + $3 * interval '1 millisecond',
                 polled_at = case when $4 then $5 else polled_at end,
                 interval_ms = case when $4 then $6 else interval_ms end,
                 failures = case when $11 then failures when $8 then failures + 1 else 0 end,
                 error = case when $11 then error else $7 end,
                 unreachable_ms = case when $4 then $9 else unreachable_ms end,
                 auth_required = case when $11 then auth_required else $10 end
             where cluster = $1 and lease_token = $2 and lease_expires_at > now()",
            lease.cluster.as_str(),
            lease.token,
            millis(interval),
            answered,
            now,
            i64::try_from(interval.as_millis()).unwrap_or(i64::MAX),
            error,
            failed,
            lease.unreachable_for(now).num_milliseconds(),
            auth_required,
            matches!(result, PollResult::PutOff),
        );
        let changed = self.execute(statement).await?;
        if changed == 0 { Err(lease.lost()) } else { Ok(()) }
    }

    async fn next_poll_in(&self, cluster: &ClusterName) -> Result<Option<Duration>> {
        let millis = sqlx::query_scalar!(
            r#"-- polls::turns::next_poll_in
               select (extract(epoch from greatest(due_at, lease_expires_at) - now()) * 1000)::bigint as "millis!"
               from cluster_polls where cluster = $1"#,
            cluster.as_str(),
        );
        Ok(millis.fetch_optional(&self.pool).await?.map(duration))
    }

    async fn poll_soon(&self, cluster: &ClusterName, pace: Duration) -> Result<()> {
        self.run(sqlx::query!(
            "-- polls::turns::poll_soon
             update cluster_polls
             set due_at = least(due_at, greatest(now(), coalesce(polled_at, now()) + $2 * interval '1 millisecond'))
             where cluster = $1",
            cluster.as_str(),
            millis(pace),
        ))
        .await
    }
}

impl Store {
    /// When each cluster was last polled.
    pub async fn pulses(&self) -> Result<HashMap<ClusterName, Pulse>> {
        let rows = sqlx::query!(
            "-- polls::turns::pulses
             select cluster, polled_at, interval_ms from cluster_polls"
        )
        .fetch_all(&self.pool)
        .await?;
        let pulses = rows.into_iter().filter_map(|row| {
            let pulse = Pulse { polled_at: row.polled_at, interval: duration(row.interval_ms) };
            Some((row.cluster.parse().ok()?, pulse))
        });
        Ok(pulses.collect())
    }

    /// The polls of each cluster that was ever polled.
    pub async fn poll_states(&self) -> Result<HashMap<ClusterName, PollState>> {
        let rows = sqlx::query!(
            r#"-- polls::turns::poll_states
               select p.cluster, p.polled_at, p.interval_ms, p.failures, p.error, p.auth_required, p.due_at,
                      (select count(*) from jobs j
                       where j.cluster = p.cluster and j.phase in ('in_queue', 'running', 'suspended')) as "active_jobs!",
                      (select count(*) from jobs j join runs r on r.job_id = j.id and r.attempt = j.attempt
                       where j.cluster = p.cluster and j.phase in ('in_queue', 'running', 'suspended')
                         and r.missing_since is not null) as "missing_jobs!", p.orphans
               from cluster_polls p"#
        )
        .fetch_all(&self.pool)
        .await?;
        let states = rows.into_iter().filter_map(|row| {
            let cluster: ClusterName = row.cluster.parse().ok()?;
            let orphans = read_orphans(&cluster, row.orphans);
            let state = PollState {
                polled_at: row.polled_at,
                interval: duration(row.interval_ms),
                failures: count(row.failures.into()),
                error: row.error,
                auth_required: row.auth_required,
                due_at: row.due_at,
                active_jobs: count(row.active_jobs),
                missing_jobs: count(row.missing_jobs),
                orphans,
            };
            Some((cluster, state))
        });
        Ok(states.collect())
    }
}

/// The stored orphans of a cluster. If they cannot be read, the next poll finds them again.
fn read_orphans(cluster: &ClusterName, stored: Value) -> Vec<Orphan> {
    serde_json::from_value(stored).unwrap_or_else(|error| {
        tracing::error!(cluster.name = %cluster, %error, "the orphans of a cluster cannot be read; the next poll finds them again");
        Vec::new()
    })
}

#[cfg(test)]
mod tests;

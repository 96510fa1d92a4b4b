//! One poller a cluster, by lease.

use std::{collections::HashMap, time::Duration};

use chrono::TimeDelta;
use domain::{ClusterName, Orphan, Timestamp};
use uuid::Uuid;

use crate::{error::StoreError, jobs::leases::millis, polls::orphans, store::Store};

/// The right to poll one cluster.
#[derive(Debug)]
pub struct PollLease {
    pub cluster: ClusterName,
    /// The last poll that was answered properly.
    pub polled_at: Option<Timestamp>,
    /// Jobs of our names that nothing watches, as the last poll left them.
    pub orphans: Vec<Orphan>,
    /// The database's time.
    pub granted_on: Timestamp,
    pub(crate) token: Uuid,
    interval: TimeDelta,
    unreachable_for: TimeDelta,
}

impl PollLease {
    /// As [`Lease::granted`](crate::Lease::granted). `interval` is the pace at the time of the last poll, `unreachable` how long
    /// in all the cluster could not be heard until then.
    pub fn granted(
        cluster: ClusterName,
        polled_at: Option<Timestamp>,
        token: Uuid,
        interval: TimeDelta,
        unreachable_for: TimeDelta,
        orphans: Vec<Orphan>,
        on: Timestamp,
    ) -> Self {
        Self { cluster, polled_at, orphans, granted_on: on, token, interval, unreachable_for }
    }

    pub fn token(&self) -> Uuid {
        self.token
    }

    /// How long in all the cluster could not be heard, if it is heard now.
    pub fn unreachable_for(&self, now: Timestamp) -> TimeDelta {
        let gap = self.polled_at.map_or(TimeDelta::zero(), |last| now - last);
        if gap > self.interval * 3 + TimeDelta::seconds(30) {
            self.unreachable_for + gap
        } else {
            self.unreachable_for
        }
    }

    pub fn lost(&self) -> StoreError {
        StoreError::LeaseLost { what: format!("the poll of cluster {}", self.cluster) }
    }
}

/// What became of a poll.
#[derive(Debug, Clone, Copy)]
pub enum PollResult<'a> {
    /// The cluster answered, and [what it said](Store::record_observations) is stored.
    Answered,
    /// There was nothing to ask about.
    Idle,
    /// It did not, or not properly. Nothing is known, so nothing changes.
    Unanswered {
        error: &'a str,
        /// It accepts no key that we have.
        auth_required: bool,
    },
}

/// How fresh the knowledge about a cluster is.
#[derive(Debug, Clone, Copy)]
pub struct Pulse {
    /// The last poll that was answered properly.
    pub polled_at: Option<Timestamp>,
    /// The pace at that time.
    pub interval: Duration,
}

impl Store {
    /// Takes the right to poll a cluster if a poll is due and nobody else has it. `token` has to be fresh.
    pub async fn acquire_poll(
        &self,
        cluster: &ClusterName,
        token: Uuid,
        duration: Duration,
    ) -> Result<Option<PollLease>, StoreError> {
        let won = sqlx::query!(
            r#"-- polls::acquire_poll
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
            orphans: orphans::read(cluster, row.orphans),
            granted_on: row.now,
            token,
            interval: TimeDelta::milliseconds(row.interval_ms),
            unreachable_for: TimeDelta::milliseconds(row.unreachable_ms),
        }))
    }

    /// Keeps the right to poll for another while, because the cluster takes its time to answer.
    pub async fn extend_poll(&self, lease: &PollLease, duration: Duration) -> Result<(), StoreError> {
        let kept = sqlx::query!(
            "-- polls::extend_poll
             update cluster_polls set lease_expires_at = now() + $3 * interval '1 millisecond'
             where cluster = $1 and lease_token = $2 and lease_expires_at > now()",
            lease.cluster.as_str(),
            lease.token,
            millis(duration),
        )
        .execute(&self.pool)
        .await?
        .rows_affected();
        if kept == 0 { Err(lease.lost()) } else { Ok(()) }
    }

    /// Stores what became of a poll and gives the lease back until the next one.
    pub async fn record_poll(
        &self,
        lease: &PollLease,
        result: PollResult<'_>,
        interval: Duration,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let (answered, failed, error, auth_required) = match result {
            PollResult::Answered => (true, false, None, false),
            PollResult::Idle => (false, false, None, false),
            PollResult::Unanswered { error, auth_required } => (false, true, Some(error), auth_required),
        };
        let ours = sqlx::query!(
            "-- polls::record_poll
             update cluster_polls
             set lease_token = null, lease_expires_at = null, due_at = now() + $3 * interval '1 millisecond',
                 polled_at = case when $4 then $5 else polled_at end,
                 interval_ms = case when $4 then $6 else interval_ms end,
                 failures = case when $8 then failures + 1 else 0 end, error = $7,
                 unreachable_ms = case when $4 then $9 else unreachable_ms end, auth_required = $10
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
        )
        .execute(&self.pool)
        .await?
        .rows_affected();
        if ours == 0 { Err(lease.lost()) } else { Ok(()) }
    }

    /// How fresh the knowledge about each cluster is.
    pub async fn pulses(&self) -> Result<HashMap<ClusterName, Pulse>, StoreError> {
        let rows = sqlx::query!(
            "-- polls::pulses
             select cluster, polled_at, interval_ms from cluster_polls"
        )
        .fetch_all(&self.pool)
        .await?;
        let pulse = |polled_at, interval_ms: i64| Pulse {
            polled_at,
            interval: Duration::from_millis(u64::try_from(interval_ms).unwrap_or(0)),
        };
        Ok(rows
            .into_iter()
            .filter_map(|row| Some((row.cluster.parse().ok()?, pulse(row.polled_at, row.interval_ms))))
            .collect())
    }

    /// How long until the cluster's next poll; none when it was never polled.
    pub async fn next_poll_in(&self, cluster: &ClusterName) -> Result<Option<Duration>, StoreError> {
        let millis = sqlx::query_scalar!(
            r#"-- polls::next_poll_in
               select (extract(epoch from greatest(due_at, lease_expires_at) - now()) * 1000)::bigint
               from cluster_polls where cluster = $1"#,
            cluster.as_str(),
        )
        .fetch_optional(&self.pool)
        .await?;
        Ok(millis.flatten().map(|millis| Duration::from_millis(u64::try_from(millis).unwrap_or(0))))
    }

    /// Brings the next poll of a cluster forward, since something of ours has just changed there, but not
    /// closer to the last one than `pace`.
    pub async fn poll_soon(&self, cluster: &ClusterName, pace: Duration) -> Result<(), StoreError> {
        sqlx::query!(
            "-- polls::poll_soon
             update cluster_polls
             set due_at = least(due_at, greatest(now(), coalesce(polled_at, now()) + $2 * interval '1 millisecond'))
             where cluster = $1",
            cluster.as_str(),
            millis(pace),
        )
        .execute(&self.pool)
        .await?;
        Ok(())
    }
}

#[cfg(test)]
mod tests;

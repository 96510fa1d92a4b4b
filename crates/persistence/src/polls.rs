//! One poller a cluster, by lease, and what its polls changed.

use std::{collections::HashMap, time::Duration};

use chrono::TimeDelta;
use domain::{ClusterName, Job, Orphan, Timestamp};
use uuid::Uuid;

use crate::{
    again::again,
    error::StoreError,
    leases::millis,
    orphans,
    record::{Changes, changes},
    store::Store,
};

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
    deaf: TimeDelta,
}

impl PollLease {
    /// As [`Lease::granted`](crate::Lease::granted). `interval` is the pace at the time of the last poll, `deaf` how long
    /// in all the cluster could not be heard until then.
    pub fn granted(
        cluster: ClusterName,
        polled_at: Option<Timestamp>,
        token: Uuid,
        interval: TimeDelta,
        deaf: TimeDelta,
        orphans: Vec<Orphan>,
        on: Timestamp,
    ) -> Self {
        Self { cluster, polled_at, orphans, granted_on: on, token, interval, deaf }
    }

    pub fn token(&self) -> Uuid {
        self.token
    }

    /// How long in all the cluster could not be heard, if it is heard now.
    pub fn deaf_until(&self, now: Timestamp) -> TimeDelta {
        let gap = self.polled_at.map_or(TimeDelta::zero(), |last| now - last);
        if gap > self.interval * 3 + TimeDelta::seconds(30) { self.deaf + gap } else { self.deaf }
    }

    pub fn lost(&self) -> StoreError {
        StoreError::LeaseLost { what: format!("the poll of cluster {}", self.cluster) }
    }
}

/// What became of a poll.
#[derive(Debug, Clone, Copy)]
pub enum PollResult<'a> {
    /// The cluster answered: the jobs that changed, each with whether a step is due now.
    Answered { changed: &'a [domain::Next] },
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
             returning polled_at, interval_ms, deaf_ms, orphans, clock_timestamp() as "now!""#,
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
            deaf: TimeDelta::milliseconds(row.deaf_ms),
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

    /// Stores what a poll found, in one transaction, and gives the lease back until the next one.
    ///
    /// A job that somebody else changed in the meantime is left alone: the next poll sees it again. So is one with
    /// something that the database refuses, which must not hold up the others. Returns how many jobs were written.
    pub async fn record_poll(
        &self,
        lease: &PollLease,
        result: PollResult<'_>,
        interval: Duration,
        now: Timestamp,
    ) -> Result<u64, StoreError> {
        match again(|| self.record_poll_together(lease, result, interval, now)).await {
            Err(error) if error.is_about_the_data() => {}
            together => return together,
        }
        let PollResult::Answered { changed } = result else { return Ok(0) };
        let mut written = 0;
        for next in changed {
            let mut connection = self.pool.acquire().await?;
            match write(&mut connection, std::slice::from_ref(next), now).await {
                Ok(one) => written += one,
                Err(error) => {
                    tracing::error!(job.id = %next.job.id, error = ?error, "the database refuses a job's new state");
                }
            }
        }
        self.record_poll_together(lease, PollResult::Answered { changed: &[] }, interval, now).await?;
        Ok(written)
    }

    async fn record_poll_together(
        &self,
        lease: &PollLease,
        result: PollResult<'_>,
        interval: Duration,
        now: Timestamp,
    ) -> Result<u64, StoreError> {
        let (answered, failed, error, auth_required) = match result {
            PollResult::Answered { .. } => (true, false, None, false),
            PollResult::Idle => (false, false, None, false),
            PollResult::Unanswered { error, auth_required } => (false, true, Some(error), auth_required),
        };
        let mut tx = self.pool.begin().await?;
        let ours = sqlx::query!(
            "-- polls::record_poll lease
             update cluster_polls
             set lease_token = null, lease_expires_at = null, due_at = now() + $3 * interval '1 millisecond',
                 polled_at = case when $4 then $5 else polled_at end,
                 interval_ms = case when $4 then $6 else interval_ms end,
                 failures = case when $8 then failures + 1 else 0 end, error = $7,
                 deaf_ms = case when $4 then $9 else deaf_ms end, auth_required = $10
             where cluster = $1 and lease_token = $2 and lease_expires_at > now()",
            lease.cluster.as_str(),
            lease.token,
            millis(interval),
            answered,
            now,
            i64::try_from(interval.as_millis()).unwrap_or(i64::MAX),
            error,
            failed,
            lease.deaf_until(now).num_milliseconds(),
            auth_required,
        )
        .execute(&mut *tx)
        .await?
        .rows_affected();
        if ours == 0 {
            return Err(lease.lost());
        }
        let written = match result {
            PollResult::Answered { changed } if !changed.is_empty() => write(&mut tx, changed, now).await?,
            PollResult::Answered { .. } | PollResult::Idle | PollResult::Unanswered { .. } => 0,
        };
        tx.commit().await?;
        Ok(written)
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

pub(crate) async fn write(
    connection: &mut sqlx::PgConnection,
    changed: &[domain::Next],
    now: Timestamp,
) -> Result<u64, StoreError> {
    let due = |next: &domain::Next| next.step_due.then_some(now);
    let pairs = changed.iter().map(|next| -> (&Job, _) { (&next.job, due(next)) });
    let Changes { jobs, attempts, lines } = changes(pairs)?;
    // Guarded by the version that the poll read, since a step or a caller may have moved the job since.
    let written = sqlx::query_scalar!(
        r#"-- polls::write
           with u as (
               select * from jsonb_to_recordset($1) as u(
                   id uuid, version bigint, status text, phase text, message text, pending_reason text,
                   progress jsonb, activity jsonb, kill_reason text, missing_since timestamptz, finishing_since timestamptz, started_at timestamptz,
                   observed_at timestamptz,
                   source text, due_at timestamptz)
           ), old as (
               select j.id, j.events from jobs j join u on u.id = j.id
               where j.version = u.version and j.phase in ('in_queue', 'running', 'suspended')
               for update of j
           ), lines as (
               select l.* from jsonb_to_recordset($4) as l(
                   job_id uuid, ord bigint, attempt int, kind text, file text, earlier_run boolean, data jsonb)
           ), counted as (
               select job_id, count(*) as lines from lines group by job_id
           ), stored as (
               update jobs j
               set status = u.status, phase = u.phase, message = u.message, pending_reason = u.pending_reason,
                   progress = u.progress, activity = u.activity, kill_reason = u.kill_reason, missing_since = u.missing_since,
                   finishing_since = u.finishing_since, started_at = u.started_at,
                   observed_at = u.observed_at, source = u.source, due_at = case when u.phase = 'finishing' then now()
                                 else coalesce(j.due_at, now() + (u.due_at - $3)) end,
                   events = old.events + coalesce(counted.lines, 0),
                   last_modified = $3, version = j.version + 1, updated_by = 'record_poll'
               from u join old on old.id = u.id left join counted on counted.job_id = u.id
               where j.id = u.id
               returning j.id
           ), said as (
               insert into job_events (job_id, seq, at, kind, attempt, file, earlier_run, data)
               select l.job_id, old.events + l.ord, $3, l.kind, l.attempt, l.file, l.earlier_run, l.data
               from lines l join old on old.id = l.job_id
               where l.job_id in (select id from stored)
               order by l.job_id, l.ord
           ), attempts as (
               update slurm_metadata m
               set slurm_state = a.slurm_state, exit_code = a.exit_code, exit_signal = a.exit_signal,
                   nodes = a.nodes, reason = a.reason, partition = a.partition,
                   status_files = a.status_files, queued_since = a.queued_since,
                   estimated_start = a.estimated_start, started_at = a.started_at,
                   ended_at = a.ended_at, requeues = a.requeues, requeue_unexplained = a.requeue_unexplained
               from jsonb_populate_recordset(null::slurm_metadata, $2) a
               where m.job_id = a.job_id and m.attempt = a.attempt and a.job_id in (select id from stored)
           )
           select count(*) as "count!" from stored"#,
        jobs,
        attempts,
        now,
        lines,
    )
    .fetch_one(connection)
    .await?;
    Ok(u64::try_from(written).unwrap_or(0))
}

#[cfg(test)]
mod tests;

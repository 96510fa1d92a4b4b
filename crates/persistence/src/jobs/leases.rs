//! The right to take a step of a job: a token and a time. Postgres's clock decides when it ends, so the clocks
//! of the workers need not agree.

use std::time::Duration;

use domain::{ClusterName, Job, Phase, Timestamp};
use strum::{Display, EnumString};
use uuid::Uuid;

use crate::{
    error::StoreError,
    jobs::rows::{self, select_jobs},
    store::Store,
};

/// How long leases last and how many are taken at once.
#[derive(Debug, Clone, Copy)]
pub struct LeaseTerms {
    pub duration: Duration,
    pub limit: u32,
}

/// Which steps are taken side by side: a slow submission must not hold up the end of other jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Display, EnumString)]
#[strum(serialize_all = "snake_case")]
pub enum Lane {
    /// Jobs of which nothing is on the cluster: not yet, or not any more.
    Submit,
    /// Everything after that.
    Tend,
}

impl Lane {
    /// Where the steps of a job in this phase are taken. The statements below say the same.
    pub fn of(phase: Phase) -> Self {
        match phase {
            Phase::Queued | Phase::ConvertingImage | Phase::Submitting | Phase::RetryWait | Phase::Paused => {
                Self::Submit
            }
            Phase::SubmitUncertain
            | Phase::InQueue
            | Phase::Running
            | Phase::Suspended
            | Phase::Finishing
            | Phase::Ended => Self::Tend,
        }
    }
}

/// Jobs that this worker, and nobody else, may take a step of until the lease ends.
#[derive(Debug)]
pub struct Lease {
    pub(crate) token: Uuid,
    pub jobs: Vec<Job>,
    /// The database's time, if there are jobs.
    pub granted_on: Option<Timestamp>,
}

impl Lease {
    /// For a store that is not this one: whoever makes a lease answers for its token.
    pub fn granted(token: Uuid, jobs: Vec<Job>, on: Timestamp) -> Self {
        Self { token, jobs, granted_on: Some(on) }
    }

    pub fn token(&self) -> Uuid {
        self.token
    }
}

impl Store {
    /// Leases jobs of one cluster that are due, longest due first. `token` has to be fresh.
    pub async fn acquire_due(
        &self,
        cluster: &ClusterName,
        lane: Lane,
        token: Uuid,
        terms: LeaseTerms,
    ) -> Result<Lease, StoreError> {
        // SKIP LOCKED: two workers that ask at the same moment get different jobs instead of waiting.
        let rows = sqlx::query!(
            r#"-- leases::acquire_due
             with due as (
                 select id from jobs
                 where due_at <= now() and cluster = $1 and (lease_token is null or lease_expires_at <= now())
                   and (phase in ('queued', 'converting_image', 'submitting', 'retry_wait', 'paused')) = $5
                 order by due_at
                 limit $2
                 for update skip locked
             )
             update jobs j
             set lease_token = $3, lease_expires_at = now() + $4 * interval '1 millisecond',
                 lease_attempts = lease_attempts + 1, updated_by = 'acquire_due'
             from due where j.id = due.id
             returning j.id, clock_timestamp() as "now!""#,
            cluster.as_str(),
            i64::from(terms.limit),
            token,
            millis(terms.duration),
            lane == Lane::Submit,
        )
        .fetch_all(&self.pool)
        .await?;
        let Some(first) = rows.first() else {
            return Ok(Lease { token, jobs: Vec::new(), granted_on: None });
        };
        let granted_on = Some(first.now);
        let ids: Vec<Uuid> = rows.iter().map(|row| row.id).collect();
        let rows = select_jobs!(
            "leases::acquire_due jobs",
            "where j.id = any($1) and j.lease_token = $2 order by j.due_at",
            &ids,
            token,
        )
        .fetch_all(&self.pool)
        .await?;
        let (jobs, corrupt) = rows::readable(rows);
        if !corrupt.is_empty() {
            self.set_aside(token, &corrupt).await?;
        }
        Ok(Lease { token, jobs, granted_on })
    }

    /// Puts jobs that cannot be read behind those that can, for an hour at a time, until somebody mends them.
    async fn set_aside(&self, token: Uuid, jobs: &[Uuid]) -> Result<(), StoreError> {
        sqlx::query!(
            "-- leases::set_aside
             update jobs
             set due_at = now() + interval '1 hour', lease_token = null, lease_expires_at = null,
                 updated_by = 'set_aside'
             where id = any($1) and lease_token = $2",
            jobs,
            token,
        )
        .execute(&self.pool)
        .await?;
        Ok(())
    }

    /// Keeps the lease for another while. An expired one is gone: somebody else may have it.
    pub async fn extend(&self, lease: &Lease, duration: Duration) -> Result<(), StoreError> {
        let kept = sqlx::query!(
            "-- leases::extend
             update jobs set lease_expires_at = now() + $2 * interval '1 millisecond'
             where lease_token = $1 and lease_expires_at > now()",
            lease.token,
            millis(duration),
        )
        .execute(&self.pool)
        .await?
        .rows_affected();
        if kept == 0 { Err(StoreError::LeaseLost { what: "jobs".to_owned() }) } else { Ok(()) }
    }

    /// Gives the lease back without a result; its jobs are due again after `pause`.
    pub async fn release(&self, lease: &Lease, pause: Duration) -> Result<(), StoreError> {
        sqlx::query!(
            "-- leases::release
             update jobs
             set lease_token = null, lease_expires_at = null, updated_by = 'release',
                 due_at = case when due_at is null then null
                               else greatest(due_at, now() + $2 * interval '1 millisecond') end
             where lease_token = $1",
            lease.token,
            millis(pause),
        )
        .execute(&self.pool)
        .await?;
        Ok(())
    }

    /// When the next job of a lane falls due, as a time from now; none when nothing is scheduled.
    pub async fn next_due_in(
        &self,
        cluster: &ClusterName,
        lane: Lane,
    ) -> Result<Option<Duration>, StoreError> {
        let millis = sqlx::query_scalar!(
            r#"-- leases::next_due_in
               select (extract(epoch from min(greatest(due_at, coalesce(lease_expires_at, due_at))) - now()) * 1000)::bigint
               from jobs
               where due_at is not null and cluster = $1
                 and (phase in ('queued', 'converting_image', 'submitting', 'retry_wait', 'paused')) = $2"#,
            cluster.as_str(),
            lane == Lane::Submit,
        )
        .fetch_one(&self.pool)
        .await?;
        Ok(millis.map(|millis| Duration::from_millis(u64::try_from(millis).unwrap_or(0))))
    }
}

/// Milliseconds for `interval` arithmetic: exact, unlike a binary fraction of seconds.
#[expect(clippy::cast_precision_loss, reason = "whole milliseconds below 2^53 are exact in a double")]
pub(crate) fn millis(duration: Duration) -> f64 {
    duration.as_millis() as f64
}

#[cfg(test)]
mod tests;

//! The right to take a step of a job: a token and a time. The server clock decides when it ends, so the clocks of the
//! workers need not agree.

use std::time::Duration;

use domain::{ClusterName, Job, Timestamp};
use uuid::Uuid;

use crate::{
    error::{Result, StoreError},
    jobs::{
        lane::Lane,
        rows::{self, select_jobs},
    },
    listen::{DueListener, DueNotices},
    store::{Call, Store},
    values::{duration, millis},
};

/// How long leases last, how many are taken at once, and for which jobs.
#[derive(Debug, Clone, Copy)]
pub struct LeaseTerms {
    pub duration: Duration,
    pub limit: u32,
    /// Only jobs that need no submission: they wait for other jobs, or their owners no longer want them to run.
    pub only_stopped: bool,
}

/// Jobs that only this worker may take a step of, until the lease ends.
#[derive(Debug)]
pub struct Lease {
    /// Proves the right; the store checks it with every statement.
    pub token: Uuid,
    pub jobs: Vec<Job>,
    /// The time by the server clock, if there are jobs.
    pub granted_on: Option<Timestamp>,
}

/// Jobs that are due for a step.
pub trait DueJobs {
    type Notices: DueNotices;

    fn listen_due(&self) -> impl Call<Self::Notices>;

    /// Leases due jobs of one cluster, longest due first. `token` has to be new.
    fn acquire_due(
        &self,
        cluster: &ClusterName,
        lane: Lane,
        token: Uuid,
        terms: LeaseTerms,
    ) -> impl Call<Lease>;

    /// Extends the lease. An expired lease cannot be extended: another worker may have the jobs.
    fn extend(&self, lease: &Lease, duration: Duration) -> impl Call<()>;

    /// Returns the lease on jobs without a new state. They are due again after `due_in`; with `None`, when something else
    /// makes them due. Changes nothing else of a job, because a poll may be writing it.
    fn put_off(&self, lease: &Lease, jobs: &[Job], due_in: Option<Duration>) -> impl Call<()>;

    /// The time until the next job of a lane is due; `None` when no job is scheduled.
    fn next_due_in(&self, cluster: &ClusterName, lane: Lane) -> impl Call<Option<Duration>>;
}

impl DueJobs for Store {
    type Notices = DueListener;

    async fn listen_due(&self) -> Result<DueListener> {
        DueListener::start(self).await
    }

    async fn acquire_due(
        &self,
        cluster: &ClusterName,
        lane: Lane,
        token: Uuid,
        terms: LeaseTerms,
    ) -> Result<Lease> {
        // SKIP LOCKED: two workers that ask at the same moment get different jobs instead of waiting.
        let rows = sqlx::query!(
            r#"-- jobs::leases::acquire_due
             with due as (
                 select id from jobs
                 where due_at <= now() and cluster = $1 and (lease_token is null or lease_expires_at <= now())
                   and (phase in ('waiting', 'queued', 'converting_image', 'submitting', 'retry_wait', 'paused')) = $5
                   and ($6 or desired_state <> 'run' or phase = 'waiting')
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
            !terms.only_stopped,
        )
        .fetch_all(&self.pool)
        .await?;
        let Some(first) = rows.first() else {
            return Ok(Lease { token, jobs: Vec::new(), granted_on: None });
        };
        let granted_on = Some(first.now);
        let ids: Vec<Uuid> = rows.iter().map(|row| row.id).collect();
        let rows = select_jobs!(
            "jobs::leases::acquire_due jobs",
            "where j.id = any($1) and j.lease_token = $2 order by j.due_at",
            &ids,
            token,
        )
        .fetch_all(&self.pool)
        .await?;
        let (mut jobs, corrupt) = rows::readable(rows);
        self.attach_earlier(&mut jobs).await?;
        if !corrupt.is_empty() {
            self.set_aside(token, &corrupt).await?;
        }
        Ok(Lease { token, jobs, granted_on })
    }

    async fn extend(&self, lease: &Lease, duration: Duration) -> Result<()> {
        let statement = sqlx::query!(
            "-- jobs::leases::extend
             update jobs set lease_expires_at = now() + $2 * interval '1 millisecond'
             where lease_token = $1 and lease_expires_at > now()",
            lease.token,
            millis(duration),
        );
        let extended = self.execute(statement).await?;
        if extended == 0 { Err(StoreError::LeaseLost { what: "jobs".to_owned() }) } else { Ok(()) }
    }

    async fn put_off(&self, lease: &Lease, jobs: &[Job], due_in: Option<Duration>) -> Result<()> {
        if jobs.is_empty() {
            return Ok(());
        }
        let ids: Vec<_> = jobs.iter().map(|job| job.id.get()).collect();
        let versions: Vec<_> = jobs.iter().map(|job| job.version).collect();
        let desired: Vec<_> = jobs.iter().map(|job| job.desired.to_string()).collect();
        self.run(sqlx::query!(
            "-- jobs::leases::put_off
             update jobs j
             set due_at = case when j.phase = 'finishing' then now() when j.phase = 'ended' and j.desired_state <> 'delete' then null
                               -- The desired state changed, or a poll requires a step: no other wake-up follows.
                               when j.desired_state <> u.desired_state or ($3::float8 is null and j.version <> u.version) then now()
                               else now() + $3 * interval '1 millisecond' end,
                 lease_token = null, lease_expires_at = null, lease_attempts = 0, updated_by = 'put_off'
             from unnest($1::uuid[], $4::bigint[], $5::text[]) as u(id, version, desired_state)
             where j.id = u.id and j.lease_token = $2 and j.lease_expires_at > now()",
            &ids,
            lease.token,
            due_in.map(millis),
            &versions,
            &desired,
        ))
        .await
    }

    async fn next_due_in(&self, cluster: &ClusterName, lane: Lane) -> Result<Option<Duration>> {
        let millis = sqlx::query_scalar!(
            r#"-- jobs::leases::next_due_in
               select (extract(epoch from min(greatest(due_at, coalesce(lease_expires_at, due_at))) - now()) * 1000)::bigint
               from jobs
               where due_at is not null and cluster = $1
                 and (phase in ('waiting', 'queued', 'converting_image', 'submitting', 'retry_wait', 'paused')) = $2"#,
            cluster.as_str(),
            lane == Lane::Submit,
        );
        Ok(millis.fetch_one(&self.pool).await?.map(duration))
    }
}

impl Store {
    /// Puts unreadable jobs off by an hour, so that readable ones come first until somebody repairs them.
    async fn set_aside(&self, token: Uuid, jobs: &[Uuid]) -> Result<()> {
        self.run(sqlx::query!(
            "-- jobs::leases::set_aside
             update jobs
             set due_at = now() + interval '1 hour', lease_token = null, lease_expires_at = null,
                 updated_by = 'set_aside'
             where id = any($1) and lease_token = $2",
            jobs,
            token,
        ))
        .await
    }
}

#[cfg(test)]
mod tests;

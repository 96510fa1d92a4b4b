//! The right to take a step of a conversion: one worker at a time has it, for any number of workers and jobs.

use std::time::Duration;

use domain::{Abandoned, ClusterName, Conversion, Demand, Timestamp};
use uuid::Uuid;

use super::rows::{ConversionRow, readable, select_conversions};
use crate::{
    error::{Result, StoreError},
    jobs::leases::LeaseTerms,
    store::{Call, Store},
    values::{count, duration, millis},
};

/// Conversions that only this worker may take a step of, until the lease ends. Each comes with its waiting jobs.
#[derive(Debug)]
pub struct ConversionLease {
    pub token: Uuid,
    pub conversions: Vec<(Conversion, Demand)>,
    /// The time by the server clock, if there are conversions.
    pub granted_on: Option<Timestamp>,
}

/// Conversions that are due for a step.
pub trait ConversionTurns {
    /// Leases due conversions of one cluster, longest due first. `token` has to be new.
    fn acquire_conversions(
        &self,
        cluster: &ClusterName,
        token: Uuid,
        terms: LeaseTerms,
    ) -> impl Call<ConversionLease>;

    /// Extends the lease. An expired lease cannot be extended.
    fn extend_conversions(&self, lease: &ConversionLease, duration: Duration) -> impl Call<()>;

    /// Returns the lease on conversions without a new state, because a poll may be writing it. Each comes with the reason for
    /// which it was canceled, if it was.
    fn put_off_conversions(
        &self,
        lease: &ConversionLease,
        conversions: &[(Uuid, Option<Abandoned>)],
        due_in: Option<Duration>,
    ) -> impl Call<()>;

    /// The time until the next conversion is due; `None` when no conversion is scheduled.
    fn next_conversion_in(&self, cluster: &ClusterName) -> impl Call<Option<Duration>>;
}

impl ConversionTurns for Store {
    async fn acquire_conversions(
        &self,
        cluster: &ClusterName,
        token: Uuid,
        terms: LeaseTerms,
    ) -> Result<ConversionLease> {
        let rows = sqlx::query!(
            r#"-- conversions::turns::acquire_conversions
             with due as (
                 select id from image_conversions
                 where due_at <= now() and cluster = $1 and (lease_token is null or lease_expires_at <= now())
                 order by due_at
                 limit $2
                 for update skip locked
             )
             update image_conversions c
             set lease_token = $3, lease_expires_at = now() + $4 * interval '1 millisecond',
                 updated_by = 'acquire_conversions'
             from due where c.id = due.id
             returning c.id, clock_timestamp() as "now!""#,
            cluster.as_str(),
            i64::from(terms.limit),
            token,
            millis(terms.duration),
        )
        .fetch_all(&self.pool)
        .await?;
        let Some(first) = rows.first() else {
            return Ok(ConversionLease { token, conversions: Vec::new(), granted_on: None });
        };
        let granted_on = Some(first.now);
        let ids: Vec<Uuid> = rows.iter().map(|row| row.id).collect();
        let rows: Vec<ConversionRow> = select_conversions!(
            "conversions::turns::acquire_conversions conversions",
            "where c.id = any($1) and c.lease_token = $2 order by c.due_at",
            &ids,
            token,
        )
        .fetch_all(&self.pool)
        .await?;
        // A job that was canceled, paused or submitted in the meantime does not wait any more. A leased job may just have chosen a
        // file that was found damaged since.
        let demands = sqlx::query!(
            r#"-- conversions::turns::acquire_conversions demand
               select w.conversion_id, count(*) as "waiters!", max(j.created_at) filter (where w.fresh) as fresh_since,
                      exists (
                          select from image_conversions c
                          join jobs r on r.cluster = c.cluster and r.phase <> 'ended'
                          left join slurm_metadata a on a.job_id = r.id and a.attempt = r.attempt
                          where c.id = w.conversion_id and c.damaged_files <> '{}'
                            and (a.concluded_at is null and a.image = any (c.damaged_files)
                                 or r.spec ->> 'image' = any (c.damaged_files)
                                 or r.lease_expires_at > now()
                                    and exists (select from image_waits l where (l.job_id, l.conversion_id) = (r.id, c.id)))
                      ) as "reads_damaged!"
               from image_waits w join jobs j on j.id = w.job_id
               where w.conversion_id = any($1) and j.desired_state = 'run'
                 and j.phase in ('queued', 'converting_image', 'retry_wait')
               group by w.conversion_id"#,
            &ids,
        )
        .fetch_all(&self.pool)
        .await?;
        let with_demand = |conversion: Conversion| {
            let found = demands.iter().find(|demand| demand.conversion_id == conversion.id);
            let demand = found.map(|found| Demand {
                waiters: count(found.waiters),
                fresh_since: found.fresh_since,
                reads_damaged: found.reads_damaged,
            });
            (conversion, demand.unwrap_or_default())
        };
        let (conversions, corrupt) = readable(rows);
        if !corrupt.is_empty() {
            self.set_conversions_aside(token, &corrupt).await?;
        }
        let conversions = conversions.into_iter().map(with_demand).collect();
        Ok(ConversionLease { token, conversions, granted_on })
    }

    async fn extend_conversions(&self, lease: &ConversionLease, duration: Duration) -> Result<()> {
        let statement = sqlx::query!(
            "-- conversions::turns::extend_conversions
             update image_conversions set lease_expires_at = now() + $2 * interval '1 millisecond'
             where lease_token = $1 and lease_expires_at > now()",
            lease.token,
            millis(duration),
        );
        let extended = self.execute(statement).await?;
        if extended == 0 { Err(StoreError::LeaseLost { what: "conversions".to_owned() }) } else { Ok(()) }
    }

    async fn put_off_conversions(
        &self,
        lease: &ConversionLease,
        conversions: &[(Uuid, Option<Abandoned>)],
        due_in: Option<Duration>,
    ) -> Result<()> {
        if conversions.is_empty() {
            return Ok(());
        }
        let ids: Vec<_> = conversions.iter().map(|(id, _)| *id).collect();
        let abandoned: Vec<_> =
            conversions.iter().map(|(_, why)| why.map(|why| why.to_string()).unwrap_or_default()).collect();
        self.run(sqlx::query!(
            "-- conversions::turns::put_off_conversions
             update image_conversions c
             set due_at = case when c.state = 'finishing' then now() else now() + $3 * interval '1 millisecond' end,
                 abandoned = coalesce(nullif(u.abandoned, ''), c.abandoned),
                 lease_token = null, lease_expires_at = null, updated_by = 'put_off_conversions'
             from unnest($1::uuid[], $4::text[]) as u(id, abandoned)
             where c.id = u.id and c.lease_token = $2 and c.lease_expires_at > now()",
            &ids,
            lease.token,
            due_in.map(millis),
            &abandoned,
        ))
        .await
    }

    async fn next_conversion_in(&self, cluster: &ClusterName) -> Result<Option<Duration>> {
        let millis = sqlx::query_scalar!(
            r#"-- conversions::turns::next_conversion_in
               select (extract(epoch from min(greatest(due_at, coalesce(lease_expires_at, due_at))) - now()) * 1000)::bigint
               from image_conversions where due_at is not null and cluster = $1"#,
            cluster.as_str(),
        );
        Ok(millis.fetch_one(&self.pool).await?.map(duration))
    }
}

impl Store {
    /// Puts unreadable conversions off by an hour, so that readable ones come first until somebody repairs them.
    async fn set_conversions_aside(&self, token: Uuid, conversions: &[Uuid]) -> Result<()> {
        self.run(sqlx::query!(
            "-- conversions::turns::set_conversions_aside
             update image_conversions
             set due_at = now() + interval '1 hour', lease_token = null, lease_expires_at = null,
                 updated_by = 'set_conversions_aside'
             where id = any($1) and lease_token = $2",
            conversions,
            token,
        ))
        .await
    }
}

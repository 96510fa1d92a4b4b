//! The right to take a step of a conversion: one of them at a time, however many workers and jobs there are.

use std::time::Duration;

use domain::{Abandoned, ClusterName, Conversion, Demand, Timestamp};
use uuid::Uuid;

use super::rows::{ConversionRow, readable, select_conversions};
use crate::{
    error::StoreError,
    jobs::leases::{LeaseTerms, millis},
    store::Store,
};

/// Conversions that this worker, and nobody else, may take a step of until the lease ends, each with who waits for it.
#[derive(Debug)]
pub struct ConversionLease {
    pub(super) token: Uuid,
    pub conversions: Vec<(Conversion, Demand)>,
    /// The database's time, if there are conversions.
    pub granted_on: Option<Timestamp>,
}

impl ConversionLease {
    /// As [`Lease::granted`](crate::Lease::granted).
    pub fn granted(token: Uuid, conversions: Vec<(Conversion, Demand)>, on: Timestamp) -> Self {
        Self { token, conversions, granted_on: Some(on) }
    }

    pub fn token(&self) -> Uuid {
        self.token
    }
}

impl Store {
    /// Leases conversions of one cluster that are due, longest due first. `token` has to be fresh.
    pub async fn acquire_conversions(
        &self,
        cluster: &ClusterName,
        token: Uuid,
        terms: LeaseTerms,
    ) -> Result<ConversionLease, StoreError> {
        let rows = sqlx::query!(
            r#"-- conversions::acquire_conversions
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
            "conversions::acquire_conversions conversions",
            "where c.id = any($1) and c.lease_token = $2 order by c.due_at",
            &ids,
            token,
        )
        .fetch_all(&self.pool)
        .await?;
        // Who was canceled, paused or sent off meanwhile waits no more.
        let demands = sqlx::query!(
            r#"-- conversions::acquire_conversions demand
               select w.conversion_id, count(*) as "waiters!", max(j.created_at) filter (where w.fresh) as fresh_since
               from image_waits w join jobs j on j.id = w.job_id
               where w.conversion_id = any($1) and j.desired_state = 'run'
                 and j.phase in ('queued', 'converting_image', 'retry_wait')
               group by w.conversion_id"#,
            &ids,
        )
        .fetch_all(&self.pool)
        .await?;
        let demand = |conversion: &Conversion| {
            let found = demands.iter().find(|demand| demand.conversion_id == conversion.id);
            found.map_or_else(Demand::default, |found| Demand {
                waiters: u32::try_from(found.waiters).unwrap_or(u32::MAX),
                fresh_since: found.fresh_since,
            })
        };
        let (conversions, corrupt) = readable(rows);
        if !corrupt.is_empty() {
            self.set_conversions_aside(token, &corrupt).await?;
        }
        let conversions = conversions.into_iter().map(|conversion| {
            let demand = demand(&conversion);
            (conversion, demand)
        });
        Ok(ConversionLease { token, conversions: conversions.collect(), granted_on })
    }

    /// Puts conversions that cannot be read behind those that can, for an hour at a time, until somebody mends them.
    async fn set_conversions_aside(&self, token: Uuid, conversions: &[Uuid]) -> Result<(), StoreError> {
        sqlx::query!(
            "-- conversions::set_conversions_aside
             update image_conversions
             set due_at = now() + interval '1 hour', lease_token = null, lease_expires_at = null,
                 updated_by = 'set_conversions_aside'
             where id = any($1) and lease_token = $2",
            conversions,
            token,
        )
        .execute(&self.pool)
        .await?;
        Ok(())
    }

    /// Keeps the lease for another while.
    pub async fn extend_conversions(
        &self,
        lease: &ConversionLease,
        duration: Duration,
    ) -> Result<(), StoreError> {
        let kept = sqlx::query!(
            "-- conversions::extend_conversions
             update image_conversions set lease_expires_at = now() + $2 * interval '1 millisecond'
             where lease_token = $1 and lease_expires_at > now()",
            lease.token,
            millis(duration),
        )
        .execute(&self.pool)
        .await?
        .rows_affected();
        if kept == 0 { Err(StoreError::LeaseLost { what: "conversions".to_owned() }) } else { Ok(()) }
    }

    /// Gives the lease on conversions back without a new state: a poll may be writing it. `abandoned` is why one was
    /// canceled, if it was.
    pub async fn put_off_conversions(
        &self,
        lease: &ConversionLease,
        conversions: &[(Uuid, Option<Abandoned>)],
        again_in: Option<Duration>,
    ) -> Result<(), StoreError> {
        if conversions.is_empty() {
            return Ok(());
        }
        let ids: Vec<_> = conversions.iter().map(|(id, _)| *id).collect();
        let abandoned: Vec<_> =
            conversions.iter().map(|(_, why)| why.map(|why| why.to_string()).unwrap_or_default()).collect();
        sqlx::query!(
            "-- conversions::put_off_conversions
             update image_conversions c
             set due_at = case when c.state = 'finishing' then now() else now() + $3 * interval '1 millisecond' end,
                 abandoned = coalesce(nullif(u.abandoned, ''), c.abandoned),
                 lease_token = null, lease_expires_at = null, updated_by = 'put_off_conversions'
             from unnest($1::uuid[], $4::text[]) as u(id, abandoned)
             where c.id = u.id and c.lease_token = $2 and c.lease_expires_at > now()",
            &ids,
            lease.token,
            again_in.map(millis),
            &abandoned,
        )
        .execute(&self.pool)
        .await?;
        Ok(())
    }

    /// How long until the next conversion falls due; none when nothing is scheduled.
    pub async fn next_conversion_in(&self, cluster: &ClusterName) -> Result<Option<Duration>, StoreError> {
        let millis = sqlx::query_scalar!(
            r#"-- conversions::next_conversion_in
               select (extract(epoch from min(greatest(due_at, coalesce(lease_expires_at, due_at))) - now()) * 1000)::bigint
               from image_conversions where due_at is not null and cluster = $1"#,
            cluster.as_str(),
        )
        .fetch_one(&self.pool)
        .await?;
        Ok(millis.map(|millis| Duration::from_millis(u64::try_from(millis).unwrap_or(0))))
    }
}

//! Jobs that ended long ago, with all that is known of them.

use std::time::Duration;

use sqlx::PgConnection;
use uuid::Uuid;

use crate::{error::StoreError, jobs::leases::millis, store::Store};

/// No further job goes in one statement once those before it have so many events: each is a row, and its lock is held until the end.
const EVENTS: i64 = 10_000;

impl Store {
    /// Forgets jobs that ended longer ago than `keep`, the oldest first and `at_most` at a time, fewer if they have many events; says
    /// how many. There may be more unless it says none.
    ///
    /// One stays while a receiver has still to be told of it, and one whose owner wants its files gone: that has its own way. Any
    /// number of processes may do this at once; none takes what another holds.
    pub async fn forget_ended(&self, keep: Duration, at_most: u32) -> Result<u64, StoreError> {
        let mut tx = self.pool.begin().await?;
        let held = hold_ended(&mut tx, keep, at_most).await?;
        let forgotten = forget_held(&mut tx, &held).await?;
        tx.commit().await?;
        Ok(forgotten)
    }
}

/// Locks the jobs that may go, so that nobody can have their messages delivered again, and says which they are.
async fn hold_ended(
    connection: &mut PgConnection,
    keep: Duration,
    at_most: u32,
) -> Result<Vec<Uuid>, StoreError> {
    let held = sqlx::query_scalar!(
        "-- retention::hold_ended
         with old as materialized (
             select j.id, j.finished_at, j.events from jobs j
             where j.finished_at < now() - $1 * interval '1 millisecond' and j.phase = 'ended' and j.desired_state <> 'delete'
               and not exists (select from webhook_deliveries d where d.job_id = j.id and d.state = 'pending')
             order by j.finished_at limit $2
             for update skip locked
         ), portion as (
             select id, (sum(events) over (order by finished_at, id) - events)::bigint as before from old
         )
         select id from portion where before < $3",
        millis(keep),
        i64::from(at_most),
        EVENTS,
    )
    .fetch_all(connection)
    .await?;
    Ok(held)
}

/// Deletes jobs that are held, but for those of whose messages one waits by now: it was asked for again after the statement that
/// chose them had begun to look, and before it held them.
async fn forget_held(connection: &mut PgConnection, held: &[Uuid]) -> Result<u64, StoreError> {
    let forgotten = sqlx::query!(
        "-- retention::forget_held
         delete from jobs j where j.id = any($1)
           and not exists (select from webhook_deliveries d where d.job_id = j.id and d.state = 'pending')",
        held,
    )
    .execute(connection)
    .await?;
    Ok(forgotten.rows_affected())
}

#[cfg(test)]
mod tests;

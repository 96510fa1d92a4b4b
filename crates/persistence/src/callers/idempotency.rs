//! Requests that are carried out once, however often they come: by a key of the caller's.
//!
//! A key is stored in the transaction that carries its request out. The second of two that come at the same time waits
//! at the key's index for the first, through whatever process they came, and then finds its answer; when the first fails
//! or dies, nothing is left of it and the second goes ahead.

use std::time::Duration;

use domain::{JobId, Owner};
use sqlx::{Postgres, Transaction};

use crate::{error::StoreError, store::Store};

/// How many old keys are swept at a time.
const SWEEP: i64 = 100;

/// A request with a key.
#[derive(Debug, Clone)]
pub struct Once {
    pub owner: Owner,
    pub key: String,
    /// What is asked: the same key for something else is a mistake.
    pub operation: String,
    /// SHA-256 of the body. It is never stored as it is, because the body may hold secrets that somebody could guess.
    pub request_hash: [u8; 32],
    /// How long the key is known.
    pub keep: Duration,
}

/// What is known of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Known {
    /// Nothing: the request is to be carried out.
    New,
    /// The same request was carried out; its answer was about this job and had this status.
    Answered { job: JobId, status: u16 },
    /// The key belongs to another request.
    Other,
}

impl Store {
    /// Looks for the answer to a request that was carried out before.
    pub async fn known(&self, once: &Once) -> Result<Known, StoreError> {
        let row = sqlx::query!(
            r#"-- once::known
               select operation = $3 and request_hash = $4 as "same!", job_id, status from idempotency_keys
               where owner = $1 and key = $2 and created_at > now() - $5 * interval '1 ms'"#,
            once.owner.as_str(),
            once.key,
            once.operation,
            &self.sealer.code(&once.request_hash)[..],
            millis(once.keep),
        )
        .fetch_optional(&self.pool)
        .await?;
        let Some(row) = row else { return Ok(Known::New) };
        let corrupt = || StoreError::Corrupt {
            table: "idempotency_keys",
            column: "status",
            row: row.job_id.to_string(),
        };
        let status = u16::try_from(row.status).map_err(|_| corrupt())?;
        Ok(if row.same { Known::Answered { job: JobId::new(row.job_id), status } } else { Known::Other })
    }

    /// Stores the key with its answer, as the last act of a transaction. False when somebody else has stored it
    /// meanwhile: then nothing of the transaction may stay.
    pub(crate) async fn keep_answer(
        &self,
        tx: &mut Transaction<'_, Postgres>,
        once: &Once,
        job: JobId,
        status: i16,
    ) -> Result<bool, StoreError> {
        let kept = sqlx::query!(
            "-- once::keep_answer
             insert into idempotency_keys as k (owner, key, operation, request_hash, job_id, status)
             values ($1, $2, $3, $4, $5, $6)
             on conflict (owner, key) do update
             set operation = excluded.operation, request_hash = excluded.request_hash, job_id = excluded.job_id,
                 status = excluded.status, created_at = now()
             where k.created_at <= now() - $7 * interval '1 ms'",
            once.owner.as_str(),
            once.key,
            once.operation,
            &self.sealer.code(&once.request_hash)[..],
            job.get(),
            status,
            millis(once.keep),
        )
        .execute(&mut **tx)
        .await?
        .rows_affected();
        Ok(kept == 1)
    }

    /// Removes some of the keys that are not known any more.
    pub(crate) async fn sweep_keys(&self, keep: Duration) -> Result<(), StoreError> {
        sqlx::query!(
            "-- once::sweep_keys
             delete from idempotency_keys where (owner, key) in (
                 select owner, key from idempotency_keys where created_at <= now() - $1 * interval '1 ms'
                 limit $2 for update skip locked
             )",
            millis(keep),
            SWEEP,
        )
        .execute(&self.pool)
        .await?;
        Ok(())
    }
}

#[expect(clippy::cast_precision_loss, reason = "days in milliseconds are far below 2^52")]
fn millis(keep: Duration) -> f64 {
    keep.as_millis() as f64
}

#[cfg(test)]
mod tests;

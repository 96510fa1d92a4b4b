//! Idempotency keys: a request with a key is carried out once, however often it is sent.
//!
//! A key is stored in the transaction that carries out its request. Of two requests at the same time, the second one waits at
//! the index of the keys, in any process, and then finds the response. If the first one fails, its transaction leaves
//! nothing, and the second one goes ahead.

use std::time::Duration;

use domain::{JobId, Owner};
use sqlx::{Postgres, Transaction};

use crate::{
    error::Result,
    store::Store,
    values::{StoredRow, millis},
};

/// How many expired keys are deleted at a time.
const SWEEP: i64 = 100;

/// A request with a key.
#[derive(Debug, Clone)]
pub struct Once {
    pub owner: Owner,
    pub key: String,
    /// What the request does: the same key with another operation is an error.
    pub operation: String,
    /// SHA-256 of the body. Only a keyed hash of it is stored, because the body may hold secrets that are easy to guess.
    pub request_hash: [u8; 32],
    /// How long the key is valid.
    pub keep: Duration,
}

/// The state of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Known {
    /// Unused: the request has to be carried out.
    New,
    /// The same request was carried out; the response was about this job and had this status.
    Answered { job: JobId, status: u16 },
    /// The key belongs to another request.
    Other,
}

impl Store {
    /// Looks for the response to the same request.
    pub async fn known(&self, once: &Once) -> Result<Known> {
        let row = sqlx::query!(
            r#"-- callers::idempotency::known
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
        let status = StoredRow::of("idempotency_keys", &row.job_id).number("status", row.status)?;
        Ok(if row.same { Known::Answered { job: JobId::new(row.job_id), status } } else { Known::Other })
    }

    /// Stores the key with its response, as the last statement of a transaction. False when another request has stored it in
    /// the meantime: then the transaction has to be rolled back.
    pub(crate) async fn keep_answer(
        &self,
        tx: &mut Transaction<'_, Postgres>,
        once: &Once,
        job: JobId,
        status: i16,
    ) -> Result<bool> {
        let stored = sqlx::query!(
            "-- callers::idempotency::keep_answer
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
        Ok(stored == 1)
    }

    /// Deletes some of the expired keys.
    pub(crate) async fn sweep_keys(&self, keep: Duration) -> Result<()> {
        self.run(sqlx::query!(
            "-- callers::idempotency::sweep_keys
             delete from idempotency_keys where (owner, key) in (
                 select owner, key from idempotency_keys where created_at <= now() - $1 * interval '1 ms'
                 limit $2 for update skip locked
             )",
            millis(keep),
            SWEEP,
        ))
        .await
    }
}

#[cfg(test)]
mod tests;

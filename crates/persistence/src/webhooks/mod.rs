//! What is told to whom of a job's status: the right to tell it, by lease, and what became of it.
//!
//! The messages are made by triggers, in the transaction that changes the status.

mod history;
pub(crate) mod of_tokens;
mod turns;

use domain::{Job, Webhook};
use secrecy::SecretSlice;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::{error::StoreError, seal::Sealer};

pub use history::{DeadLetter, WebhookDelivery, WebhookHistory};
pub use turns::{DeliveryResult, TurnTerms, WebhookTurn};

/// A key opens in its own row only, and not as an address.
fn key_row(job: Uuid) -> Vec<u8> {
    [b"webhook:".as_slice(), job.as_bytes()].concat()
}

fn url_row(job: Uuid) -> Vec<u8> {
    [b"webhook url:".as_slice(), job.as_bytes()].concat()
}

/// Adds the webhook of a job that is being stored; a trigger adds its first message.
pub(crate) async fn add(
    connection: &mut PgConnection,
    sealer: &Sealer,
    job: &Job,
    webhook: &Webhook,
) -> Result<(), StoreError> {
    let id = job.id.get();
    let url = sealer.seal(webhook.url.as_bytes(), &url_row(id))?;
    let secret = sealer.seal(webhook.key_bytes(), &key_row(id))?;
    sqlx::query!(
        "-- webhooks::add
         insert into webhooks (job_id, owner, url, secret) values ($1, $2, $3, $4)",
        id,
        job.owner.as_str(),
        url,
        secret,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// The webhook as it was given; none when it was sealed with another key.
fn opened(sealer: &Sealer, job: Uuid, url: &[u8], secret: &[u8]) -> Option<Webhook> {
    let url = opened_url(sealer, job, url)?;
    let key = sealer.open(secret, &key_row(job))?;
    Some(Webhook { url, key: SecretSlice::from(key.to_vec()) })
}

fn opened_url(sealer: &Sealer, job: Uuid, url: &[u8]) -> Option<String> {
    String::from_utf8(sealer.open(url, &url_row(job))?.to_vec()).ok()
}

fn unsigned<N: TryInto<U> + ToString + Copy, U>(number: N) -> Result<U, StoreError> {
    number.try_into().map_err(|_| StoreError::Corrupt {
        table: "webhook_deliveries",
        column: "seq, attempts or response_status",
        row: number.to_string(),
    })
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;

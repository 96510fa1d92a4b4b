//! Webhooks: messages about the status of jobs, and their deliveries.
//!
//! Triggers add the messages, in the transaction that changes the status.

mod history;
mod turns;

use domain::{Job, Webhook};
use secrecy::SecretSlice;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::{error::Result, seal::Sealer};

pub use history::{DeadLetter, WebhookDelivery, WebhookHistory};
pub use turns::{DeliveryResult, DeliveryTerms, WebhookLease};

/// Seals and opens the webhook of one row. It opens in this row only, and a key does not open as a URL.
pub(crate) struct WebhookSeal<'a> {
    sealer: &'a Sealer,
    owner: &'static str,
    id: Uuid,
}

impl<'a> WebhookSeal<'a> {
    pub(crate) fn job(sealer: &'a Sealer, id: Uuid) -> Self {
        Self { sealer, owner: "webhook", id }
    }

    pub(crate) fn token(sealer: &'a Sealer, id: Uuid) -> Self {
        Self { sealer, owner: "token webhook", id }
    }

    fn key_row(&self) -> Vec<u8> {
        [self.owner.as_bytes(), b":", self.id.as_bytes()].concat()
    }

    fn url_row(&self) -> Vec<u8> {
        [self.owner.as_bytes(), b" url:", self.id.as_bytes()].concat()
    }

    /// The sealed URL and the sealed key.
    pub(crate) fn seal(&self, webhook: &Webhook) -> Result<(Vec<u8>, Vec<u8>)> {
        let url = self.sealer.seal(webhook.url.as_bytes(), &self.url_row())?;
        Ok((url, self.sealer.seal(webhook.key_bytes(), &self.key_row())?))
    }

    /// `None` when it was sealed with another key.
    pub(crate) fn open(&self, url: &[u8], key: &[u8]) -> Option<Webhook> {
        let url = self.open_url(url)?;
        let key = self.sealer.open(key, &self.key_row())?;
        Some(Webhook { url, key: SecretSlice::from(key.to_vec()) })
    }

    fn open_url(&self, url: &[u8]) -> Option<String> {
        String::from_utf8(self.sealer.open(url, &self.url_row())?.to_vec()).ok()
    }
}

/// Adds the webhook of a new job; a trigger adds its first message.
pub(crate) async fn add(
    connection: &mut PgConnection,
    sealer: &Sealer,
    job: &Job,
    webhook: &Webhook,
) -> Result<()> {
    let id = job.id.get();
    let (url, secret) = WebhookSeal::job(sealer, id).seal(webhook)?;
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

#[cfg(test)]
mod tests;

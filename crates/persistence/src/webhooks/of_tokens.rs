//! Whom a token's jobs tell of their status when they name nobody themselves.

use domain::Webhook;
use secrecy::SecretSlice;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::{error::StoreError, seal::Sealer, store::Store};

/// What is sealed opens in its own row only, and a key not as an address.
fn key_row(token: Uuid) -> Vec<u8> {
    [b"token webhook:".as_slice(), token.as_bytes()].concat()
}

fn url_row(token: Uuid) -> Vec<u8> {
    [b"token webhook url:".as_slice(), token.as_bytes()].concat()
}

/// Adds the webhook of a token that is being stored.
pub(crate) async fn add(
    connection: &mut PgConnection,
    sealer: &Sealer,
    token: Uuid,
    webhook: &Webhook,
) -> Result<(), StoreError> {
    let url = sealer.seal(webhook.url.as_bytes(), &url_row(token))?;
    let secret = sealer.seal(webhook.key_bytes(), &key_row(token))?;
    sqlx::query!(
        "-- token_webhooks::add
         insert into token_webhooks (token_id, url, secret) values ($1, $2, $3)",
        token,
        url,
        secret,
    )
    .execute(connection)
    .await?;
    Ok(())
}

impl Store {
    /// Whom the jobs of a token tell; none when that is nobody. One that cannot be opened is an error: a job that is
    /// accepted without it would never be told of.
    pub async fn token_webhook(&self, token: Uuid) -> Result<Option<Webhook>, StoreError> {
        let row = sqlx::query!(
            "-- token_webhooks::find
             select url, secret from token_webhooks where token_id = $1",
            token,
        )
        .fetch_optional(&self.pool)
        .await?;
        let Some(row) = row else { return Ok(None) };
        let opened = || {
            let url = String::from_utf8(self.sealer.open(&row.url, &url_row(token))?.to_vec()).ok()?;
            let key = self.sealer.open(&row.secret, &key_row(token))?;
            Some(Webhook { url, key: SecretSlice::from(key.to_vec()) })
        };
        let corrupt =
            || StoreError::Corrupt { table: "token_webhooks", column: "url, secret", row: token.to_string() };
        opened().map(Some).ok_or_else(corrupt)
    }
}

//! Bearer tokens, stored as hashes, and their default webhooks.

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use domain::{Owner, Timestamp, Webhook};
use rand::RngCore;
use secrecy::SecretString;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::{error::Result, store::Store, values::StoredRow, webhooks::WebhookSeal};

/// What a token allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Scopes {
    pub read: bool,
    pub write: bool,
    /// Everything, on the jobs of all owners.
    pub admin: bool,
}

/// Secret scanners and people recognize a token by its prefix.
const PREFIX: &str = "tsl_";

/// A token to be stored.
#[derive(Debug, Clone)]
pub struct NewToken {
    pub id: Uuid,
    /// A name for people.
    pub name: String,
    pub owner: Owner,
    /// SHA-256 of the token.
    pub hash: [u8; 32],
    pub scopes: Scopes,
    pub created_at: Timestamp,
    pub expires_at: Option<Timestamp>,
    /// The default webhook of its jobs.
    pub webhook: Option<Webhook>,
}

/// A new random text of a token, and the hash that is stored of it.
pub fn random_token() -> (SecretString, [u8; 32]) {
    let mut random = [0; 32];
    rand::rng().fill_bytes(&mut random);
    token_of(random)
}

fn token_of(random: [u8; 32]) -> (SecretString, [u8; 32]) {
    let text = format!("{PREFIX}{}", BASE64_URL_SAFE_NO_PAD.encode(random));
    let hash = Sha256::digest(&text).into();
    (text.into(), hash)
}

/// A stored token.
#[derive(Debug, Clone)]
pub struct Token {
    pub id: Uuid,
    pub name: String,
    pub owner: Owner,
    pub scopes: Scopes,
    pub created_at: Timestamp,
    pub expires_at: Option<Timestamp>,
    pub revoked_at: Option<Timestamp>,
    /// To the minute.
    pub last_used_at: Option<Timestamp>,
    /// Whether it has a default webhook.
    pub has_webhook: bool,
}

impl Token {
    /// Neither expired nor revoked.
    pub fn is_good(&self, now: Timestamp) -> bool {
        let over = |at: Option<Timestamp>| at.is_some_and(|at| at <= now);
        !over(self.expires_at) && !over(self.revoked_at)
    }

    /// `active`, `expired` or `revoked`.
    pub fn state(&self, now: Timestamp) -> &'static str {
        match self.revoked_at {
            Some(_) => "revoked",
            None if self.is_good(now) => "active",
            None => "expired",
        }
    }
}

impl Scopes {
    /// As words, such as `read`.
    pub fn to_words(self) -> Vec<String> {
        let words = [(self.read, "read"), (self.write, "write"), (self.admin, "admin")];
        words.into_iter().filter(|(given, _)| *given).map(|(_, word)| word.to_owned()).collect()
    }

    /// The scopes that the words allow; an unknown word allows nothing.
    pub fn from_words(words: &[impl AsRef<str>]) -> Self {
        let has = |word: &str| words.iter().any(|given| given.as_ref() == word);
        Self { read: has("read"), write: has("write"), admin: has("admin") }
    }
}

impl From<Vec<String>> for Scopes {
    fn from(words: Vec<String>) -> Self {
        Self::from_words(&words)
    }
}

impl Store {
    pub async fn create_token(&self, token: &NewToken) -> Result<()> {
        let mut tx = self.begin().await?;
        sqlx::query!(
            "-- callers::tokens::create_token
             insert into tokens (id, name, owner, hash, scopes, created_at, expires_at)
             values ($1, $2, $3, $4, $5, $6, $7)",
            token.id,
            token.name,
            token.owner.as_str(),
            &token.hash[..],
            &token.scopes.to_words(),
            token.created_at,
            token.expires_at,
        )
        .execute(&mut *tx)
        .await?;
        if let Some(webhook) = &token.webhook {
            let (url, secret) = WebhookSeal::token(&self.sealer, token.id).seal(webhook)?;
            sqlx::query!(
                "-- callers::tokens::create_token webhook
                 insert into token_webhooks (token_id, url, secret) values ($1, $2, $3)",
                token.id,
                url,
                secret,
            )
            .execute(&mut *tx)
            .await?;
        }
        Ok(tx.commit().await?)
    }

    /// Finds a token by its hash. The time that this takes reveals something about a hash, and nothing about a token.
    pub async fn find_token(&self, hash: &[u8; 32]) -> Result<Option<Token>> {
        let token = sqlx::query_as!(
            Token,
            r#"-- callers::tokens::find_token
               select id, name, owner, scopes, created_at, expires_at, revoked_at, last_used_at,
                      exists (select from token_webhooks w where w.token_id = tokens.id) as "has_webhook!"
               from tokens where hash = $1"#,
            &hash[..],
        );
        Ok(token.fetch_optional(&self.pool).await?)
    }

    /// Records that a token is in use: once a minute, for any number of calls and processes.
    pub async fn record_use(&self, token: Uuid) -> Result<()> {
        self.run(sqlx::query!(
            "-- callers::tokens::record_use
             update tokens set last_used_at = now()
             where id = $1 and (last_used_at is null or last_used_at < now() - interval '1 minute')",
            token,
        ))
        .await
    }

    /// All tokens, or those of an owner, newest first.
    pub async fn list_tokens(&self, owner: Option<&Owner>) -> Result<Vec<Token>> {
        let tokens = sqlx::query_as!(
            Token,
            r#"-- callers::tokens::list_tokens
               select id, name, owner, scopes, created_at, expires_at, revoked_at, last_used_at,
                      exists (select from token_webhooks w where w.token_id = tokens.id) as "has_webhook!"
               from tokens where $1::text is null or owner = $1 order by created_at desc, id"#,
            owner.map(Owner::as_str),
        );
        Ok(tokens.fetch_all(&self.pool).await?)
    }

    /// Revokes a token for good; `None` when no token has this id. The time of an earlier revocation stays.
    pub async fn revoke_token(&self, id: Uuid, now: Timestamp) -> Result<Option<Token>> {
        let token = sqlx::query_as!(
            Token,
            r#"-- callers::tokens::revoke_token
               update tokens set revoked_at = coalesce(revoked_at, $2) where id = $1
               returning id, name, owner, scopes, created_at, expires_at, revoked_at, last_used_at,
                         exists (select from token_webhooks w where w.token_id = tokens.id) as "has_webhook!""#,
            id,
            now,
        );
        Ok(token.fetch_optional(&self.pool).await?)
    }

    /// The default webhook of a token. One that cannot be opened is an error: a job that is accepted without it would send no
    /// messages.
    pub async fn token_webhook(&self, token: Uuid) -> Result<Option<Webhook>> {
        let row = sqlx::query!(
            "-- callers::tokens::token_webhook
             select url, secret from token_webhooks where token_id = $1",
            token,
        )
        .fetch_optional(&self.pool)
        .await?;
        let Some(row) = row else { return Ok(None) };
        let webhook = WebhookSeal::token(&self.sealer, token).open(&row.url, &row.secret);
        let corrupt = || StoredRow::of("token_webhooks", &token).corrupt("url, secret");
        webhook.map(Some).ok_or_else(corrupt)
    }
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret;

    use super::*;

    #[test]
    fn a_token_is_random_and_its_hash_is_that_of_the_whole_text() {
        let (text, hash) = token_of([255; 32]);
        assert_eq!(text.expose_secret(), format!("tsl_{}8", "_".repeat(42)));
        assert_eq!(hash, <[u8; 32]>::from(Sha256::digest(text.expose_secret())));
        assert_ne!(random_token().1, random_token().1);
    }
}

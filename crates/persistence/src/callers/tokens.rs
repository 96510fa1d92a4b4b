//! Who may call: bearer tokens, known by their hash only.

use domain::{Owner, Timestamp, Webhook};
use uuid::Uuid;

use crate::{error::StoreError, store::Store, webhooks::of_tokens};

/// What a token allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Scopes {
    pub read: bool,
    pub write: bool,
    /// Everything, on everybody's jobs.
    pub admin: bool,
}

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
    /// Whom its jobs tell of their status when they name nobody themselves.
    pub webhook: Option<Webhook>,
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
    /// Whether its jobs tell somebody of their status who is named by it.
    pub has_webhook: bool,
}

impl Token {
    /// Neither expired nor revoked.
    pub fn is_good(&self, now: Timestamp) -> bool {
        let over = |at: Option<Timestamp>| at.is_some_and(|at| at <= now);
        !over(self.expires_at) && !over(self.revoked_at)
    }
}

/// A token as it is stored.
struct TokenRow {
    id: Uuid,
    name: String,
    owner: String,
    scopes: Vec<String>,
    created_at: Timestamp,
    expires_at: Option<Timestamp>,
    revoked_at: Option<Timestamp>,
    last_used_at: Option<Timestamp>,
    has_webhook: bool,
}

impl From<TokenRow> for Token {
    fn from(row: TokenRow) -> Self {
        Self {
            id: row.id,
            name: row.name,
            owner: Owner::new(row.owner),
            scopes: Scopes::from_words(&row.scopes),
            created_at: row.created_at,
            expires_at: row.expires_at,
            revoked_at: row.revoked_at,
            last_used_at: row.last_used_at,
            has_webhook: row.has_webhook,
        }
    }
}

impl Scopes {
    /// As words, such as `read`.
    pub fn to_words(self) -> Vec<String> {
        let words = [(self.read, "read"), (self.write, "write"), (self.admin, "admin")];
        words.into_iter().filter(|(given, _)| *given).map(|(_, word)| word.to_owned()).collect()
    }

    /// What the words allow; one that is none allows nothing.
    pub fn from_words(words: &[impl AsRef<str>]) -> Self {
        let has = |word: &str| words.iter().any(|given| given.as_ref() == word);
        Self { read: has("read"), write: has("write"), admin: has("admin") }
    }
}

impl Store {
    pub async fn create_token(&self, token: &NewToken) -> Result<(), StoreError> {
        let mut tx = self.pool.begin().await?;
        sqlx::query!(
            "-- tokens::create_token
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
            of_tokens::add(&mut tx, &self.sealer, token.id, webhook).await?;
        }
        tx.commit().await?;
        Ok(())
    }

    /// Looks a token up by its digest. Whoever measures how long that takes learns something about a digest, and
    /// nothing about a token.
    pub async fn find_token(&self, hash: &[u8; 32]) -> Result<Option<Token>, StoreError> {
        let row = sqlx::query_as!(
            TokenRow,
            r#"-- tokens::find_token
               select id, name, owner, scopes, created_at, expires_at, revoked_at, last_used_at,
                      exists (select from token_webhooks w where w.token_id = tokens.id) as "has_webhook!"
               from tokens where hash = $1"#,
            &hash[..],
        )
        .fetch_optional(&self.pool)
        .await?;
        Ok(row.map(Token::from))
    }

    /// Notes that a token is in use: once a minute, however often and through however many processes it is asked for.
    pub async fn note_use(&self, token: Uuid) -> Result<(), StoreError> {
        sqlx::query!(
            "-- tokens::note_use
             update tokens set last_used_at = now()
             where id = $1 and (last_used_at is null or last_used_at < now() - interval '1 minute')",
            token,
        )
        .execute(&self.pool)
        .await?;
        Ok(())
    }

    /// All tokens, or those of an owner, the newest first.
    pub async fn list_tokens(&self, owner: Option<&Owner>) -> Result<Vec<Token>, StoreError> {
        let rows = sqlx::query_as!(
            TokenRow,
            r#"-- tokens::list_tokens
               select id, name, owner, scopes, created_at, expires_at, revoked_at, last_used_at,
                      exists (select from token_webhooks w where w.token_id = tokens.id) as "has_webhook!"
               from tokens where $1::text is null or owner = $1 order by created_at desc, id"#,
            owner.map(Owner::as_str),
        )
        .fetch_all(&self.pool)
        .await?;
        Ok(rows.into_iter().map(Token::from).collect())
    }

    /// Revokes a token for good. None when there is none of this id; one that was revoked before stays so.
    pub async fn revoke_token(&self, id: Uuid, now: Timestamp) -> Result<Option<Token>, StoreError> {
        let row = sqlx::query_as!(
            TokenRow,
            r#"-- tokens::revoke_token
               update tokens set revoked_at = coalesce(revoked_at, $2) where id = $1
               returning id, name, owner, scopes, created_at, expires_at, revoked_at, last_used_at,
                         exists (select from token_webhooks w where w.token_id = tokens.id) as "has_webhook!""#,
            id,
            now,
        )
        .fetch_optional(&self.pool)
        .await?;
        Ok(row.map(Token::from))
    }
}

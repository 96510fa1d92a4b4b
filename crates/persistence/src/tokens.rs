//! Who may call: bearer tokens, known by their hash only.

use domain::{Owner, Timestamp};
use uuid::Uuid;

use crate::{error::StoreError, store::Store};

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
}

/// A stored token.
#[derive(Debug, Clone)]
pub struct Token {
    pub owner: Owner,
    pub scopes: Scopes,
    pub expires_at: Option<Timestamp>,
    pub revoked_at: Option<Timestamp>,
}

impl Scopes {
    fn to_words(self) -> Vec<String> {
        let words = [(self.read, "read"), (self.write, "write"), (self.admin, "admin")];
        words.into_iter().filter(|(given, _)| *given).map(|(_, word)| word.to_owned()).collect()
    }

    fn from_words(words: &[String]) -> Self {
        let has = |word: &str| words.iter().any(|given| given == word);
        Self { read: has("read"), write: has("write"), admin: has("admin") }
    }
}

impl Store {
    pub async fn create_token(&self, token: &NewToken) -> Result<(), StoreError> {
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
        .execute(&self.pool)
        .await?;
        Ok(())
    }

    pub async fn find_token(&self, hash: &[u8; 32]) -> Result<Option<Token>, StoreError> {
        let row = sqlx::query!(
            "-- tokens::find_token
             select owner, scopes, expires_at, revoked_at from tokens where hash = $1",
            &hash[..],
        )
        .fetch_optional(&self.pool)
        .await?;
        Ok(row.map(|row| Token {
            owner: Owner::new(row.owner),
            scopes: Scopes::from_words(&row.scopes),
            expires_at: row.expires_at,
            revoked_at: row.revoked_at,
        }))
    }
}

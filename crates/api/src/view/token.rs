//! Callers and their tokens.

// `ToSchema` recognizes this type by its name only.
use chrono::{DateTime, Utc};
use domain::Timestamp;
use persistence::Token;
use serde::Serialize;
use strum::{Display, EnumString};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::auth::{Caller, Standing};

/// What the request's token allows.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CallerView {
    /// The owner of the jobs that this caller submits.
    #[schema(example = "vision")]
    pub owner: String,
    /// What the caller may do; `admin` includes the others, for the jobs of all owners.
    pub scopes: Vec<ScopeName>,
    /// How the caller was recognized.
    pub authentication: AuthenticationView,
    /// When a signed token expires; null for the others.
    pub expires_at: Option<DateTime<Utc>>,
}

/// How a caller was recognized: `none` if authentication is off, `token` by a token of the service, `jwt` by a token that the issuer signed.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum AuthenticationView {
    None,
    Token,
    Jwt,
}

/// What a token allows: `read` reads the owner's jobs, `write` submits and changes them, `admin` does everything, on the jobs of all owners.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, serde::Deserialize, ToSchema, Display, EnumString)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub(crate) enum ScopeName {
    Read,
    Write,
    Admin,
}

impl From<&Caller> for CallerView {
    fn from(caller: &Caller) -> Self {
        let (authentication, expires_at) = match caller.standing {
            Standing::Always => (AuthenticationView::None, None),
            Standing::Token(_) => (AuthenticationView::Token, None),
            Standing::Until(end) => (AuthenticationView::Jwt, Some(end)),
        };
        Self {
            owner: caller.owner.to_string(),
            scopes: scope_names(&caller.scopes.to_words()),
            authentication,
            expires_at,
        }
    }
}

fn scope_names(words: &[String]) -> Vec<ScopeName> {
    words.iter().filter_map(|word| word.parse().ok()).collect()
}

/// The tokens of the service.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TokenListView {
    /// The tokens, newest first.
    pub tokens: Vec<TokenView>,
}

/// A token. Its text is shown only by the call that creates it.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TokenView {
    /// The token's id.
    pub id: Uuid,
    /// A name for people.
    pub name: String,
    /// The owner of the jobs that the token gives access to.
    pub owner: String,
    /// What it allows.
    pub scopes: Vec<ScopeName>,
    /// `active`, `expired` or `revoked`.
    #[schema(example = "active")]
    pub state: String,
    /// When it was created.
    pub created_at: DateTime<Utc>,
    /// When it expires; null for never.
    pub expires_at: Option<DateTime<Utc>>,
    /// When it was revoked; null if it was not.
    pub revoked_at: Option<DateTime<Utc>>,
    /// When it was last used, to the minute; null for never.
    pub last_used_at: Option<DateTime<Utc>>,
    /// Whether its jobs have a default webhook.
    pub webhook: bool,
}

impl TokenView {
    pub(crate) fn new(token: &Token, now: Timestamp) -> Self {
        Self {
            id: token.id,
            name: token.name.clone(),
            owner: token.owner.to_string(),
            scopes: scope_names(&token.scopes.to_words()),
            state: token.state(now).to_owned(),
            created_at: token.created_at,
            expires_at: token.expires_at,
            revoked_at: token.revoked_at,
            last_used_at: token.last_used_at,
            webhook: token.has_webhook,
        }
    }
}

/// A new token with its text.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct NewTokenView {
    /// The text to send as `Authorization: Bearer …`. It is not shown again.
    pub token: SecretText,
    /// The token's id.
    pub id: Uuid,
    /// A name for people.
    pub name: String,
    /// The owner of the jobs that the token gives access to.
    pub owner: String,
    /// What it allows.
    pub scopes: Vec<ScopeName>,
    /// When it expires; null for never.
    pub expires_at: Option<DateTime<Utc>>,
}

/// A secret in an answer: no log shows it.
#[derive(Serialize, ToSchema)]
#[serde(transparent)]
#[schema(value_type = String)]
pub(crate) struct SecretText(pub(crate) String);

impl std::fmt::Debug for SecretText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SecretText")
    }
}

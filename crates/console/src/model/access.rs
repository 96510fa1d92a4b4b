//! Callers and their tokens.

use serde::{Deserialize, Serialize};

use super::{Moment, Text};

/// Who visits, as the API said at the log-in. A token does not change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Who {
    pub(crate) owner: Text,
    pub(crate) scopes: Vec<Text>,
}

impl Who {
    /// A visitor of a service that takes every caller.
    pub(crate) fn anyone() -> Self {
        Self { owner: Text::from("local"), scopes: vec![Text::from("admin")] }
    }

    fn has(&self, scope: &str) -> bool {
        self.scopes.iter().any(|own| own.raw() == scope)
    }

    pub(crate) fn is_admin(&self) -> bool {
        self.has("admin")
    }

    /// Whether the visitor may change something. The API checks it again.
    pub(crate) fn may_write(&self) -> bool {
        self.has("write") || self.is_admin()
    }
}

/// The caller of a request.
#[derive(Debug, Deserialize)]
pub(crate) struct Caller {
    pub(crate) owner: Text,
    pub(crate) scopes: Vec<Text>,
    pub(crate) authentication: Text,
    pub(crate) expires_at: Option<Moment>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct TokenList {
    pub(crate) tokens: Vec<Token>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Token {
    pub(crate) id: String,
    pub(crate) name: Text,
    pub(crate) owner: Text,
    pub(crate) scopes: Vec<Text>,
    pub(crate) state: Text,
    pub(crate) created_at: Moment,
    pub(crate) expires_at: Option<Moment>,
    pub(crate) last_used_at: Option<Moment>,
}

/// A token with its text, which no other answer has.
#[derive(Deserialize)]
pub(crate) struct NewToken {
    pub(crate) token: Text,
    pub(crate) owner: Text,
}

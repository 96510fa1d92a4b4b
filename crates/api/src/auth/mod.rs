//! Authentication and authorization of callers.

mod cache;
mod caller;
pub(crate) mod jwt;
mod standing;

pub(crate) use cache::TokenCache;
pub(crate) use caller::{Admin, Caller};
pub(crate) use jwt::Jwt;
pub(crate) use standing::Standing;

/// Who may call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuthMode {
    /// Everyone, as the owner `local`, with every scope.
    Disabled,
    /// Callers with a token from the database or, if configured, a token signed by the issuer.
    Tokens,
}

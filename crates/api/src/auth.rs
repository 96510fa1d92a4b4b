//! Who calls, and what they may do.

use axum::{
    extract::FromRequestParts,
    http::{HeaderMap, Method, header, request::Parts},
};
use domain::Owner;
use persistence::{Scopes, Viewer};
use sha2::{Digest, Sha256};

use crate::{problem::Problem, rate, state::App};

mod cache;

pub(crate) use cache::TokenCache;

/// Who may call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuthMode {
    /// Everybody, as the owner `local`, with every scope.
    Disabled,
    /// Whoever brings a token that the database knows.
    Tokens,
}

/// A caller that may do what the request's method does: extracting it is the check.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    pub(crate) owner: Owner,
    admin: bool,
}

impl Caller {
    /// Whose jobs the caller may see.
    pub(crate) fn viewer(&self) -> Viewer {
        if self.admin { Viewer::All } else { Viewer::Owner(self.owner.clone()) }
    }
}

/// A caller that may do everything: extracting it is the check.
#[derive(Debug, Clone)]
pub(crate) struct Admin(pub(crate) Caller);

impl FromRequestParts<App> for Admin {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let caller = Caller::from_request_parts(parts, app).await?;
        if caller.admin {
            Ok(Self(caller))
        } else {
            Err(Problem::forbidden("This needs a token with the scope `admin`.", NEEDS_ADMIN))
        }
    }
}

const NO_TOKEN: &str = r#"Bearer realm="tao-slurm""#;
const BAD_TOKEN: &str = r#"Bearer realm="tao-slurm", error="invalid_token""#;
const NEEDS_READ: &str = r#"Bearer realm="tao-slurm", error="insufficient_scope", scope="read""#;
const NEEDS_ADMIN: &str = r#"Bearer realm="tao-slurm", error="insufficient_scope", scope="admin""#;
const NEEDS_WRITE: &str = r#"Bearer realm="tao-slurm", error="insufficient_scope", scope="write""#;

impl FromRequestParts<App> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        match app.auth {
            AuthMode::Disabled => Ok(Self { owner: Owner::new("local"), admin: true }),
            AuthMode::Tokens => {
                let hash: [u8; 32] = Sha256::digest(bearer(&parts.headers)?).into();
                // One text for unknown, expired and revoked: which of them it is helps only a guesser.
                let refused =
                    || Problem::unauthorized("The token is unknown, expired or revoked.", BAD_TOKEN);
                let now = app.clock.now();
                let token = app.tokens().find(&app.store, &hash, now).await?.ok_or_else(refused)?;
                if !token.is_good(now) {
                    return Err(refused());
                }
                rate::spend(app, &parts.extensions, hash)?;
                allow(token.scopes, &parts.method)?;
                Ok(Self { owner: token.owner, admin: token.scopes.admin })
            }
        }
    }
}

/// The token in the request's head (RFC 6750 §2.1).
fn bearer(headers: &HeaderMap) -> Result<&[u8], Problem> {
    let Some(value) = headers.get(header::AUTHORIZATION) else {
        return Err(Problem::unauthorized(
            "Send a token: `Authorization: Bearer <token>`; `tao-slurm token create` makes one.",
            NO_TOKEN,
        ));
    };
    let value = value.as_bytes();
    match value.split_at_checked(7) {
        Some((scheme, token))
            if scheme.eq_ignore_ascii_case(b"bearer ") && !token.trim_ascii().is_empty() =>
        {
            Ok(token.trim_ascii())
        }
        _ => Err(Problem::unauthorized("The Authorization header must be `Bearer <token>`.", BAD_TOKEN)),
    }
}

fn allow(scopes: Scopes, method: &Method) -> Result<(), Problem> {
    let looks = matches!(*method, Method::GET | Method::HEAD);
    if scopes.admin || (looks && scopes.read) || (!looks && scopes.write) {
        Ok(())
    } else if looks {
        Err(Problem::forbidden("This needs a token with the scope `read`.", NEEDS_READ))
    } else {
        Err(Problem::forbidden("This needs a token with the scope `write`.", NEEDS_WRITE))
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn read(value: &'static str) -> Option<Vec<u8>> {
        let headers = HeaderMap::from_iter([(header::AUTHORIZATION, HeaderValue::from_static(value))]);
        bearer(&headers).ok().map(<[u8]>::to_vec)
    }

    #[test]
    fn the_scheme_is_read_in_any_case_and_nothing_else_is_a_token() {
        assert_eq!(read("Bearer abc").as_deref(), Some(&b"abc"[..]));
        assert_eq!(read("bearer  abc").as_deref(), Some(&b"abc"[..]));
        for wrong in ["", "Bearer", "Bearer ", "Basic abc", "abc", "Bearerabc"] {
            assert_eq!(read(wrong), None, "{wrong:?}");
        }
    }
}

//! Who calls, and what they may do.

use axum::{
    extract::FromRequestParts,
    http::{HeaderMap, Method, header, request::Parts},
};
use domain::Owner;
use persistence::{Scopes, Viewer};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::{http::rate, problem::Problem, state::App};

mod cache;
pub(crate) mod jwt;
mod standing;

pub(crate) use cache::TokenCache;
pub(crate) use jwt::Jwt;
pub(crate) use standing::Standing;

/// Who may call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuthMode {
    /// Everybody, as the owner `local`, with every scope.
    Disabled,
    /// Whoever brings a token that the database knows, or, where that is set, one that an issuer has signed.
    Tokens,
}

/// A caller that may do what the request's method does: extracting it is the check.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    pub(crate) owner: Owner,
    admin: bool,
    /// Until when that is so.
    pub(crate) standing: Standing,
    /// His token, when it says whom its jobs tell of their status.
    pub(crate) telling: Option<Uuid>,
}

impl Caller {
    /// Whether he may see the jobs of this owner.
    pub(crate) fn sees(&self, owner: &Owner) -> bool {
        self.admin || self.owner == *owner
    }

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
        if app.auth == AuthMode::Disabled {
            return Ok(Self {
                owner: Owner::new("local"),
                admin: true,
                standing: Standing::Always,
                telling: None,
            });
        }
        let token = bearer(&parts.headers)?;
        match app.jwt() {
            Some(jwt) if Jwt::is_meant(token) => Self::of_jwt(app, jwt, token, parts).await,
            _ => Self::of_token(app, token, parts).await,
        }
    }
}

impl Caller {
    /// Whoever shows a token of the service's own.
    async fn of_token(app: &App, token: &[u8], request: &Parts) -> Result<Self, Problem> {
        let hash: [u8; 32] = Sha256::digest(token).into();
        let now = app.clock.now();
        let token = app.tokens().find(&app.store, &hash, now).await?.ok_or_else(no_token_of_ours)?;
        if !token.is_good(now) {
            return Err(no_token_of_ours());
        }
        rate::spend(app, &request.extensions, hash)?;
        allow(token.scopes, &request.method)?;
        let telling = token.has_webhook.then_some(token.id);
        Ok(Self { owner: token.owner, admin: token.scopes.admin, standing: Standing::Token(hash), telling })
    }

    /// Whoever shows a token that somebody else has signed.
    async fn of_jwt(app: &App, jwt: &Jwt, token: &[u8], request: &Parts) -> Result<Self, Problem> {
        let bearer = jwt.judge(token, app.clock.now()).await?;
        // He gets a new token often, and has one rate all the same.
        let payer = Sha256::digest([b"jwt owner ", bearer.owner.as_str().as_bytes()].concat()).into();
        rate::spend(app, &request.extensions, payer)?;
        allow(bearer.scopes, &request.method)?;
        let standing = Standing::Until(bearer.until);
        Ok(Self { owner: bearer.owner, admin: bearer.scopes.admin, standing, telling: None })
    }
}

/// One text for unknown, expired and revoked: which of them it is helps only a guesser.
fn no_token_of_ours() -> Problem {
    Problem::unauthorized("The token is unknown, expired or revoked.", BAD_TOKEN)
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

//! Extractors that authenticate and authorize the caller.

use axum::{
    extract::FromRequestParts,
    http::{HeaderMap, Method, header, request::Parts},
};
use domain::Owner;
use persistence::{Scopes, Viewer};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::{
    AuthMode, Jwt,
    standing::{BAD_TOKEN, Standing, no_token_of_ours},
};
use crate::{http::rate, problem::Problem, state::App};

/// A caller that may use the request's method. Extracting it performs the check.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    pub(crate) owner: Owner,
    pub(crate) scopes: Scopes,
    /// How long the caller stays authorized.
    pub(crate) standing: Standing,
    /// The caller's token, if it has a default webhook.
    pub(crate) webhook_token: Option<Uuid>,
}

impl Caller {
    /// Whether the caller may see the jobs of this owner.
    pub(crate) fn sees(&self, owner: &Owner) -> bool {
        self.scopes.admin || self.owner == *owner
    }

    /// The jobs that the caller may see.
    pub(crate) fn viewer(&self) -> Viewer {
        if self.scopes.admin { Viewer::All } else { Viewer::Owner(self.owner.clone()) }
    }
}

/// A caller with the scope `admin`. Extracting it performs the check.
#[derive(Debug, Clone)]
pub(crate) struct Admin(pub(crate) Caller);

impl FromRequestParts<App> for Admin {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let caller = Caller::from_request_parts(parts, app).await?;
        if caller.scopes.admin { Ok(Self(caller)) } else { Err(Problem::forbidden("admin")) }
    }
}

const NO_TOKEN: &str = r#"Bearer realm="tao-slurm""#;

impl FromRequestParts<App> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        if app.auth == AuthMode::Disabled {
            return Ok(Self {
                owner: Owner::new("local"),
                scopes: Scopes { read: true, write: true, admin: true },
                standing: Standing::Always,
                webhook_token: None,
            });
        }
        let token = bearer(&parts.headers)?;
        match &app.jwt {
            Some(jwt) if Jwt::is_meant(token) => Self::of_jwt(app, jwt, token, parts).await,
            _ => Self::of_token(app, token, parts).await,
        }
    }
}

impl Caller {
    /// A caller with one of the service's own tokens.
    async fn of_token(app: &App, token: &[u8], request: &Parts) -> Result<Self, Problem> {
        let hash: [u8; 32] = Sha256::digest(token).into();
        let now = app.clock.now();
        let token = app
            .tokens
            .find(&app.store, &hash, now, app.limits.token_memory)
            .await?
            .ok_or_else(no_token_of_ours)?;
        if !token.is_good(now) {
            return Err(no_token_of_ours());
        }
        rate::spend(app.rates.as_ref(), &request.extensions, hash)?;
        allow(token.scopes, &request.method)?;
        let webhook_token = token.has_webhook.then_some(token.id);
        Ok(Self { owner: token.owner, scopes: token.scopes, standing: Standing::Token(hash), webhook_token })
    }

    /// A caller with a token signed by the issuer.
    async fn of_jwt(app: &App, jwt: &Jwt, token: &[u8], request: &Parts) -> Result<Self, Problem> {
        let bearer = jwt.judge(token, app.clock.now()).await?;
        // The limit is per owner, because bearers get new tokens often.
        let payer = Sha256::digest([b"jwt owner ", bearer.owner.as_str().as_bytes()].concat()).into();
        rate::spend(app.rates.as_ref(), &request.extensions, payer)?;
        allow(bearer.scopes, &request.method)?;
        let standing = Standing::Until(bearer.until);
        Ok(Self { owner: bearer.owner, scopes: bearer.scopes, standing, webhook_token: None })
    }
}

/// The bearer token (RFC 6750 §2.1).
fn bearer(headers: &HeaderMap) -> Result<&[u8], Problem> {
    let Some(value) = headers.get(header::AUTHORIZATION) else {
        return Err(Problem::unauthorized(
            "Send a token as `Authorization: Bearer <token>`. `tao-slurm token create` creates one.",
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
        _ => Err(Problem::unauthorized("The `Authorization` header must be `Bearer <token>`.", BAD_TOKEN)),
    }
}

fn allow(scopes: Scopes, method: &Method) -> Result<(), Problem> {
    let (scope, is_granted) = match *method {
        Method::GET | Method::HEAD => ("read", scopes.read),
        _ => ("write", scopes.write),
    };
    if is_granted || scopes.admin { Ok(()) } else { Err(Problem::forbidden(scope)) }
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

//! The client of an issuer: what is sent to it, and how its answers are read. No I/O.

use std::fmt;

use console::{Begun, IssuerFault};
use oauth2::{
    AuthType, AuthUrl, AuthorizationCode, Client, ClientId, ClientSecret, CsrfToken, EndpointNotSet,
    EndpointSet, ExtraTokenFields, HttpRequest, HttpResponse, PkceCodeChallenge, PkceCodeVerifier,
    RedirectUrl, RequestTokenError, Scope, StandardRevocableToken, StandardTokenResponse, TokenResponse,
    TokenUrl,
    basic::{
        BasicErrorResponse, BasicRevocationErrorResponse, BasicTokenIntrospectionResponse, BasicTokenType,
    },
};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};

use super::document::Document;
use crate::config::{LogInConfig, TokenKind};

/// RFC 6749 §5.2 knows error codes of a few words.
const LONGEST_CODE: usize = 100;

/// The token beside the access token (OpenID Connect Core 1.0 §3.1.3.3).
#[derive(Deserialize, Serialize)]
struct WithIdToken {
    #[serde(skip_serializing)]
    id_token: Option<SecretString>,
}

impl fmt::Debug for WithIdToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WithIdToken")
    }
}

impl ExtraTokenFields for WithIdToken {}

type Tokens = StandardTokenResponse<WithIdToken, BasicTokenType>;
type Found = Client<
    BasicErrorResponse,
    Tokens,
    BasicTokenIntrospectionResponse,
    StandardRevocableToken,
    BasicRevocationErrorResponse,
    EndpointSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointSet,
>;

fn client(config: &LogInConfig, document: &Document) -> Found {
    let auth = if document.is_secret_in_body { AuthType::RequestBody } else { AuthType::BasicAuth };
    Client::new(ClientId::new(config.client_id.clone()))
        .set_auth_type(auth)
        .set_auth_uri(AuthUrl::from_url(document.authorization.clone()))
        .set_token_uri(TokenUrl::from_url(document.token.clone()))
        .set_redirect_uri(RedirectUrl::from_url(config.redirect_url.clone()))
}

/// A log-in with a state and a verifier of its own.
pub(super) fn begin(config: &LogInConfig, document: &Document) -> Begun {
    let (challenge, verifier) = PkceCodeChallenge::new_random_sha256();
    let client = client(config, document);
    let (address, state) = client
        .authorize_url(CsrfToken::new_random)
        .add_scopes(config.scopes.iter().cloned().map(Scope::new))
        .set_pkce_challenge(challenge)
        .url();
    Begun {
        address: address.into(),
        state: state.into_secret().into(),
        verifier: verifier.into_secret().into(),
    }
}

/// Refuses the answer of another issuer (RFC 9207 §2.4).
pub(super) fn check_issuer(
    config: &LogInConfig,
    document: &Document,
    named: Option<&str>,
) -> Result<(), IssuerFault> {
    let is_ours = named.map_or(!document.names_itself, |named| named == config.issuer);
    if is_ours { Ok(()) } else { Err(IssuerFault::OtherIssuer) }
}

/// Exchanges a code by one request. No error has a text that could hold the code or a token.
pub(super) fn exchange(
    config: &LogInConfig,
    document: &Document,
    secret: Option<&SecretString>,
    code: &SecretString,
    verifier: &SecretString,
    send: &dyn Fn(HttpRequest) -> Result<HttpResponse, NoAnswer>,
) -> Result<SecretString, IssuerFault> {
    let mut client = client(config, document);
    if let Some(secret) = secret {
        client = client.set_client_secret(ClientSecret::new(secret.expose_secret().to_owned()));
    }
    let tokens = client
        .exchange_code(AuthorizationCode::new(code.expose_secret().to_owned()))
        .set_pkce_verifier(PkceCodeVerifier::new(verifier.expose_secret().to_owned()))
        .request(&|request| send(request))
        .map_err(|error| fault(error, document))?;
    match config.token {
        TokenKind::AccessToken => Ok(tokens.access_token().secret().as_str().into()),
        TokenKind::IdToken => tokens.extra_fields().id_token.clone().ok_or(IssuerFault::NoToken("ID token")),
    }
}

/// A request had no answer.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct NoAnswer(pub(super) String);

fn fault(error: RequestTokenError<NoAnswer, BasicErrorResponse>, document: &Document) -> IssuerFault {
    let unreachable =
        |reason: String| IssuerFault::Unreachable { address: document.token.to_string(), reason };
    match error {
        RequestTokenError::ServerResponse(answer) => {
            let code: &str = answer.error().as_ref();
            // What the standard allows in a code; a description may repeat what was sent.
            let is_allowed = |letter: &char| matches!(letter, ' '..='~') && !matches!(letter, '"' | '\\');
            IssuerFault::Refused(code.chars().filter(is_allowed).take(LONGEST_CODE).collect())
        }
        RequestTokenError::Request(NoAnswer(reason)) => unreachable(reason),
        // Both have the text of the answer, which may be a token's.
        RequestTokenError::Parse(..) | RequestTokenError::Other(_) => {
            unreachable("the response is no JSON document with a token or an error".to_owned())
        }
    }
}

#[cfg(test)]
pub(super) mod tests;

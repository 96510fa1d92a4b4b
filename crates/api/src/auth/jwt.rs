//! Tokens signed by an external issuer (RFC 7519): keys, audience and claims.
//!
//! No claim is used before the signature is verified, and no refusal reveals more of a token than its times.

use std::sync::{Arc, Once};

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use chrono::TimeDelta;
use domain::{Owner, Timestamp};
use jsonwebtoken::{Algorithm, Validation, decode, errors::ErrorKind};
use persistence::Scopes;
use serde_json::Value;

use crate::problem::Problem;

mod algorithm;
mod claims;
mod key_set;
mod keys;
mod refusal;
mod signature;

pub use algorithm::{JwtAlgorithm, UnfitAlgorithm};
pub use claims::ClaimMapping;
pub use key_set::UnfitKeySet;
pub use keys::{KeyPace, KeyReading, KeySource};

use claims::good_until;
use key_set::KeySet;
use keys::Keys;
use refusal::{LONGEST, Refusal};

/// The issuer whose tokens are accepted, and what their claims mean.
#[derive(Debug, Clone)]
pub struct JwtTerms {
    /// The expected `iss`.
    pub issuer: String,
    /// `aud` must contain one of these.
    pub audience: Vec<String>,
    pub algorithms: Vec<JwtAlgorithm>,
    pub mapping: ClaimMapping,
    /// The tolerated clock difference to the issuer.
    pub leeway: TimeDelta,
    pub pace: KeyPace,
}

/// The number of keys in a document that can verify a token with one of these algorithms.
pub fn usable_keys(document: &[u8], algorithms: &[JwtAlgorithm]) -> Result<usize, UnfitKeySet> {
    let algorithms: Vec<_> = algorithms.iter().map(|algorithm| algorithm.get()).collect();
    Ok(KeySet::parse(document)?.fit_for(&algorithms))
}

/// The bearer of a valid signed token.
pub(super) struct Bearer {
    pub(super) owner: Owner,
    pub(super) scopes: Scopes,
    /// The token is valid before this moment.
    pub(super) until: Timestamp,
}

pub(crate) struct Jwt {
    terms: JwtTerms,
    keys: Keys,
}

impl Jwt {
    pub(crate) fn new(terms: JwtTerms, source: Arc<dyn KeySource>) -> Self {
        static INSTALLED: Once = Once::new();
        INSTALLED.call_once(signature::install);
        let keys = Keys::new(source, terms.pace);
        Self { terms, keys }
    }

    /// Whether this is a signed token: the service's own tokens contain no dot.
    pub(super) fn is_meant(token: &[u8]) -> bool {
        token.contains(&b'.')
    }

    pub(super) async fn judge(&self, token: &[u8], now: Timestamp) -> Result<Bearer, Refusal> {
        if token.len() > LONGEST {
            return Err(Refusal::TooLong(token.len()));
        }
        let head = Head::read(token).ok_or(Refusal::Malformed)?;
        let algorithm = head.algorithm.parse::<JwtAlgorithm>().map_err(|_| Refusal::Algorithm)?;
        if !self.terms.algorithms.contains(&algorithm) {
            return Err(Refusal::Algorithm);
        }
        let key = self.keys.find(head.key.as_deref(), algorithm.get()).await?;
        let claims = decode::<Value>(token, &key, &self.validation(algorithm.get()))
            .map_err(|error| refusal(error.kind()))?
            .claims;
        let until = good_until(&claims, now, self.terms.leeway)?;
        let mapping = &self.terms.mapping;
        Ok(Bearer { owner: mapping.owner(&claims)?, scopes: mapping.scopes(&claims), until })
    }

    /// Expiry is checked by the server clock, not by the JWT crate.
    fn validation(&self, algorithm: Algorithm) -> Validation {
        let mut validation = Validation::new(algorithm);
        validation.set_issuer(&[&self.terms.issuer]);
        validation.set_audience(&self.terms.audience);
        validation.set_required_spec_claims(&["iss", "aud"]);
        validation.validate_exp = false;
        validation
    }
}

/// The problem for a stream whose token has expired.
pub(super) fn expired() -> Problem {
    Refusal::Expired.into()
}

fn refusal(error: &ErrorKind) -> Refusal {
    match error {
        ErrorKind::InvalidSignature => Refusal::Signature,
        ErrorKind::InvalidAlgorithm => Refusal::Algorithm,
        ErrorKind::InvalidIssuer => Refusal::Issuer,
        ErrorKind::InvalidAudience => Refusal::Audience,
        ErrorKind::MissingRequiredClaim(claim) | ErrorKind::InvalidClaimFormat(claim) => {
            Refusal::Lacks(claim.clone())
        }
        _ => Refusal::Malformed,
    }
}

/// The unverified header fields that select the key.
struct Head {
    algorithm: String,
    key: Option<String>,
}

impl Head {
    /// None without three parts, or with `crit` in the header (RFC 7515 §4.1.11). Keys that a token brings along (`jwk`,
    /// `jku`, `x5c`) are ignored.
    fn read(token: &[u8]) -> Option<Self> {
        let mut parts = token.split(|byte| *byte == b'.');
        let head = parts.next()?;
        if parts.count() != 2 {
            return None;
        }
        let head: Value = serde_json::from_slice(&BASE64_URL_SAFE_NO_PAD.decode(head).ok()?).ok()?;
        if head.get("crit").is_some() {
            return None;
        }
        let key = match head.get("kid") {
            Some(kid) => Some(kid.as_str()?.to_owned()),
            None => None,
        };
        Some(Self { algorithm: head.get("alg")?.as_str()?.to_owned(), key })
    }
}

#[cfg(test)]
mod tests;

//! Why a signed token is refused. The text reveals nothing of the token but its times.

use std::borrow::Cow;

use crate::problem::{Kind, Problem};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refusal {
    TooLong(usize),
    Malformed,
    Algorithm,
    UnknownKey,
    Signature,
    Issuer,
    Audience,
    Expired,
    NotYetValid,
    /// The token lacks this claim.
    Lacks(String),
    /// The keys are unavailable, so the token could not be checked.
    KeysUnavailable,
}

/// Longer than any issuer's tokens, and within the limit for headers.
pub(super) const LONGEST: usize = 16 * 1024;

const MALFORMED: &str = "A token with dots must be a signed JWT with header, claims and signature, and without `crit` in the header.";
const ALGORITHM: &str = "The token's `alg` is not accepted here, or does not match its key.";
const UNKNOWN_KEY: &str = "The issuer has no key with the token's `kid`. Get a new token from the issuer.";
const SIGNATURE: &str =
    "The token's signature does not match. Send the token exactly as its issuer returned it.";
const EXPIRED: &str = "The token's `exp` has passed. Get a new token from its issuer.";
const KEYS_UNAVAILABLE: &str =
    "The token could not be checked, because its issuer's keys cannot be read now. Try again.";

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        let (kind, detail): (_, Cow<'static, str>) = match refusal {
            Refusal::TooLong(bytes) => (
                Kind::TokenMalformed,
                format!("The token is {bytes} bytes long; the limit is {LONGEST}.").into(),
            ),
            Refusal::Malformed => (Kind::TokenMalformed, MALFORMED.into()),
            Refusal::Algorithm => (Kind::TokenAlgorithm, ALGORITHM.into()),
            Refusal::UnknownKey => (Kind::TokenUnknownKey, UNKNOWN_KEY.into()),
            Refusal::Signature => (Kind::TokenSignature, SIGNATURE.into()),
            Refusal::Issuer => {
                (Kind::TokenWrongIssuer, "The token's `iss` is not the configured issuer.".into())
            }
            Refusal::Audience => {
                (Kind::TokenWrongAudience, "The token's `aud` does not contain this service.".into())
            }
            Refusal::Expired => (Kind::TokenExpired, EXPIRED.into()),
            Refusal::NotYetValid => (Kind::TokenNotYetValid, "The token's `nbf` is in the future.".into()),
            Refusal::Lacks(claim) => (
                Kind::TokenClaims,
                format!("The token's claim `{claim}` is missing or has the wrong type.").into(),
            ),
            Refusal::KeysUnavailable => return Self::unavailable(Kind::KeysUnavailable, KEYS_UNAVAILABLE),
        };
        Self::token_refused(kind, detail)
    }
}

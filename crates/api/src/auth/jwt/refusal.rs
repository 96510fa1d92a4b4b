//! Why a signed token is refused. The text reveals nothing of the token but its times.

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

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        let (kind, detail) = match refusal {
            Refusal::TooLong(bytes) => {
                (Kind::TokenMalformed, format!("The token is {bytes} bytes long; the limit is {LONGEST}."))
            }
            Refusal::Malformed => (
                Kind::TokenMalformed,
                "A token with dots must be a signed JWT with header, claims and signature, and without `crit` in the header.".to_owned(),
            ),
            Refusal::Algorithm => (
                Kind::TokenAlgorithm,
                "The token's `alg` is not accepted here, or does not match its key.".to_owned(),
            ),
            Refusal::UnknownKey => {
                (Kind::TokenUnknownKey, "The issuer has no key with the token's `kid`. Get a new token from the issuer.".to_owned())
            }
            Refusal::Signature => {
                (Kind::TokenSignature, "The token's signature does not match. Send the token exactly as its issuer returned it.".to_owned())
            }
            Refusal::Issuer => (Kind::TokenWrongIssuer, "The token's `iss` is not the configured issuer.".to_owned()),
            Refusal::Audience => (Kind::TokenWrongAudience, "The token's `aud` does not contain this service.".to_owned()),
            Refusal::Expired => {
                (Kind::TokenExpired, "The token's `exp` has passed. Get a new token from its issuer.".to_owned())
            }
            Refusal::NotYetValid => (Kind::TokenNotYetValid, "The token's `nbf` is in the future.".to_owned()),
            Refusal::Lacks(claim) => {
                (Kind::TokenClaims, format!("The token's claim `{claim}` is missing or has the wrong type."))
            }
            Refusal::KeysUnavailable => {
                let detail = "The token could not be checked, because its issuer's keys cannot be read now. Try again.";
                return Self::unavailable(Kind::KeysUnavailable, detail);
            }
        };
        Self::token_refused(kind, detail)
    }
}

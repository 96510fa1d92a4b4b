//! Why a signed token is not accepted. The text says nothing of what is in the token but its times.

use crate::problem::{Kind, Problem};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::auth) enum Refusal {
    TooLong(usize),
    Malformed,
    Algorithm,
    UnknownKey,
    Signature,
    Issuer,
    Audience,
    Expired,
    NotYetValid,
    /// It has not the claim.
    Lacks(String),
    /// Nothing is known about the token.
    KeysUnavailable,
}

/// Far beyond what issuers make, and within the head of a request.
pub(super) const LONGEST: usize = 16 * 1024;

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        let (kind, detail) = match refusal {
            Refusal::TooLong(bytes) => {
                (Kind::TokenMalformed, format!("The token has {bytes} bytes; it may have {LONGEST}."))
            }
            Refusal::Malformed => (
                Kind::TokenMalformed,
                "A token with dots has to be a signed JWT: header, claims and signature, and no `crit` in the header.".to_owned(),
            ),
            Refusal::Algorithm => (
                Kind::TokenAlgorithm,
                "The token's `alg` is none that is accepted here, or not that of its key.".to_owned(),
            ),
            Refusal::UnknownKey => {
                (Kind::TokenUnknownKey, "The issuer has no key of the name that the token's `kid` says.".to_owned())
            }
            Refusal::Signature => {
                (Kind::TokenSignature, "The token is not what its issuer has signed.".to_owned())
            }
            Refusal::Issuer => (Kind::TokenWrongIssuer, "The token's `iss` is another issuer.".to_owned()),
            Refusal::Audience => (Kind::TokenWrongAudience, "The token's `aud` does not name this service.".to_owned()),
            Refusal::Expired => {
                (Kind::TokenExpired, "The token's `exp` has passed; get a new one from its issuer.".to_owned())
            }
            Refusal::NotYetValid => (Kind::TokenNotYetValid, "The token's `nbf` is still to come.".to_owned()),
            Refusal::Lacks(claim) => {
                (Kind::TokenClaims, format!("The token has no claim `{claim}`, or not one of the right kind."))
            }
            Refusal::KeysUnavailable => {
                let detail = "The keys of the token's issuer cannot be read now, so nobody can say whether it is good. Ask again.";
                return Self::unavailable(Kind::KeysUnavailable, detail);
            }
        };
        Self::token_refused(kind, detail)
    }
}

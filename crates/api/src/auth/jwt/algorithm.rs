//! How a token may be signed.

use std::str::FromStr;

use jsonwebtoken::{Algorithm, AlgorithmFamily};

/// A way to sign with a key that the issuer alone has. A shared secret, or nothing, is none: the value cannot be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JwtAlgorithm(Algorithm);

/// It is not known, or whoever can check a signature of it could make one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "must be one of RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384 and EdDSA: what a shared secret signs (HS256), or \
     nothing (none), is not accepted"
)]
pub struct UnfitAlgorithm;

impl FromStr for JwtAlgorithm {
    type Err = UnfitAlgorithm;

    fn from_str(name: &str) -> Result<Self, UnfitAlgorithm> {
        let algorithm: Algorithm = name.parse().map_err(|_| UnfitAlgorithm)?;
        match algorithm.family() {
            AlgorithmFamily::Hmac => Err(UnfitAlgorithm),
            AlgorithmFamily::Rsa | AlgorithmFamily::Ec | AlgorithmFamily::Ed => Ok(Self(algorithm)),
        }
    }
}

impl JwtAlgorithm {
    pub(super) fn get(self) -> Algorithm {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_private_key_signs_is_an_algorithm() {
        for name in ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA"] {
            assert!(name.parse::<JwtAlgorithm>().is_ok(), "{name}");
        }
        for name in ["HS256", "HS384", "HS512", "none", "None", "NONE", "rs256", "ES512", ""] {
            assert_eq!(name.parse::<JwtAlgorithm>(), Err(UnfitAlgorithm), "{name}");
        }
    }
}

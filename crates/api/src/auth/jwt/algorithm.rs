//! The accepted signature algorithms.

use std::str::FromStr;

use jsonwebtoken::{Algorithm, AlgorithmFamily};

/// An asymmetric signature algorithm. Shared-secret algorithms and `none` cannot be constructed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JwtAlgorithm(Algorithm);

/// The algorithm is unknown, or not asymmetric.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "must be one of RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384 and EdDSA; shared-secret algorithms (HS256) and \
     `none` are not accepted"
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

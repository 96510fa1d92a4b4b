//! Signature verification by ring. It supports no shared secret, so a public key is never used as one.

use jsonwebtoken::{
    Algorithm, DecodingKey, DecodingKeyKind, EncodingKey,
    crypto::{CryptoProvider, JwtSigner, JwtVerifier, KeyUtils},
    errors::{ErrorKind, Result, new_error},
    signature::{Error as Wrong, Verifier},
};
use ring::signature::{
    self as ways, RsaParameters, RsaPublicKeyComponents, UnparsedPublicKey, VerificationAlgorithm,
};

static PROVIDER: CryptoProvider = CryptoProvider {
    signer_factory: no_signer,
    verifier_factory: verifier,
    key_utils: KeyUtils::new_unimplemented(),
};

/// Makes jsonwebtoken use this provider. The crate wants one for the whole process.
pub(super) fn install() {
    // Fails only when it is installed already.
    let _ = PROVIDER.install_default();
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature is the crate's")]
fn no_signer(_: &Algorithm, _: &EncodingKey) -> Result<Box<dyn JwtSigner>> {
    Err(new_error(ErrorKind::UnsupportedAlgorithm))
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature is the crate's")]
fn verifier(algorithm: &Algorithm, key: &DecodingKey) -> Result<Box<dyn JwtVerifier>> {
    if key.family() != algorithm.family() {
        return Err(new_error(ErrorKind::InvalidAlgorithm));
    }
    let public = match (way(*algorithm), key.kind()) {
        (Some(Way::Rsa(way)), DecodingKeyKind::RsaModulusExponent { n, e }) => {
            Public::Rsa { way, numbers: RsaPublicKeyComponents { n: n.clone(), e: e.clone() } }
        }
        (Some(Way::Point(way)), DecodingKeyKind::SecretOrDer(bytes)) => {
            Public::Point(UnparsedPublicKey::new(way, bytes.clone()))
        }
        (None, _) => return Err(new_error(ErrorKind::UnsupportedAlgorithm)),
        _ => return Err(new_error(ErrorKind::InvalidKeyFormat)),
    };
    Ok(Box::new(ByRing { algorithm: *algorithm, public }))
}

enum Way {
    Rsa(&'static RsaParameters),
    Point(&'static dyn VerificationAlgorithm),
}

fn way(algorithm: Algorithm) -> Option<Way> {
    Some(match algorithm {
        Algorithm::RS256 => Way::Rsa(&ways::RSA_PKCS1_2048_8192_SHA256),
        Algorithm::RS384 => Way::Rsa(&ways::RSA_PKCS1_2048_8192_SHA384),
        Algorithm::RS512 => Way::Rsa(&ways::RSA_PKCS1_2048_8192_SHA512),
        Algorithm::PS256 => Way::Rsa(&ways::RSA_PSS_2048_8192_SHA256),
        Algorithm::PS384 => Way::Rsa(&ways::RSA_PSS_2048_8192_SHA384),
        Algorithm::PS512 => Way::Rsa(&ways::RSA_PSS_2048_8192_SHA512),
        Algorithm::ES256 => Way::Point(&ways::ECDSA_P256_SHA256_FIXED),
        Algorithm::ES384 => Way::Point(&ways::ECDSA_P384_SHA384_FIXED),
        Algorithm::EdDSA => Way::Point(&ways::ED25519),
        _ => return None,
    })
}

enum Public {
    Rsa { way: &'static RsaParameters, numbers: RsaPublicKeyComponents<Vec<u8>> },
    Point(UnparsedPublicKey<Vec<u8>>),
}

struct ByRing {
    algorithm: Algorithm,
    public: Public,
}

impl Verifier<Vec<u8>> for ByRing {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> std::result::Result<(), Wrong> {
        match &self.public {
            Public::Rsa { way, numbers } => numbers.verify(way, message, signature),
            Public::Point(key) => key.verify(message, signature),
        }
        .map_err(|_| Wrong::new())
    }
}

impl JwtVerifier for ByRing {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}

//! Signs JWTs as an issuer does.

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use ring::{
    error::Unspecified,
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair},
};
use serde_json::{Value, json};

/// An ES256 key and its name (`kid`).
#[derive(Debug)]
pub struct Signer {
    name: String,
    key: EcdsaKeyPair,
    random: SystemRandom,
}

impl Signer {
    /// A signer with a new key. Fails without a source of randomness.
    pub fn new(name: &str) -> Result<Self, Unspecified> {
        let random = SystemRandom::new();
        let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let document = EcdsaKeyPair::generate_pkcs8(algorithm, &random)?;
        let key = EcdsaKeyPair::from_pkcs8(algorithm, document.as_ref(), &random).map_err(|_| Unspecified)?;
        Ok(Self { name: name.to_owned(), key, random })
    }

    /// The public key as a JWK (RFC 7517).
    pub fn jwk(&self) -> Value {
        let point = self.key.public_key().as_ref();
        let number = |bytes: &[u8]| BASE64_URL_SAFE_NO_PAD.encode(bytes);
        let (x, y) = (number(&point[1..33]), number(&point[33..]));
        json!({"kty": "EC", "crv": "P-256", "use": "sig", "kid": self.name, "x": x, "y": y})
    }

    /// A signed token with these claims (RFC 7519). Fails without a source of randomness.
    pub fn sign(&self, claims: &Value) -> Result<String, Unspecified> {
        let part = |value: &Value| BASE64_URL_SAFE_NO_PAD.encode(value.to_string());
        let header = json!({"alg": "ES256", "typ": "JWT", "kid": self.name});
        let message = format!("{}.{}", part(&header), part(claims));
        let signature = self.key.sign(&self.random, message.as_bytes())?;
        Ok(format!("{message}.{}", BASE64_URL_SAFE_NO_PAD.encode(signature)))
    }
}

//! The issuer's public keys (RFC 7517), each with its algorithms.

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use jsonwebtoken::{
    Algorithm, DecodingKey,
    jwk::{
        AlgorithmParameters, EllipticCurve, Jwk, KeyAlgorithm, KeyOperations, PublicKeyUse, RSAKeyParameters,
    },
};
use serde::Deserialize;
use serde_json::Value;

/// RSA keys shorter than 2048 bits are insecure.
const SHORTEST_RSA: usize = 2048 / 8;

/// The document is not a JWK Set.
#[derive(Debug, thiserror::Error)]
#[error("is not a JSON Web Key Set (RFC 7517): {0}")]
pub struct UnfitKeySet(#[from] serde_json::Error);

#[derive(Debug, Default)]
pub(super) struct KeySet(Vec<Key>);

#[derive(Debug)]
struct Key {
    id: Option<String>,
    /// The algorithms that the key may verify.
    algorithms: Vec<Algorithm>,
    public: DecodingKey,
}

/// The result of a key look-up.
#[derive(Debug)]
pub(super) enum Found<'a> {
    Key(&'a DecodingKey),
    /// The key exists, but not for this algorithm.
    OfAnotherKind,
    Nothing,
}

impl KeySet {
    /// Reads a document. Keys of an unknown type or for another use are skipped.
    pub(super) fn parse(document: &[u8]) -> Result<Self, UnfitKeySet> {
        #[derive(Deserialize)]
        struct Document {
            keys: Vec<Value>,
        }
        let Document { keys } = serde_json::from_slice(document)?;
        Ok(Self(keys.into_iter().filter_map(|key| Key::read(serde_json::from_value(key).ok()?)).collect()))
    }

    /// The number of keys for any of these algorithms.
    pub(super) fn fit_for(&self, algorithms: &[Algorithm]) -> usize {
        self.0.iter().filter(|key| key.algorithms.iter().any(|one| algorithms.contains(one))).count()
    }

    /// The key of a token. A token without `kid` matches only if exactly one key fits.
    pub(super) fn find(&self, id: Option<&str>, algorithm: Algorithm) -> Found<'_> {
        let fits = |key: &&Key| key.algorithms.contains(&algorithm);
        let Some(id) = id else {
            let mut fitting = self.0.iter().filter(fits);
            return match (fitting.next(), fitting.next()) {
                (Some(only), None) => Found::Key(&only.public),
                _ => Found::Nothing,
            };
        };
        let mut named = self.0.iter().filter(|key| key.id.as_deref() == Some(id)).peekable();
        let is_known = named.peek().is_some();
        match named.find(fits) {
            Some(key) => Found::Key(&key.public),
            None if is_known => Found::OfAnotherKind,
            None => Found::Nothing,
        }
    }
}

impl Key {
    fn read(jwk: Jwk) -> Option<Self> {
        let (possible, public) = public(&jwk.algorithm)?;
        let common = jwk.common;
        if common.public_key_use.is_some_and(|used| used != PublicKeyUse::Signature)
            || common.key_operations.is_some_and(|all| !all.contains(&KeyOperations::Verify))
        {
            return None;
        }
        let is_meant =
            |one: &&Algorithm| common.key_algorithm.is_none_or(|meant| meant == KeyAlgorithm::from(**one));
        let algorithms: Vec<_> = possible.iter().filter(is_meant).copied().collect();
        (!algorithms.is_empty()).then_some(Self { id: common.key_id, algorithms, public })
    }
}

/// The public key and the algorithms of its type. A shared secret is not a public key.
fn public(parameters: &AlgorithmParameters) -> Option<(&'static [Algorithm], DecodingKey)> {
    use Algorithm::{ES256, ES384, EdDSA, PS256, PS384, PS512, RS256, RS384, RS512};
    match parameters {
        AlgorithmParameters::RSA(RSAKeyParameters { n, e, .. }) => {
            let (n, e) = (number(n)?, number(e)?);
            let key = DecodingKey::from_rsa_raw_components(&n, &e);
            (n.len() >= SHORTEST_RSA).then_some((&[RS256, RS384, RS512, PS256, PS384, PS512], key))
        }
        AlgorithmParameters::EllipticCurve(point) => {
            let key = DecodingKey::from_ec_components(&point.x, &point.y).ok()?;
            match point.curve {
                EllipticCurve::P256 => Some((&[ES256], key)),
                EllipticCurve::P384 => Some((&[ES384], key)),
                _ => None,
            }
        }
        AlgorithmParameters::OctetKeyPair(pair) if pair.curve == EllipticCurve::Ed25519 => {
            Some((&[EdDSA], DecodingKey::from_ed_components(&pair.x).ok()?))
        }
        _ => None,
    }
}

/// A number without leading zeros; some issuers add zeros, or `=` padding.
fn number(text: &str) -> Option<Vec<u8>> {
    let bytes = BASE64_URL_SAFE_NO_PAD.decode(text.trim_end_matches('=')).ok()?;
    let start = bytes.iter().position(|byte| *byte != 0)?;
    Some(bytes[start..].to_vec())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn set(keys: &Value) -> KeySet {
        KeySet::parse(json!({ "keys": keys }).to_string().as_bytes()).unwrap()
    }

    fn point(more: &Value) -> Value {
        let x = BASE64_URL_SAFE_NO_PAD.encode([7; 32]);
        let mut key = json!({"kty": "EC", "crv": "P-256", "x": x, "y": x, "kid": "a"});
        key.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        key
    }

    fn rsa(bytes: usize) -> Value {
        json!({"kty": "RSA", "n": BASE64_URL_SAFE_NO_PAD.encode(vec![0x80; bytes]), "e": "AQAB"})
    }

    #[test]
    fn a_key_is_for_one_kind_of_signature() {
        let set = set(&json!([point(&json!({}))]));
        assert!(matches!(set.find(Some("a"), Algorithm::ES256), Found::Key(_)));
        for other in [Algorithm::ES384, Algorithm::RS256, Algorithm::EdDSA, Algorithm::HS256] {
            assert!(matches!(set.find(Some("a"), other), Found::OfAnotherKind), "{other:?}");
        }
        assert!(matches!(set.find(Some("b"), Algorithm::ES256), Found::Nothing));
        assert_eq!((set.fit_for(&[Algorithm::ES256]), set.fit_for(&[Algorithm::RS256])), (1, 0));
    }

    #[test]
    fn a_key_for_another_use_is_skipped_without_affecting_the_others() {
        let odd = json!([
            point(&json!({"use": "enc"})),
            point(&json!({"key_ops": ["encrypt"]})),
            point(&json!({"alg": "ES384"})),
            point(&json!({"crv": "P-521"})),
            {"kty": "oct", "k": "c2VjcmV0", "kid": "a", "alg": "HS256"},
            rsa(128),
            {"kty": "new"},
            7,
        ]);
        assert!(set(&odd).0.is_empty());
        let mut with_one = odd.as_array().unwrap().clone();
        with_one.push(point(&json!({"use": "sig", "alg": "ES256", "key_ops": ["verify"]})));
        assert_eq!(set(&with_one.into()).0.len(), 1);
    }

    #[test]
    fn a_token_without_kid_matches_the_only_key_that_fits() {
        let one = set(&json!([point(&json!({})), rsa(256)]));
        assert!(matches!(one.find(None, Algorithm::ES256), Found::Key(_)));
        assert!(matches!(one.find(None, Algorithm::PS512), Found::Key(_)));
        let two = set(&json!([point(&json!({})), point(&json!({"kid": "b"}))]));
        assert!(matches!(two.find(None, Algorithm::ES256), Found::Nothing));
    }

    #[test]
    fn zeros_before_a_number_do_not_make_it_longer() {
        assert_eq!(number("AAEAAQ==").unwrap(), [1, 0, 1]);
        assert_eq!(number("AAAA"), None);
        let mut padded = vec![0; 200];
        padded.extend([0x80; 128]);
        let short = json!({"kty": "RSA", "n": BASE64_URL_SAFE_NO_PAD.encode(padded), "e": "AQAB"});
        assert!(set(&json!([short])).0.is_empty());
    }

    #[test]
    fn a_document_that_is_not_a_key_set_is_refused() {
        for text in ["", "<html>", "[]", "{}", r#"{"keys": {}}"#] {
            assert!(KeySet::parse(text.as_bytes()).is_err(), "{text}");
        }
    }
}

//! Somebody who signs tokens, and publishes the keys.

use std::sync::{
    Mutex,
    atomic::{AtomicU32, Ordering},
};

use api::{ClaimMapping, JwtTerms, KeyPace, KeyReading, KeySource};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use chrono::TimeDelta;
use ring::{
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair},
};
use serde_json::{Value, json};
use std::time::Duration;

pub(crate) struct Issuer {
    key: Mutex<(String, EcdsaKeyPair)>,
    published: Mutex<Option<Vec<Value>>>,
    random: SystemRandom,
    /// How often the keys were read.
    pub(crate) asked: AtomicU32,
}

fn key_pair(random: &SystemRandom) -> EcdsaKeyPair {
    let document = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, random).unwrap();
    EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, document.as_ref(), random).unwrap()
}

impl Issuer {
    pub(crate) fn new() -> Self {
        let random = SystemRandom::new();
        let key = Mutex::new(("first".to_owned(), key_pair(&random)));
        let issuer = Self { key, published: Mutex::default(), random, asked: AtomicU32::default() };
        issuer.publish();
        issuer
    }

    /// Makes the key known by which it signs now, and no other.
    pub(crate) fn publish(&self) {
        let key = self.key.lock().unwrap();
        let point = key.1.public_key().as_ref();
        let number = |bytes: &[u8]| BASE64_URL_SAFE_NO_PAD.encode(bytes);
        let (x, y) = (number(&point[1..33]), number(&point[33..]));
        let jwk = json!({"kty": "EC", "crv": "P-256", "use": "sig", "kid": key.0, "x": x, "y": y});
        *self.published.lock().unwrap() = Some(vec![jwk]);
    }

    /// Signs with a new key from now on.
    pub(crate) fn rotate(&self, name: &str) {
        *self.key.lock().unwrap() = (name.to_owned(), key_pair(&self.random));
    }

    /// Answers nobody who asks for keys.
    pub(crate) fn go_away(&self) {
        *self.published.lock().unwrap() = None;
    }

    pub(crate) fn sign(&self, claims: &Value) -> String {
        let key = self.key.lock().unwrap();
        let part = |value: &Value| BASE64_URL_SAFE_NO_PAD.encode(value.to_string());
        let message =
            format!("{}.{}", part(&json!({"alg": "ES256", "typ": "JWT", "kid": key.0})), part(claims));
        let signature = key.1.sign(&self.random, message.as_bytes()).unwrap();
        format!("{message}.{}", BASE64_URL_SAFE_NO_PAD.encode(signature))
    }

    pub(crate) fn asked(&self) -> u32 {
        self.asked.load(Ordering::SeqCst)
    }
}

impl KeySource for Issuer {
    fn read(&self) -> KeyReading {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let published = self.published.lock().unwrap().clone();
        let read = published.map(|keys| json!({ "keys": keys }).to_string().into_bytes());
        Box::pin(async move { read.ok_or_else(|| "the issuer does not answer".to_owned()) })
    }
}

/// What is accepted in these tests. Keys may be read anew at once: the pace has tests of its own.
pub(crate) fn terms() -> JwtTerms {
    JwtTerms {
        issuer: "https://issuer.example".to_owned(),
        audience: vec!["tao-slurm".to_owned()],
        algorithms: vec!["ES256".parse().unwrap()],
        mapping: ClaimMapping {
            owner: "sub".to_owned(),
            owner_prefix: "jwt:".to_owned(),
            scopes: "scope".to_owned(),
            words: [].into(),
        },
        leeway: TimeDelta::seconds(10),
        pace: KeyPace { keep: Duration::from_hours(1), pause: Duration::ZERO },
    }
}

/// What a good token says at this moment.
pub(crate) fn claims(owner: &str, scopes: &str, now: domain::Timestamp) -> Value {
    let now = now.timestamp();
    json!({
        "iss": "https://issuer.example", "aud": ["tao-slurm", "account"], "sub": owner, "scope": scopes,
        "iat": now, "nbf": now, "exp": now + 300
    })
}

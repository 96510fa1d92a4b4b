//! Somebody who signs tokens, and publishes the keys, or does not.

use std::sync::{
    Mutex,
    atomic::{AtomicU32, Ordering},
};

use api::{ClaimMapping, JwtTerms, KeyPace, KeyReading, KeySource};
use chrono::TimeDelta;
use serde_json::{Value, json};
use std::time::Duration;
use testkit::Signer;

pub(crate) struct Issuer {
    signer: Mutex<Signer>,
    published: Mutex<Option<Vec<Value>>>,
    /// How often the keys were read.
    pub(crate) asked: AtomicU32,
}

impl Issuer {
    pub(crate) fn new() -> Self {
        let signer = Mutex::new(Signer::new("first").unwrap());
        let issuer = Self { signer, published: Mutex::default(), asked: AtomicU32::default() };
        issuer.publish();
        issuer
    }

    /// Makes the key known by which it signs now, and no other.
    pub(crate) fn publish(&self) {
        let jwk = self.signer.lock().unwrap().jwk();
        *self.published.lock().unwrap() = Some(vec![jwk]);
    }

    /// Signs with a new key from now on.
    pub(crate) fn rotate(&self, name: &str) {
        *self.signer.lock().unwrap() = Signer::new(name).unwrap();
    }

    /// Answers nobody who asks for keys.
    pub(crate) fn go_away(&self) {
        *self.published.lock().unwrap() = None;
    }

    pub(crate) fn sign(&self, claims: &Value) -> String {
        self.signer.lock().unwrap().sign(claims).unwrap()
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

//! Signatures that OpenSSL has made, of every kind, and what somebody makes of them who has the public keys only.

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::DateTime;
use serde_json::json;

use super::*;

/// Keys as an issuer publishes them, one token of each kind, and tokens whose shared secret is the public RSA key.
const SIGNED: &str = include_str!("tests_signed.json");
const ALL: [&str; 9] = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA"];

fn signed() -> Value {
    serde_json::from_str(SIGNED).unwrap()
}

struct Published;

impl KeySource for Published {
    fn read(&self) -> KeyReading {
        Box::pin(async { Ok(json!({"keys": signed()["keys"]}).to_string().into_bytes()) })
    }
}

fn judges(algorithms: &[&str]) -> Jwt {
    let terms = JwtTerms {
        issuer: "https://issuer.example".to_owned(),
        audience: vec!["elsewhere".to_owned(), "tao-slurm".to_owned()],
        algorithms: algorithms.iter().map(|name| name.parse().unwrap()).collect(),
        mapping: ClaimMapping {
            owner: "sub".to_owned(),
            owner_prefix: "jwt:".to_owned(),
            scopes: "scope".to_owned(),
            words: BTreeMap::new(),
        },
        leeway: TimeDelta::zero(),
        pace: KeyPace { keep: Duration::from_mins(10), pause: Duration::from_secs(30) },
    };
    Jwt::new(terms, Arc::new(Published))
}

async fn judge(jwt: &Jwt, token: &str) -> Result<String, Refusal> {
    let now = DateTime::from_timestamp(1_790_000_000, 0).unwrap();
    jwt.judge(token.as_bytes(), now).await.map(|bearer| bearer.owner.to_string())
}

/// The same token with another header.
fn with_head(token: &str, head: &Value) -> String {
    let (_, rest) = token.split_once('.').unwrap();
    format!("{}.{rest}", BASE64_URL_SAFE_NO_PAD.encode(head.to_string()))
}

#[tokio::test]
async fn what_openssl_has_signed_is_accepted_where_its_algorithm_is() {
    for name in ALL {
        let token = &signed()["tokens"][name];
        let token = token.as_str().unwrap();
        assert_eq!(judge(&judges(&[name]), token).await, Ok("jwt:ann".to_owned()), "{name}");
        let others: Vec<_> = ALL.into_iter().filter(|other| *other != name).collect();
        assert_eq!(judge(&judges(&others), token).await, Err(Refusal::Algorithm), "{name}");
    }
}

#[tokio::test]
async fn a_token_with_one_bit_changed_is_not_accepted() {
    let jwt = judges(&ALL);
    for name in ALL {
        let token = signed()["tokens"][name].as_str().unwrap().to_owned();
        let (message, signature) = token.rsplit_once('.').unwrap();
        let mut bytes = BASE64_URL_SAFE_NO_PAD.decode(signature).unwrap();
        bytes[9] ^= 1;
        let tampered = format!("{message}.{}", BASE64_URL_SAFE_NO_PAD.encode(&bytes));
        assert_eq!(judge(&jwt, &tampered).await, Err(Refusal::Signature), "{name}");
        let (head, claims) = message.split_once('.').unwrap();
        let claims = String::from_utf8(BASE64_URL_SAFE_NO_PAD.decode(claims).unwrap()).unwrap();
        let claims = BASE64_URL_SAFE_NO_PAD.encode(claims.replace("\"read\"", "\"admin\""));
        assert_eq!(
            judge(&jwt, &format!("{head}.{claims}.{signature}")).await,
            Err(Refusal::Signature),
            "{name}"
        );
    }
}

#[tokio::test]
async fn a_public_key_is_not_a_shared_secret_and_a_missing_signature_is_refused() {
    let jwt = judges(&ALL);
    for confused in signed()["confused"].as_array().unwrap() {
        assert_eq!(judge(&jwt, confused.as_str().unwrap()).await, Err(Refusal::Algorithm));
    }
    let token = signed()["tokens"]["RS256"].as_str().unwrap().to_owned();
    for name in ["none", "None", "HS256", "HS512", "", "ES512"] {
        let head = json!({"alg": name, "kid": "rsa"});
        let with_signature = with_head(&token, &head);
        let without = format!("{}.", with_signature.rsplit_once('.').unwrap().0);
        for token in [with_signature, without] {
            assert_eq!(judge(&jwt, &token).await, Err(Refusal::Algorithm), "{name}");
        }
    }
    // One asymmetric algorithm in the place of another: of another kind of key, and of the same.
    assert_eq!(
        judge(&jwt, &with_head(&token, &json!({"alg": "ES256", "kid": "rsa"}))).await,
        Err(Refusal::Algorithm)
    );
    assert_eq!(
        judge(&jwt, &with_head(&token, &json!({"alg": "PS256", "kid": "rsa"}))).await,
        Err(Refusal::Signature)
    );
}

#[tokio::test]
async fn a_malformed_token_is_refused_before_any_look_up() {
    let jwt = judges(&ALL);
    let token = signed()["tokens"]["EdDSA"].as_str().unwrap().to_owned();
    let (unfinished, _) = token.rsplit_once('.').unwrap();
    let encrypted = format!("{token}.AAAA.AAAA");
    let demanding = with_head(&token, &json!({"alg": "EdDSA", "kid": "ed", "crit": ["exp"]}));
    let odd = with_head(&token, &json!({"alg": "EdDSA", "kid": 7}));
    for wrong in [".", "..", "a.b.c", unfinished, &encrypted, &demanding, &odd, &format!("{token}!")] {
        assert_eq!(judge(&jwt, wrong).await, Err(Refusal::Malformed), "{wrong}");
    }
    let long = format!("{token}{}", "A".repeat(LONGEST));
    assert_eq!(judge(&jwt, &long).await, Err(Refusal::TooLong(long.len())));
}

#[tokio::test]
async fn a_key_that_the_token_brings_along_is_not_taken() {
    let jwt = judges(&ALL);
    let token = signed()["tokens"]["EdDSA"].as_str().unwrap().to_owned();
    let own = with_head(
        &token,
        &json!({"alg": "EdDSA", "kid": "mine", "jwk": signed()["keys"][3], "jku": "http://x/"}),
    );
    assert_eq!(judge(&jwt, &own).await, Err(Refusal::UnknownKey));
}

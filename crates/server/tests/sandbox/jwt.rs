//! Tokens that an external issuer signs, with the real program.

use std::{
    fs,
    time::{Duration, SystemTime},
};

use serde_json::{Value, json};
use testkit::Signer;

use crate::{
    ending::command,
    service::{Answer, Service, until},
};

/// A token with one of the service's scopes that is valid for `lasts` seconds.
#[expect(clippy::disallowed_methods, reason = "the issuer has the real clock")]
fn token(by: &Signer, owner: &str, scope: &str, lasts: i64) -> String {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs().cast_signed();
    let signed = by.sign(&json!({
        "iss": "https://login.example", "aud": "tao-slurm", "sub": owner, "groups": scope,
        "iat": now - 600, "exp": now + lasts,
    }));
    signed.unwrap()
}

fn post(service: &Service, token: &str, body: &Value) -> Answer {
    let bearer = format!("Bearer {token}");
    service.post_with(&service.url, "/jobs", &[("authorization", &bearer)], &body.to_string())
}

#[test]
fn an_issuers_token_is_accepted_while_its_key_is_in_the_file() {
    let mut service = Service::prepare(&[("TAO_SLURM_AUTH", "tokens")]);
    let at = |name: &str| service.log.with_file_name(name);
    let (settings, keys) = (at("jwt.toml"), at("jwks.json"));
    let publish = |signer: &Signer| {
        let new = keys.with_extension("new");
        fs::write(&new, json!({"keys": [signer.jwk()]}).to_string()).unwrap();
        fs::rename(&new, &keys).unwrap();
    };
    let (first, second) = (Signer::new("first").unwrap(), Signer::new("second").unwrap());
    publish(&first);
    let text = format!(
        "[auth.jwt]\nissuer = \"https://login.example\"\naudience = [\"tao-slurm\"]\nalgorithms = [\"ES256\"]\n\
         jwks_file = \"{}\"\njwks_pause = \"1s\"\nscope_claim = \"groups\"\nscope_words = {{ gpu-users = [\"read\", \"write\"] }}\n",
        keys.display()
    );
    fs::write(&settings, text).unwrap();
    service.set("TAO_SLURM_CONFIG", settings.to_str().unwrap());
    service.spawn();

    let accepted = post(&service, &token(&first, "ming", "gpu-users", 300), &command("true"));
    assert_eq!(accepted.status, 201, "{}", accepted.text);
    for (what, token, status) in [
        ("without the scope", token(&first, "ming", "read write", 300), 403),
        ("expired", token(&first, "ming", "gpu-users", -300), 401),
        ("by an unknown key", token(&second, "ming", "gpu-users", 300), 401),
        ("of no issuer", "x.y.z".to_owned(), 401),
    ] {
        let refused = post(&service, &token, &command("true"));
        assert_eq!(refused.status, status, "{what}: {}", refused.text);
    }
    // The issuer has a new key. A token with an unknown key makes the service read the file again, at most once a second.
    publish(&second);
    let new = token(&second, "ming", "gpu-users", 300);
    until("the new key to be read", Duration::from_secs(10), || {
        post(&service, &new, &command("true")).status == 201
    });
    let taken_back = post(&service, &token(&first, "ming", "gpu-users", 300), &command("true"));
    assert_eq!(taken_back.status, 401, "{}", taken_back.text);
    let log = service.log_text();
    assert!(!log.contains(&token(&first, "", "", 0)[..20]), "tokens are in the log");
}

use std::cell::RefCell;

use serde_json::{Value, json};
use test_case::test_case;
use url::Url;
use webhooks::Authorities;

use super::*;

const ISSUER: &str = "https://login.example.org/realms/gpu";

pub(in super::super) fn config(issuer: &str, token: TokenKind) -> LogInConfig {
    LogInConfig {
        issuer: issuer.to_owned(),
        client_id: "the client".to_owned(),
        secret_file: None,
        redirect_url: Url::parse("https://console.example.org/ui/login/callback").unwrap(),
        scopes: vec!["openid".to_owned(), "groups".to_owned()],
        token,
        authorities: Authorities::default(),
    }
}

fn document(changed: &Value) -> Document {
    let mut document = json!({
        "issuer": ISSUER,
        "authorization_endpoint": format!("{ISSUER}/auth?tenant=1"),
        "token_endpoint": format!("{ISSUER}/token"),
    });
    document.as_object_mut().unwrap().extend(changed.as_object().unwrap().clone());
    Document::parse(document.to_string().as_bytes(), ISSUER).unwrap()
}

fn pairs(text: &str) -> Vec<(String, String)> {
    url::form_urlencoded::parse(text.as_bytes()).into_owned().collect()
}

fn one(pairs: &[(String, String)], name: &str) -> String {
    let values: Vec<_> = pairs.iter().filter(|(other, _)| other == name).collect();
    let [(_, value)] = values.as_slice() else { panic!("{name} is there {} times", values.len()) };
    value.clone()
}

#[test]
fn a_visitor_is_sent_to_the_issuer_with_a_state_and_a_challenge() {
    let config = config(ISSUER, TokenKind::AccessToken);
    let log_in = || begin(&config, &document(&json!({})));
    let begun = log_in();
    let address = Url::parse(&begun.address).unwrap();
    assert_eq!(address.path(), "/realms/gpu/auth");
    let sent = pairs(address.query().unwrap());
    for (name, value) in [
        ("tenant", "1"),
        ("response_type", "code"),
        ("client_id", "the client"),
        ("redirect_uri", "https://console.example.org/ui/login/callback"),
        ("scope", "openid groups"),
        ("code_challenge_method", "S256"),
        ("state", begun.state.expose_secret()),
    ] {
        assert_eq!(one(&sent, name), value);
    }
    let verifier = PkceCodeVerifier::new(begun.verifier.expose_secret().to_owned());
    let challenge = PkceCodeChallenge::from_code_verifier_sha256(&verifier);
    assert_eq!(one(&sent, "code_challenge"), challenge.as_str());
    assert!(!begun.address.contains(begun.verifier.expose_secret()), "the verifier stays here");
    let again = log_in();
    assert_ne!(again.state.expose_secret(), begun.state.expose_secret());
    assert_ne!(again.verifier.expose_secret(), begun.verifier.expose_secret());
    assert_eq!(format!("{begun:?}"), "Begun");
}

struct Exchanged {
    request: HttpRequest,
    token: Result<String, IssuerFault>,
}

fn exchanged(secret: Option<&str>, token: TokenKind, facts: &Value, status: u16, body: &str) -> Exchanged {
    let seen = RefCell::new(None);
    let send = |request| {
        *seen.borrow_mut() = Some(request);
        Ok(http_answer(status, body))
    };
    let secret = secret.map(SecretString::from);
    let (code, verifier) = ("the+code".into(), "the-verifier".into());
    let token = exchange(&config(ISSUER, token), &document(facts), secret.as_ref(), &code, &verifier, &send);
    let token = token.map(|token| token.expose_secret().to_owned());
    Exchanged { request: seen.into_inner().unwrap(), token }
}

fn http_answer(status: u16, body: &str) -> HttpResponse {
    let mut answer = HttpResponse::new(body.as_bytes().to_vec());
    *answer.status_mut() = status.try_into().unwrap();
    answer.headers_mut().insert("content-type", "application/json;charset=UTF-8".parse().unwrap());
    answer
}

fn tokens() -> String {
    json!({"access_token": "a.b.c", "id_token": "d.e.f", "token_type": "bearer", "expires_in": 300, "refresh_token": "r", "scope": ""})
        .to_string()
}

#[test]
fn a_code_becomes_the_configured_token() {
    let of = |kind| exchanged(None, kind, &json!({}), 200, &tokens());
    assert_eq!(of(TokenKind::AccessToken).token.unwrap(), "a.b.c");
    let Exchanged { request, token } = of(TokenKind::IdToken);
    assert_eq!(token.unwrap(), "d.e.f");
    assert_eq!((request.method().as_str(), request.uri().to_string()), ("POST", format!("{ISSUER}/token")));
    let sent = pairs(str::from_utf8(request.body()).unwrap());
    for (name, value) in [
        ("grant_type", "authorization_code"),
        ("code", "the+code"),
        ("code_verifier", "the-verifier"),
        ("redirect_uri", "https://console.example.org/ui/login/callback"),
        ("client_id", "the client"),
    ] {
        assert_eq!(one(&sent, name), value);
    }
    assert!(!request.headers().contains_key("authorization"), "a public client has no secret");
}

#[test]
fn the_clients_secret_goes_where_the_issuer_takes_it() {
    let of = |facts: &Value| {
        let Exchanged { request, .. } =
            exchanged(Some("s3:cret"), TokenKind::AccessToken, facts, 200, &tokens());
        let header = request.headers().get("authorization").map(|value| value.to_str().unwrap().to_owned());
        (header, String::from_utf8(request.into_body()).unwrap())
    };
    let (header, body) = of(&json!({}));
    // `the+client:s3%3Acret`, as RFC 6749 §2.3.1 encodes it.
    assert_eq!(header.as_deref(), Some("Basic dGhlK2NsaWVudDpzMyUzQWNyZXQ="));
    assert!(!body.contains("cret"), "{body}");
    let (header, body) = of(&json!({"token_endpoint_auth_methods_supported": ["client_secret_post"]}));
    assert_eq!((header, one(&pairs(&body), "client_secret")), (None, "s3:cret".to_owned()));
}

#[test]
fn an_answer_without_the_configured_token_says_so() {
    let none = json!({"access_token": "a.b.c", "token_type": "Bearer"}).to_string();
    let Exchanged { token, .. } = exchanged(None, TokenKind::IdToken, &json!({}), 200, &none);
    assert_eq!(token, Err(IssuerFault::NoToken("ID token")));
}

#[test_case(400, r#"{"error": "invalid_grant", "error_description": "the+code is old"}"#, "the issuer refused the code: invalid_grant" ; "an old code")]
#[test_case(401, r#"{"error": "invalid_client"}"#, "the issuer refused the code: invalid_client" ; "a wrong secret")]
#[test_case(400, "{\"error\": \"\u{202e}<b>\\n\\\"x\"}", "the issuer refused the code: <b>x" ; "a hostile code")]
#[test_case(200, "{\"access_token\": \"secret\"}", "no JSON document" ; "no type of token")]
#[test_case(200, "{\"token_type\": \"Bearer\", \"id_token\": \"secret\"}", "no JSON document" ; "no access token")]
#[test_case(200, "secret", "no JSON document" ; "no JSON")]
#[test_case(302, "", "no JSON document" ; "a redirect")]
#[test_case(500, "<html>secret", "no JSON document" ; "a broken issuer")]
fn a_failure_has_no_secret_in_it(status: u16, body: &str, expected: &str) {
    let Exchanged { token, .. } =
        exchanged(Some("s3:cret"), TokenKind::AccessToken, &json!({}), status, body);
    let fault = token.unwrap_err();
    let texts = format!("{fault} {fault:?}");
    assert!(texts.contains(expected), "{texts}");
    for secret in ["secret", "cret", "the+code", "the-verifier"] {
        assert!(!texts.contains(secret), "{texts}");
    }
}

#[test]
fn an_error_code_without_end_is_cut() {
    let body = json!({"error": "x".repeat(10_000)}).to_string();
    let Exchanged { token, .. } = exchanged(None, TokenKind::AccessToken, &json!({}), 400, &body);
    assert_eq!(token, Err(IssuerFault::Refused("x".repeat(100))));
}

#[test_case(false, None => true; "one that never names itself")]
#[test_case(false, Some(ISSUER) => true; "one that does, without saying so")]
#[test_case(true, Some(ISSUER) => true; "one that says so")]
#[test_case(true, None => false; "one that says so, and does not")]
#[test_case(false, Some("https://evil.example") => false; "another one")]
#[test_case(false, Some("") => false; "one without a name")]
fn the_answer_must_be_of_the_issuer(names_itself: bool, named: Option<&str>) -> bool {
    let document = document(&json!({"authorization_response_iss_parameter_supported": names_itself}));
    check_issuer(&config(ISSUER, TokenKind::AccessToken), &document, named).is_ok()
}

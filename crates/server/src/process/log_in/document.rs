//! What an issuer says of itself (OpenID Connect Discovery 1.0).

use serde::Deserialize;
use url::Url;

use crate::config::secure_url;

/// The addresses of an issuer, and what it can do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Document {
    /// Where visitors log in.
    pub(super) authorization: Url,
    /// Where codes become tokens.
    pub(super) token: Url,
    /// The client's secret goes into the body of the request, not into its header.
    pub(super) is_secret_in_body: bool,
    /// Each answer to a log-in names the issuer (RFC 9207).
    pub(super) names_itself: bool,
}

#[derive(Deserialize)]
struct Fields {
    issuer: String,
    authorization_endpoint: String,
    token_endpoint: String,
    token_endpoint_auth_methods_supported: Option<Vec<String>>,
    code_challenge_methods_supported: Option<Vec<String>>,
    #[serde(default)]
    authorization_response_iss_parameter_supported: bool,
}

/// Where the document of an issuer is (§4): a slash at the end of the issuer is left out.
pub(super) fn address(issuer: &str) -> String {
    format!("{}/.well-known/openid-configuration", issuer.strip_suffix('/').unwrap_or(issuer))
}

impl Document {
    /// Reads the document of this issuer. An error says what is wrong with it, without a text of it.
    pub(super) fn parse(bytes: &[u8], issuer: &str) -> Result<Self, String> {
        // The error of serde has a part of the text.
        let fields: Fields = serde_json::from_slice(bytes)
            .map_err(|_| "is no JSON document with issuer, authorization_endpoint and token_endpoint")?;
        // Else who has one page of a host could be the issuer of another (§4.3).
        if fields.issuer != issuer {
            return Err(
                "names another issuer than auth.jwt.issuer; they must be equal, also in a slash at the end"
                    .to_owned(),
            );
        }
        let endpoint = |name: &str, text: &str| secure_url(text).map_err(|error| format!("{name}: {error}"));
        let has = |list: &[String], one: &str| list.iter().any(|other| other == one);
        // Some issuers take it without saying so.
        if fields.code_challenge_methods_supported.is_some_and(|methods| !has(&methods, "S256")) {
            return Err("offers no PKCE with S256, which this service needs".to_owned());
        }
        let is_secret_in_body = fields.token_endpoint_auth_methods_supported.is_some_and(|methods| {
            has(&methods, "client_secret_post") && !has(&methods, "client_secret_basic")
        });
        Ok(Self {
            authorization: endpoint("authorization_endpoint", &fields.authorization_endpoint)?,
            token: endpoint("token_endpoint", &fields.token_endpoint)?,
            is_secret_in_body,
            names_itself: fields.authorization_response_iss_parameter_supported,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use test_case::test_case;

    use super::*;

    const ISSUER: &str = "https://login.example.org/realms/gpu";

    fn parse(changed: &Value) -> Result<Document, String> {
        let mut document = json!({
            "issuer": ISSUER,
            "authorization_endpoint": format!("{ISSUER}/auth"),
            "token_endpoint": format!("{ISSUER}/token"),
            "jwks_uri": "http://elsewhere.example/keys",
        });
        for (name, value) in changed.as_object().unwrap() {
            document[name] = value.clone();
        }
        Document::parse(document.to_string().as_bytes(), ISSUER)
    }

    #[test]
    fn the_addresses_of_an_issuer_are_read() {
        let read = parse(&json!({})).unwrap();
        assert_eq!(read.authorization.as_str(), format!("{ISSUER}/auth"));
        assert_eq!(read.token.as_str(), format!("{ISSUER}/token"));
        assert!(!read.is_secret_in_body && !read.names_itself);
        let here = parse(&json!({"token_endpoint": "http://127.0.0.1:5556/token"})).unwrap();
        assert_eq!(here.token.port(), Some(5556));
    }

    #[test]
    fn what_the_issuer_can_do_is_read() {
        let of = |methods: &Value| {
            parse(&json!({"token_endpoint_auth_methods_supported": methods})).unwrap().is_secret_in_body
        };
        assert!(of(&json!(["client_secret_post", "private_key_jwt"])));
        assert!(!of(&json!(["client_secret_post", "client_secret_basic"])));
        assert!(!of(&json!(["private_key_jwt"])));
        assert!(
            parse(&json!({"authorization_response_iss_parameter_supported": true})).unwrap().names_itself
        );
        assert!(parse(&json!({"code_challenge_methods_supported": ["plain", "S256"]})).is_ok());
    }

    #[test_case(&json!({"issuer": "https://login.example.org/realms/other"}), "names another issuer" ; "another issuer")]
    #[test_case(&json!({"issuer": format!("{ISSUER}/")}), "names another issuer" ; "a slash more")]
    #[test_case(&json!({"issuer": null}), "is no JSON document" ; "no issuer")]
    #[test_case(&json!({"token_endpoint": 7}), "is no JSON document" ; "no address")]
    #[test_case(&json!({"token_endpoint": "http://login.example.org/token"}), "token_endpoint: must begin with https://" ; "tokens in the open")]
    #[test_case(&json!({"authorization_endpoint": "javascript:alert(1)"}), "authorization_endpoint: has no host" ; "a script")]
    #[test_case(&json!({"authorization_endpoint": "/auth"}), "authorization_endpoint: is not a URL" ; "a path")]
    #[test_case(&json!({"code_challenge_methods_supported": ["plain"]}), "offers no PKCE" ; "no hash")]
    fn a_document_that_is_not_safe_is_refused(changed: &Value, expected: &str) {
        let error = parse(changed).unwrap_err();
        assert!(error.starts_with(expected), "{error}");
    }

    #[test]
    fn what_is_no_document_is_refused_without_its_text() {
        for text in ["", "<html>secret</html>", "[]", "{\"secret\""] {
            let error = Document::parse(text.as_bytes(), ISSUER).unwrap_err();
            assert!(error.starts_with("is no JSON document") && !error.contains("secret"), "{error}");
        }
    }

    #[test_case("https://login.example.org" => "https://login.example.org/.well-known/openid-configuration"; "a host")]
    #[test_case("https://login.example.org/" => "https://login.example.org/.well-known/openid-configuration"; "a host with a slash")]
    #[test_case("https://login.example.org/a/" => "https://login.example.org/a/.well-known/openid-configuration"; "a path with a slash")]
    fn the_document_is_below_the_issuer(issuer: &str) -> String {
        address(issuer)
    }
}

//! The cookie that carries a session.

use axum::http::{HeaderMap, HeaderValue, header};
use chrono::{DateTime, Utc};
use cookie::{Cookie, SameSite};

use super::seal::{LIFETIME, Sealer, Session};
use crate::ROOT;

const NAME: &str = "tao_slurm_session";

/// The session of the request; none without a valid one.
pub(crate) fn presented(sealer: &Sealer, headers: &HeaderMap, now: DateTime<Utc>) -> Option<Session> {
    let values = headers.get_all(header::COOKIE).into_iter().filter_map(|value| value.to_str().ok());
    let mut cookies = values.flat_map(Cookie::split_parse).filter_map(Result::ok);
    // Another program on the same host may have set one of the same name.
    cookies.find_map(|cookie| (cookie.name() == NAME).then(|| sealer.open(cookie.value(), now)).flatten())
}

/// Begins a session; none for a token that is too long.
pub(crate) fn issued(
    sealer: &Sealer,
    session: &Session,
    headers: &HeaderMap,
    now: DateTime<Utc>,
) -> Option<HeaderValue> {
    let seconds = cookie::time::Duration::seconds(LIFETIME.num_seconds());
    header_value(sealer.seal(session, now)?, seconds, headers)
}

/// Ends a session.
pub(crate) fn expired(headers: &HeaderMap) -> Option<HeaderValue> {
    header_value(String::new(), cookie::time::Duration::ZERO, headers)
}

/// The API's own paths never get the cookie, and other sites' pages cannot send it.
fn header_value(value: String, age: cookie::time::Duration, headers: &HeaderMap) -> Option<HeaderValue> {
    let cookie = Cookie::build((NAME, value))
        .path(ROOT)
        .http_only(true)
        .same_site(SameSite::Strict)
        .secure(is_https(headers))
        .max_age(age);
    HeaderValue::from_str(&cookie.build().to_string()).ok()
}

/// The service itself speaks HTTP; a proxy for TLS says that the browser came by HTTPS. A wrong header only makes the cookie
/// useless to its sender.
fn is_https(headers: &HeaderMap) -> bool {
    let is_https = |text: &str| text.trim().eq_ignore_ascii_case("https");
    let first = |name: &str| headers.get(name)?.to_str().ok()?.split(',').next().map(str::to_owned);
    first("x-forwarded-proto").is_some_and(|proto| is_https(&proto))
        || first("forwarded").is_some_and(|hop| {
            let mut pairs = hop.split(';').filter_map(|pair| pair.split_once('='));
            pairs.any(|(name, value)| {
                name.trim().eq_ignore_ascii_case("proto") && is_https(value.trim().trim_matches('"'))
            })
        })
        || first("origin").is_some_and(|origin| origin.starts_with("https://"))
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderName;
    use secrecy::{ExposeSecret, SecretString};

    use super::*;
    use crate::{model::Who, session::SessionKey};

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap())).collect()
    }

    fn set(pairs: &[(&'static str, &str)]) -> String {
        let sealer = Sealer::new(&SessionKey::derive(&[7; 32]));
        let session = Session { token: SecretString::from("tsl_x"), who: Who::anyone() };
        issued(&sealer, &session, &headers(pairs), DateTime::UNIX_EPOCH).unwrap().to_str().unwrap().to_owned()
    }

    #[test]
    fn a_session_is_out_of_reach_of_scripts_other_sites_and_the_api() {
        let cookie = set(&[]);
        for part in ["HttpOnly", "SameSite=Strict", "Path=/ui", "Max-Age=1209600"] {
            assert!(cookie.split("; ").any(|other| other == part), "{part}: {cookie}");
        }
        assert!(!cookie.contains("Secure") && !cookie.contains("Domain"), "{cookie}");
    }

    #[test]
    fn it_is_secure_if_the_browser_came_by_https() {
        for pair in [
            ("x-forwarded-proto", "https"),
            ("x-forwarded-proto", "HTTPS, http"),
            ("forwarded", "for=192.0.2.1;proto=\"https\";by=x"),
            ("origin", "https://console.example.org"),
        ] {
            assert!(set(&[pair]).contains("; Secure"), "{pair:?}");
        }
        for pair in [("x-forwarded-proto", "http, https"), ("forwarded", "for=https"), ("origin", "http://a")]
        {
            assert!(!set(&[pair]).contains("Secure"), "{pair:?}");
        }
    }

    #[test]
    fn a_valid_session_is_found_among_other_cookies() {
        let sealer = Sealer::new(&SessionKey::derive(&[7; 32]));
        let own = set(&[]);
        let own = own.split(';').next().unwrap();
        let all = headers(&[("cookie", &format!("a=b; {NAME}=forged; {own}"))]);
        let found = presented(&sealer, &all, DateTime::UNIX_EPOCH).unwrap();
        assert_eq!(found.token.expose_secret(), "tsl_x");
        assert!(presented(&sealer, &headers(&[("cookie", "a=b; ;;=")]), DateTime::UNIX_EPOCH).is_none());
    }
}

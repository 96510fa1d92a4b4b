//! The cookie that carries a session.

use axum::http::{HeaderMap, HeaderValue, header};
use chrono::{DateTime, TimeDelta, Utc};
use cookie::{Cookie, CookieBuilder, SameSite};

use super::seal::{LIFETIME, Sealer, Session};
use crate::ROOT;

const NAME: &str = "tao_slurm_session";

/// The session of the request; none without a valid one.
pub(crate) fn presented(sealer: &Sealer, headers: &HeaderMap, now: DateTime<Utc>) -> Option<Session> {
    found(NAME, headers, |value| sealer.open(value, now))
}

/// Begins a session; none for a token that is too long.
pub(crate) fn issued(sealer: &Sealer, session: &Session, is_https: bool) -> Option<HeaderValue> {
    header_value(sealer.seal(session)?, LIFETIME, is_https)
}

/// Ends a session.
pub(crate) fn expired(is_https: bool) -> Option<HeaderValue> {
    header_value(String::new(), TimeDelta::zero(), is_https)
}

fn cookies(headers: &HeaderMap) -> impl Iterator<Item = Cookie<'_>> {
    let values = headers.get_all(header::COOKIE).into_iter().filter_map(|value| value.to_str().ok());
    values.flat_map(Cookie::split_parse).filter_map(Result::ok)
}

/// The names of the request's cookies.
pub(super) fn names(headers: &HeaderMap) -> Vec<String> {
    cookies(headers).map(|cookie| cookie.name().to_owned()).collect()
}

/// The first cookie of this name that can be read. Another program on the same host may have set one of the same name.
pub(super) fn found<T>(name: &str, headers: &HeaderMap, read: impl Fn(&str) -> Option<T>) -> Option<T> {
    cookies(headers).find_map(|cookie| (cookie.name() == name).then(|| read(cookie.value())).flatten())
}

/// The API's own paths never get the cookie, and other sites' pages cannot send it.
fn header_value(value: String, age: TimeDelta, is_https: bool) -> Option<HeaderValue> {
    written(Cookie::build((NAME, value)).path(ROOT).same_site(SameSite::Strict), age, is_https)
}

/// A cookie that scripts cannot read.
pub(super) fn written(cookie: CookieBuilder<'_>, age: TimeDelta, is_https: bool) -> Option<HeaderValue> {
    let age = cookie::time::Duration::seconds(age.num_seconds());
    let cookie = cookie.http_only(true).secure(is_https).max_age(age);
    HeaderValue::from_str(&cookie.build().to_string()).ok()
}

/// The service itself speaks HTTP; a proxy for TLS says that the browser came by HTTPS. A wrong header only makes the cookie
/// useless to its sender.
pub(crate) fn is_https(headers: &HeaderMap) -> bool {
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
        let token = SecretString::from("tsl_x");
        let begun = DateTime::UNIX_EPOCH;
        let session = Session { token, who: Who::anyone(), is_of_issuer: false, begun };
        issued(&sealer, &session, is_https(&headers(pairs))).unwrap().to_str().unwrap().to_owned()
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

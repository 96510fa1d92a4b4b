//! The cookie of a log-in at the issuer, from its begin to the visitor's return. It binds the answer to this browser.

use std::borrow::Cow;

use axum::http::{HeaderMap, HeaderValue};
use chrono::{DateTime, TimeDelta, Utc};
use cookie::{Cookie, SameSite};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};

use super::{
    cookie::{found, written},
    seal::Sealer,
};

const NAME: &str = "tao_slurm_login";
const PATH: &str = "/ui/login";
const PURPOSE: &[u8] = b"tao-slurm: log-ins of the console that have begun, 1";
/// The time to log in at the issuer.
const LIFETIME: TimeDelta = TimeDelta::minutes(10);

/// A log-in that has begun in this browser.
#[derive(Debug)]
pub(crate) struct LogInBegun {
    pub(crate) state: SecretString,
    pub(crate) verifier: SecretString,
    /// The page that the visitor asked for.
    pub(crate) next: String,
}

#[derive(Serialize, Deserialize)]
struct Fields<'a>(&'a str, &'a str, Cow<'a, str>);

impl LogInBegun {
    /// The log-in of the request; none without a valid one.
    pub(crate) fn presented(sealer: &Sealer, headers: &HeaderMap, now: DateTime<Utc>) -> Option<Self> {
        found(NAME, headers, |value| {
            let (begun, bytes) = sealer.open_bytes(PURPOSE, value)?;
            let Fields(state, verifier, next) = serde_json::from_slice(&bytes).ok()?;
            (now - begun < LIFETIME).then(|| Self {
                state: state.into(),
                verifier: verifier.into(),
                next: next.into_owned(),
            })
        })
    }

    /// The cookie; none if it would be too long.
    pub(crate) fn issued(&self, sealer: &Sealer, is_https: bool, now: DateTime<Utc>) -> Option<HeaderValue> {
        let Self { state, verifier, next } = self;
        let fields = Fields(state.expose_secret(), verifier.expose_secret(), Cow::Borrowed(next));
        let bytes = zeroize::Zeroizing::new(serde_json::to_vec(&fields).ok()?);
        header_value(sealer.seal_bytes(PURPOSE, now, &bytes)?, LIFETIME, is_https)
    }

    /// Ends it: each is used once.
    pub(crate) fn expired(is_https: bool) -> Option<HeaderValue> {
        header_value(String::new(), TimeDelta::zero(), is_https)
    }
}

/// A strict cookie would not come back with a visitor whom the issuer sends.
fn header_value(value: String, age: TimeDelta, is_https: bool) -> Option<HeaderValue> {
    written(Cookie::build((NAME, value)).path(PATH).same_site(SameSite::Lax), age, is_https)
}

#[cfg(test)]
mod tests {
    use axum::http::header;

    use super::*;
    use crate::session::{SessionKey, seal};

    fn sealer(service: u8) -> Sealer {
        Sealer::new(&SessionKey::derive(&[service; 32]))
    }

    fn begun(next: &str) -> LogInBegun {
        LogInBegun { state: "s".into(), verifier: "v".into(), next: next.to_owned() }
    }

    fn cookie(next: &str) -> Option<String> {
        let value = begun(next).issued(&sealer(7), true, DateTime::UNIX_EPOCH)?;
        Some(value.to_str().unwrap().to_owned())
    }

    fn presented(service: u8, minutes: i64) -> Option<LogInBegun> {
        let cookie = cookie("/ui/jobs?q=\"a\"").unwrap();
        let cookie = cookie.split(';').next().unwrap();
        let headers = HeaderMap::from_iter([(header::COOKIE, cookie.parse().unwrap())]);
        let now = DateTime::UNIX_EPOCH + TimeDelta::minutes(minutes);
        LogInBegun::presented(&sealer(service), &headers, now)
    }

    #[test]
    fn a_log_in_comes_back_within_ten_minutes_to_the_service_that_began_it() {
        let back = presented(7, 9).unwrap();
        assert_eq!((back.state.expose_secret(), back.next.as_str()), ("s", "/ui/jobs?q=\"a\""));
        assert_eq!(back.verifier.expose_secret(), "v");
        assert!(presented(7, 10).is_none() && presented(8, 9).is_none());
        assert_ne!(PURPOSE, seal::PURPOSE, "a session is no log-in");
    }

    #[test]
    fn the_cookie_comes_back_from_the_issuer_and_goes_to_the_log_in_alone() {
        let cookie = cookie("/ui").unwrap();
        for part in ["HttpOnly", "SameSite=Lax", "Path=/ui/login", "Secure", "Max-Age=600"] {
            assert!(cookie.split("; ").any(|other| other == part), "{part}: {cookie}");
        }
    }

    #[test]
    fn a_log_in_that_does_not_fit_into_a_cookie_is_refused() {
        assert!(cookie(&format!("/ui?{}", "x".repeat(2500))).is_some());
        assert!(cookie(&format!("/ui?{}", "x".repeat(3000))).is_none());
    }
}

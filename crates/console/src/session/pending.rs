//! The cookie of a log-in at the issuer, from its begin to the visitor's return. It binds the answer to this browser.

use std::borrow::Cow;

use axum::http::{HeaderMap, HeaderValue};
use chrono::{DateTime, TimeDelta, Utc};
use cookie::{Cookie, SameSite};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};

use super::{
    cookie::{found, names, written},
    seal::Sealer,
};

/// Each log-in has a cookie of its own: sessions of several tabs end at the same time.
const NAME: &str = "tao_slurm_login_";
/// The part of the state in the name, in characters.
const SHORT: usize = 12;
/// The most log-ins of a browser that have begun. A request has all their cookies.
const MOST: usize = 8;
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
    /// The log-in with this state, which may be anything; none if this browser has not begun it.
    pub(crate) fn presented(
        sealer: &Sealer,
        headers: &HeaderMap,
        state: &str,
        now: DateTime<Utc>,
    ) -> Option<Self> {
        let sent = state;
        found(&name(state), headers, |value| {
            let (begun, bytes) = sealer.open_bytes(PURPOSE, value)?;
            let Fields(state, verifier, next) = serde_json::from_slice(&bytes).ok()?;
            (now - begun < LIFETIME && state == sent).then(|| Self {
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
        let value = sealer.seal_bytes(PURPOSE, now, &bytes)?;
        header_value(name(state.expose_secret()), value, LIFETIME, is_https)
    }

    /// Ends the log-in with this state: each is used once.
    pub(crate) fn expired(state: &str, is_https: bool) -> Option<HeaderValue> {
        header_value(name(state), String::new(), TimeDelta::zero(), is_https)
    }

    /// Ends all of the request, if they are so many that visitors have not come back from them.
    pub(crate) fn left(headers: &HeaderMap, is_https: bool) -> Vec<HeaderValue> {
        let names: Vec<_> = names(headers).into_iter().filter(|name| name.starts_with(NAME)).collect();
        let many = if names.len() < MOST { Vec::new() } else { names };
        let ended =
            many.into_iter().map(|name| header_value(name, String::new(), TimeDelta::zero(), is_https));
        ended.flatten().collect()
    }
}

/// The name of the cookie, with the characters that a name can have.
fn name(state: &str) -> String {
    let is_allowed = |letter: &char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_');
    let short = state.chars().filter(is_allowed).take(SHORT);
    NAME.chars().chain(short).collect()
}

/// A strict cookie would not come back with a visitor whom the issuer sends.
fn header_value(name: String, value: String, age: TimeDelta, is_https: bool) -> Option<HeaderValue> {
    written(Cookie::build((name, value)).path(PATH).same_site(SameSite::Lax), age, is_https)
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
        LogInBegun::presented(&sealer(service), &headers, "s", now)
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

    #[test]
    fn a_name_is_part_of_a_state_whatever_it_has() {
        assert_eq!(name("_Jwabt53B2Fiv6MJ-EIzuA"), "tao_slurm_login__Jwabt53B2Fi");
        assert_eq!(name("a=b; Path=/\r\n\u{e9}"), "tao_slurm_login_abPath");
    }

    #[test]
    fn the_state_must_be_whole() {
        let state = "0123456789abcdef";
        let whole = LogInBegun { state: state.into(), ..begun("/ui") };
        let cookie = whole.issued(&sealer(7), true, DateTime::UNIX_EPOCH).unwrap();
        let headers = HeaderMap::from_iter([(header::COOKIE, cookie)]);
        let is_known =
            |state: &str| LogInBegun::presented(&sealer(7), &headers, state, DateTime::UNIX_EPOCH).is_some();
        assert!(is_known(state));
        assert!(!is_known("0123456789abcdeX") && !is_known("0123456789ab"));
    }

    #[test]
    fn log_ins_without_a_return_do_not_pile_up() {
        let left = |count: usize| {
            let cookies: Vec<_> = (0..count).map(|number| format!("{NAME}{number}=x")).collect();
            let text = format!("{}; other=y", cookies.join("; "));
            LogInBegun::left(&HeaderMap::from_iter([(header::COOKIE, text.parse().unwrap())]), true)
        };
        assert!(left(MOST - 1).is_empty());
        let ended = left(MOST);
        assert_eq!(ended.len(), MOST);
        assert!(ended.iter().all(|cookie| cookie.to_str().unwrap().contains("Max-Age=0")), "{ended:?}");
    }
}

//! The webhook of a job, and when a failed delivery is repeated.

mod networks;

use std::fmt;

use base64::{Engine, prelude::BASE64_STANDARD};
use chrono::{DateTime, TimeDelta};
use secrecy::{ExposeSecret, SecretSlice};
use serde::Deserialize;
use url::{Host, Url};
use utoipa::ToSchema;

use crate::{clock::Timestamp, violation::Violation};
pub use networks::Networks;

/// The receiver of a job's status changes.
#[derive(Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WebhookRequest {
    /// A public `https` URL. It receives a POST for each change of the status, signed according to the Standard Webhooks
    /// specification.
    #[schema(max_length = 2000, write_only)]
    pub url: String,
    /// The signing key: `whsec_` and 24 to 64 random bytes in base64. It is encrypted at rest and never returned.
    #[schema(write_only)]
    pub secret: String,
}

impl fmt::Debug for WebhookRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebhookRequest").finish_non_exhaustive()
    }
}

/// A checked webhook: its URL and its signing key.
#[derive(Clone)]
pub struct Webhook {
    pub url: String,
    pub key: SecretSlice<u8>,
}

impl fmt::Debug for Webhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Webhook").finish_non_exhaustive()
    }
}

const LONGEST_URL: usize = 2000;
const SECRET_PREFIX: &str = "whsec_";
const SECRET: std::ops::RangeInclusive<usize> = 24..=64;

impl Webhook {
    /// Checks the request. Host names are resolved at each delivery.
    pub fn from_request(request: &WebhookRequest, networks: &Networks) -> Result<Self, Vec<Violation>> {
        let url = address(&request.url, networks)
            .map_err(|detail| Violation::new("/webhook/url", "invalid", detail));
        let key = key(&request.secret).ok_or_else(|| {
            let detail = format!(
                "must be `{SECRET_PREFIX}` and {} to {} bytes in base64; `echo {SECRET_PREFIX}$(openssl rand -base64 32)` \
                 makes one",
                SECRET.start(),
                SECRET.end()
            );
            Violation::new("/webhook/secret", "invalid", detail)
        });
        match (url, key) {
            (Ok(url), Ok(key)) => Ok(Self { url, key }),
            (url, key) => Err([url.err(), key.err()].into_iter().flatten().collect()),
        }
    }

    /// The signing key.
    pub fn key_bytes(&self) -> &[u8] {
        self.key.expose_secret()
    }
}

fn key(secret: &str) -> Option<SecretSlice<u8>> {
    let bytes = BASE64_STANDARD.decode(secret.strip_prefix(SECRET_PREFIX)?).ok()?;
    SECRET.contains(&bytes.len()).then(|| bytes.into())
}

/// The URL in canonical form: IP addresses have many spellings, and the check must see the address itself.
fn address(text: &str, networks: &Networks) -> Result<String, String> {
    if text.len() > LONGEST_URL {
        return Err(format!("must have at most {LONGEST_URL} bytes"));
    }
    let url = Url::parse(text).map_err(|_| "must be a URL such as https://example.org/hook".to_owned())?;
    match url.scheme() {
        "https" => {}
        // Messages are signed but not encrypted, so only networks that the configuration allows may receive them.
        "http" if !networks.is_empty() => {}
        _ => return Err("must start with https://".to_owned()),
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(
            "must not contain a user or a password; the signature authenticates the sender".to_owned()
        );
    }
    let literal = match url.host() {
        Some(Host::Ipv4(address)) => Some(address.into()),
        Some(Host::Ipv6(address)) => Some(address.into()),
        Some(Host::Domain(_)) => None,
        None => return Err("must name a host".to_owned()),
    };
    if let Some(address) = literal
        && !networks.allow_for(url.scheme(), address)
    {
        return Err(format!(
            "must not be {address}: this service does not allow it with {}://",
            url.scheme()
        ));
    }
    Ok(url.into())
}

/// The wait before the first repetition; it doubles each time.
const FIRST_WAIT: TimeDelta = TimeDelta::seconds(5);
const LONGEST_WAIT: TimeDelta = TimeDelta::hours(1);

/// How long to wait after `attempts` failures; none after the last attempt. `jitter`, from 0 to 1, spreads the calls to receivers
/// that failed together. `asked` is the receiver's `Retry-After`, limited to the longest wait.
pub fn webhook_wait(attempts: u32, most: u32, jitter: f64, asked: Option<TimeDelta>) -> Option<TimeDelta> {
    if attempts >= most {
        return None;
    }
    let factor = 2_i32.checked_pow(attempts.saturating_sub(1)).unwrap_or(i32::MAX);
    let wait = FIRST_WAIT.checked_mul(factor).unwrap_or(LONGEST_WAIT).min(LONGEST_WAIT);
    let half = wait / 2;
    #[expect(clippy::cast_possible_truncation, reason = "milliseconds of an hour")]
    #[expect(clippy::cast_precision_loss, reason = "milliseconds of an hour")]
    let more = TimeDelta::milliseconds((half.num_milliseconds() as f64 * jitter.clamp(0.0, 1.0)) as i64);
    let asked = asked.unwrap_or_default().clamp(TimeDelta::zero(), LONGEST_WAIT);
    Some((half + more).max(asked + more).min(LONGEST_WAIT))
}

/// The wait in `Retry-After` (RFC 9110 §10.2.3), a number of seconds or a date. None if it is malformed.
pub fn retry_after(text: &str, now: Timestamp) -> Option<TimeDelta> {
    let text = text.trim();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        // A number that does not fit means a very long wait.
        return Some(TimeDelta::seconds(text.parse::<u32>().unwrap_or(u32::MAX).into()));
    }
    Some(DateTime::parse_from_rfc2822(text).ok()?.to_utc() - now)
}

#[cfg(test)]
mod tests;

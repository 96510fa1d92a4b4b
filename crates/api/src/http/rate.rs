//! Rate limits per token.
//!
//! Every answer reports the caller's rate (draft-ietf-httpapi-ratelimit-headers). Each process counts for itself: the limit
//! stops floods and is not a quota.

use std::{
    num::NonZeroU32,
    sync::{Arc, OnceLock},
    time::Duration,
};

use axum::{
    extract::Request,
    http::{Extensions, HeaderName, HeaderValue, header},
    middleware::Next,
    response::Response,
};
use governor::{
    Quota, RateLimiter,
    clock::{Clock, DefaultClock},
    middleware::StateInformationMiddleware,
    state::keyed::DashMapStateStore,
};

use crate::problem::{Kind, Problem};

const POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
const LEFT: HeaderName = HeaderName::from_static("ratelimit");

/// Above this number of callers, idle ones are removed.
const MANY: usize = 10_000;

/// A token bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateLimit {
    per_second: NonZeroU32,
    burst: NonZeroU32,
}

impl RateLimit {
    /// None if either is zero, which means no limit.
    pub fn new(per_second: u32, burst: u32) -> Option<Self> {
        Some(Self { per_second: NonZeroU32::new(per_second)?, burst: NonZeroU32::new(burst)? })
    }

    /// The time to refill this many requests.
    fn seconds(self, requests: u32) -> u64 {
        u64::from(requests).div_ceil(u64::from(self.per_second.get()))
    }

    fn policy(self) -> String {
        format!("\"token\";q={};w={}", self.burst, self.seconds(self.burst.get()).max(1))
    }

    fn left(self, requests: u32) -> String {
        let missing = self.burst.get().saturating_sub(requests);
        format!("\"token\";r={requests};t={}", self.seconds(missing))
    }
}

/// The hash that a caller is counted by: of its token, or of the owner in a signed token.
pub(crate) type Payer = [u8; 32];

/// The rate limits of all callers.
pub(crate) struct Rates {
    limit: RateLimit,
    buckets: RateLimiter<Payer, DashMapStateStore<Payer>, DefaultClock, StateInformationMiddleware>,
    clock: DefaultClock,
}

impl Rates {
    pub(crate) fn new(limit: RateLimit) -> Self {
        let quota = Quota::per_second(limit.per_second).allow_burst(limit.burst);
        let buckets = RateLimiter::keyed(quota).with_middleware::<StateInformationMiddleware>();
        Self { limit, buckets, clock: DefaultClock::default() }
    }

    /// The remaining requests, or how long to wait for the next one.
    fn spend(&self, payer: &Payer) -> Result<u32, Duration> {
        if self.buckets.len() > MANY {
            self.buckets.retain_recent();
        }
        match self.buckets.check_key(payer) {
            Ok(left) => Ok(left.remaining_burst_capacity()),
            Err(until) => Err(until.wait_time_from(self.clock.now())),
        }
    }
}

/// The rate to report in the answer, set when the caller is known.
#[derive(Debug, Clone, Default)]
struct Reported(Arc<OnceLock<(RateLimit, u32)>>);

/// Counts a request against the caller's rate.
pub(crate) fn spend(rates: Option<&Rates>, request: &Extensions, payer: Payer) -> Result<(), Problem> {
    let Some(rates) = rates else { return Ok(()) };
    let spent = rates.spend(&payer);
    if let Some(Reported(reported)) = request.get() {
        // Set only once, because a request has one caller.
        let _ = reported.set((rates.limit, spent.unwrap_or_default()));
    }
    let Err(wait) = spent else { return Ok(()) };
    let seconds = wait.as_secs_f64().ceil().max(1.0);
    let detail = format!(
        "The limit is {} requests per second for a token; nothing was changed. Try again in {seconds} s.",
        rates.limit.per_second
    );
    Err(Problem::new(Kind::TooManyRequests, detail).with_text(header::RETRY_AFTER, &seconds.to_string()))
}

/// Adds the caller's rate to the answer.
pub(crate) async fn reported(mut request: Request, next: Next) -> Response {
    let reported = Reported::default();
    request.extensions_mut().insert(reported.clone());
    let mut response = next.run(request).await;
    if let Some((limit, left)) = reported.0.get() {
        for (name, text) in [(POLICY, limit.policy()), (LEFT, limit.left(*left))] {
            if let Ok(value) = HeaderValue::from_str(&text) {
                response.headers_mut().insert(name, value);
            }
        }
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_remaining_requests_are_reported_with_the_time_until_all_are_available() {
        let limit = RateLimit::new(10, 25).unwrap();
        assert_eq!(limit.policy(), r#""token";q=25;w=3"#);
        assert_eq!(limit.left(25), r#""token";r=25;t=0"#);
        assert_eq!(limit.left(14), r#""token";r=14;t=2"#);
        assert_eq!(RateLimit::new(10, 1).unwrap().policy(), r#""token";q=1;w=1"#);
        assert_eq!((RateLimit::new(0, 5), RateLimit::new(5, 0)), (None, None));
    }

    #[test]
    fn each_caller_has_a_bucket_of_its_own() {
        let rates = Rates::new(RateLimit::new(1, 2).unwrap());
        let (ann, bob) = ([1; 32], [2; 32]);
        assert_eq!((rates.spend(&ann), rates.spend(&ann)), (Ok(1), Ok(0)));
        let wait = rates.spend(&ann).unwrap_err();
        assert!(wait > Duration::ZERO && wait <= Duration::from_secs(1), "{wait:?}");
        assert_eq!(rates.spend(&bob), Ok(1));
    }
}

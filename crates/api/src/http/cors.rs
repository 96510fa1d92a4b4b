//! CORS: web pages of other origins may call only if the configuration lists them.

use std::time::Duration;

use axum::http::{HeaderName, HeaderValue, Method, Uri};
use tower_http::cors::{AllowOrigin, CorsLayer};

const ALL: &str = "*";

const REQUEST_HEADERS: [&str; 8] = [
    "authorization",
    "content-type",
    "if-match",
    "if-none-match",
    "idempotency-key",
    "last-event-id",
    "traceparent",
    "x-request-id",
];
const RESPONSE_HEADERS: [&str; 13] = [
    "etag",
    "link",
    "location",
    "retry-after",
    "www-authenticate",
    "idempotency-replayed",
    "ratelimit",
    "ratelimit-policy",
    "x-log-attempt",
    "x-log-next-offset",
    "x-log-offset",
    "x-log-size",
    "x-request-id",
];

/// Whether a text is an origin as browsers send it, or `*`.
pub fn is_origin(text: &str) -> bool {
    let Ok(uri) = text.parse::<Uri>() else { return text == ALL };
    let plain = uri.scheme_str().zip(uri.authority()).map(|(scheme, host)| format!("{scheme}://{host}"));
    text == ALL
        || plain.is_some_and(|plain| plain == text && !plain.contains('@'))
            && matches!(uri.scheme_str(), Some("http" | "https"))
}

/// The CORS layer; none without configured origins, so that browsers refuse every page.
pub(crate) fn layer(origins: &[String]) -> Option<CorsLayer> {
    if origins.is_empty() {
        return None;
    }
    let origins = if origins.iter().any(|origin| origin == ALL) {
        // Safe, because pages send tokens themselves; browsers add no credentials on their own.
        AllowOrigin::any()
    } else {
        AllowOrigin::list(origins.iter().filter_map(|origin| HeaderValue::from_str(origin).ok()))
    };
    Some(
        CorsLayer::new()
            .allow_origin(origins)
            .allow_methods([Method::GET, Method::HEAD, Method::POST, Method::PUT, Method::DELETE])
            .allow_headers(REQUEST_HEADERS.map(HeaderName::from_static))
            .expose_headers(RESPONSE_HEADERS.map(HeaderName::from_static))
            .max_age(Duration::from_hours(1)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_a_scheme_and_a_host_and_nothing_more() {
        for good in ["https://a.example.org", "http://localhost:3000", "*"] {
            assert!(is_origin(good), "{good}");
        }
        for wrong in
            ["", "a.example.org", "https://a/", "https://a/b", "https://u@a", "ftp://a", "https://a?b", "**"]
        {
            assert!(!is_origin(wrong), "{wrong}");
        }
    }
}

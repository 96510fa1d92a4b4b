//! What the published client does differently from other callers, turned into what everybody else sends.

use axum::{
    extract::Request,
    http::{HeaderMap, HeaderName, HeaderValue, header},
    middleware::Next,
    response::Response,
};
use base64::{Engine, prelude::BASE64_STANDARD};

/// Sent by browsers, and only by them.
const BROWSERS: [HeaderName; 2] = [header::ORIGIN, HeaderName::from_static("sec-fetch-site")];

/// The client has no parameter for a token. Its HTTP library sends what its base URL or a netrc file holds, as HTTP
/// Basic: the password is the token then. And it sends JSON without saying so.
pub(crate) async fn understood(mut request: Request, next: Next) -> Response {
    let headers = request.headers_mut();
    if let Some(token) = password(headers) {
        headers.insert(header::AUTHORIZATION, token);
    }
    // A page of somebody else's could make a browser send a body without a type, and nothing would ask us before.
    let browser = BROWSERS.iter().any(|name| headers.contains_key(name));
    if !headers.contains_key(header::CONTENT_TYPE) && !browser {
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }
    next.run(request).await
}

/// The password of HTTP Basic (RFC 7617), as the token that it is.
fn password(headers: &HeaderMap) -> Option<HeaderValue> {
    let value = headers.get(header::AUTHORIZATION)?.as_bytes();
    let (scheme, rest) = value.split_at_checked(6)?;
    if !scheme.eq_ignore_ascii_case(b"basic ") {
        return None;
    }
    let pair = BASE64_STANDARD.decode(rest.trim_ascii()).ok()?;
    let colon = pair.iter().position(|byte| *byte == b':')?;
    let mut bearer = HeaderValue::from_bytes(&[b"Bearer ", &pair[colon + 1..]].concat()).ok()?;
    bearer.set_sensitive(true);
    Some(bearer)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(value: &str) -> Option<String> {
        let headers = HeaderMap::from_iter([(header::AUTHORIZATION, value.parse().unwrap())]);
        password(&headers).map(|value| value.to_str().unwrap().to_owned())
    }

    #[test]
    fn the_password_is_the_token_whoever_the_user_is() {
        // `tao:tsl_a:b`, `:tsl_a`
        assert_eq!(read("Basic dGFvOnRzbF9hOmI=").as_deref(), Some("Bearer tsl_a:b"));
        assert_eq!(read("basic  OnRzbF9h").as_deref(), Some("Bearer tsl_a"));
    }

    #[test]
    fn anything_else_stays_as_it_is() {
        // No colon; a line break in the password.
        for other in ["Bearer dGFvOnRzbF9h", "Basic", "Basic ", "Basic !", "Basic dGFv", "Basic YTpiCmM="] {
            assert_eq!(read(other), None, "{other}");
        }
    }
}

//! The header `If-Match` (RFC 9110 §13.1.1).

use axum::{
    extract::FromRequestParts,
    http::{header, request::Parts},
    response::{IntoResponse, Response},
};
use persistence::Revision;

use crate::{
    problem::{Kind, Problem},
    state::App,
};

/// The revision that a change applies to; none without the header.
#[derive(Debug, Clone, Copy)]
pub(crate) struct IfMatch(pub(crate) Option<Revision>);

impl FromRequestParts<App> for IfMatch {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, Problem> {
        let mut values = parts.headers.get_all(header::IF_MATCH).iter();
        let Some(value) = values.next() else { return Ok(Self(None)) };
        let read = value.to_str().ok().filter(|_| values.next().is_none()).and_then(revision);
        read.map(|revision| Self(Some(revision))).ok_or_else(|| {
            let detail = "`If-Match` must be the `ETag` from `GET /clusters/{name}`, such as `\"42\"`, or `*` for any revision.";
            Problem::new(Kind::InvalidHeader, detail)
        })
    }
}

/// Proxies that compress answers make tags weak; they are accepted.
fn revision(text: &str) -> Option<Revision> {
    let text = text.trim();
    if text == "*" {
        return Some(Revision::Any);
    }
    let tag = text.strip_prefix("W/").unwrap_or(text);
    let number = tag.strip_prefix('"')?.strip_suffix('"')?;
    let is_plain = number.bytes().all(|byte| byte.is_ascii_digit());
    number.parse().ok().filter(|_| is_plain).map(Revision::This)
}

/// The `ETag` of a revision.
pub(crate) fn etag(revision: i64) -> String {
    format!("\"{revision}\"")
}

/// Adds the revision as `ETag`.
pub(crate) fn tagged(answer: impl IntoResponse, revision: i64) -> Response {
    ([(header::ETAG, etag(revision))], answer).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_reads_back_and_other_texts_are_refused() {
        assert_eq!(revision(&etag(42)), Some(Revision::This(42)));
        assert_eq!(revision(" W/\"42\" "), Some(Revision::This(42)));
        assert_eq!(revision("*"), Some(Revision::Any));
        for wrong in
            ["", "42", "\"\"", "\"x\"", "\"-1\"", "\"+1\"", "\"1\", \"2\"", "\"99999999999999999999\""]
        {
            assert_eq!(revision(wrong), None, "{wrong}");
        }
    }
}

//! `If-Match` (RFC 9110 §13.1.1): a change of what the caller has seen, and of nothing else.

use axum::{
    extract::FromRequestParts,
    http::{header, request::Parts},
};
use persistence::Revision;

use crate::{
    problem::{Kind, Problem},
    state::App,
};

/// The revision that a change is meant for; none when the caller did not say.
#[derive(Debug, Clone, Copy)]
pub(crate) struct IfMatch(pub(crate) Option<Revision>);

impl FromRequestParts<App> for IfMatch {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, Problem> {
        let mut values = parts.headers.get_all(header::IF_MATCH).iter();
        let Some(value) = values.next() else { return Ok(Self(None)) };
        let read = value.to_str().ok().filter(|_| values.next().is_none()).and_then(revision);
        read.map(|revision| Self(Some(revision))).ok_or_else(|| {
            let detail = "`If-Match` must be the ETag of the cluster as you have seen it, such as `\"42\"`, or `*` for \
                          whatever it is.";
            Problem::new(Kind::InvalidHeader, detail)
        })
    }
}

/// A proxy that compresses answers makes tags weak; they are ours all the same.
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

/// The tag that says a revision.
pub(crate) fn etag(revision: i64) -> String {
    format!("\"{revision}\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_read_as_it_was_given_and_nothing_else_is_one() {
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

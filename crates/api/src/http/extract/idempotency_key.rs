//! The header `Idempotency-Key`.

use axum::{
    extract::FromRequestParts,
    http::{HeaderMap, HeaderName, request::Parts},
};
use persistence::Once;
use utoipa::IntoParams;

use crate::{
    auth::Caller,
    problem::{Kind, Problem},
    state::App,
};

const NAME: HeaderName = HeaderName::from_static("idempotency-key");
const MOST: usize = 255;

/// The header, if the request has it.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Header)]
pub(crate) struct IdempotencyKey {
    /// A text of the client, such as a UUID, that identifies the request. A repeated request with the same key is not carried
    /// out again and gets the same answer; a different request with the same key is refused. Keys belong to the token's owner and
    /// are stored for a day by default.
    #[param(rename = "Idempotency-Key", min_length = 1, max_length = 255, pattern = "^[!-~]([ -~]*[!-~])?$")]
    key: Option<String>,
}

impl IdempotencyKey {
    /// The request that the key stands for.
    pub(crate) fn once(
        &self,
        app: &App,
        caller: &Caller,
        operation: String,
        request_hash: [u8; 32],
    ) -> Option<Once> {
        let key = self.key.clone()?;
        let keep = app.limits.idempotency_keep;
        Some(Once { owner: caller.owner.clone(), key, operation, request_hash, keep })
    }
}

impl FromRequestParts<App> for IdempotencyKey {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, Problem> {
        read(&parts.headers).map(|key| Self { key })
    }
}

fn read(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let mut values = headers.get_all(NAME).into_iter();
    let Some(value) = values.next() else { return Ok(None) };
    let wrong = || {
        let detail =
            format!("`Idempotency-Key` must occur once, with 1 to {MOST} printable ASCII characters.");
        Problem::new(Kind::InvalidHeader, detail)
    };
    if values.next().is_some() {
        return Err(wrong());
    }
    let text = value.to_str().map_err(|_| wrong())?.trim();
    // The draft standard puts the key in quotes, but few clients do.
    let text = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text);
    let printable = text.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ');
    if (1..=MOST).contains(&text.len()) && printable { Ok(Some(text.to_owned())) } else { Err(wrong()) }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn key(values: &[&str]) -> Result<Option<String>, ()> {
        let pairs = values.iter().map(|value| (NAME, HeaderValue::from_str(value).unwrap()));
        let mut headers = HeaderMap::new();
        pairs.for_each(|(name, value)| {
            headers.append(name, value);
        });
        read(&headers).map_err(|_| ())
    }

    #[test]
    fn a_key_is_printable_and_given_once_with_or_without_quotes() {
        assert_eq!(key(&[]), Ok(None));
        assert_eq!(key(&["a-1"]), Ok(Some("a-1".to_owned())));
        assert_eq!(key(&["\"a-1\""]), Ok(Some("a-1".to_owned())));
        assert_eq!(key(&["\""]), Ok(Some("\"".to_owned())));
        assert_eq!(key(&[&"x".repeat(MOST)]).unwrap().unwrap().len(), MOST);
        for wrong in
            [&[""][..], &["  "], &["\"\""], &[&"x".repeat(MOST + 1)], &["größe"], &["a\tb"], &["a", "a"]]
        {
            assert_eq!(key(wrong), Err(()), "{wrong:?}");
        }
    }
}

//! The `Idempotency-Key` of a request that is to be carried out once, however often it is sent.

use axum::{
    extract::FromRequestParts,
    http::{HeaderMap, HeaderName, request::Parts},
};
use persistence::Once;
use utoipa::{
    IntoParams,
    openapi::{
        ObjectBuilder, Required,
        path::{Parameter, ParameterBuilder, ParameterIn},
        schema::Type,
    },
};

use crate::{
    auth::Caller,
    problem::{Kind, Problem},
    state::App,
};

const NAME: HeaderName = HeaderName::from_static("idempotency-key");
const MOST: usize = 255;

/// The key, if the request has one.
#[derive(Debug)]
pub(crate) struct IdempotencyKey(Option<String>);

impl IdempotencyKey {
    /// The request that the key stands for.
    pub(crate) fn once(
        &self,
        app: &App,
        caller: &Caller,
        operation: String,
        request_hash: [u8; 32],
    ) -> Option<Once> {
        let key = self.0.clone()?;
        let keep = app.limits.idempotency_keep;
        Some(Once { owner: caller.owner.clone(), key, operation, request_hash, keep })
    }
}

impl FromRequestParts<App> for IdempotencyKey {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, Problem> {
        read(&parts.headers).map(Self)
    }
}

fn read(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let mut values = headers.get_all(NAME).into_iter();
    let Some(value) = values.next() else { return Ok(None) };
    let wrong = || {
        let detail =
            format!("`Idempotency-Key` must be given once, as 1 to {MOST} printable ASCII characters.");
        Problem::new(Kind::InvalidHeader, detail)
    };
    if values.next().is_some() {
        return Err(wrong());
    }
    let text = value.to_str().map_err(|_| wrong())?.trim();
    // The draft of the header has it in quotes; hardly anybody sends them.
    let text = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text);
    let printable = text.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ');
    if (1..=MOST).contains(&text.len()) && printable { Ok(Some(text.to_owned())) } else { Err(wrong()) }
}

impl IntoParams for IdempotencyKey {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let schema = ObjectBuilder::new()
            .schema_type(Type::String)
            .min_length(Some(1))
            .max_length(Some(MOST))
            .pattern(Some("^[ -~]+$"));
        let description = "A text of yours, such as a UUID, that stands for this request: sent again with it, the \
            request is not carried out again but answered as before. The key of another request is refused. Keys belong \
            to the token's owner and are known for a day, unless the service says otherwise.";
        let parameter = ParameterBuilder::new()
            .name("Idempotency-Key")
            .parameter_in(ParameterIn::Header)
            .required(Required::False)
            .description(Some(description))
            .schema(Some(schema));
        vec![parameter.build()]
    }
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

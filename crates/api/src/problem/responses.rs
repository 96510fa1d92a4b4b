//! The problems of an operation in the OpenAPI document, from the same table as the answers.

use std::collections::BTreeMap;

use utoipa::openapi::{
    ContentBuilder, Header, Ref, RefOr, Response, ResponseBuilder,
    header::HeaderBuilder,
    schema::{ObjectBuilder, Type},
};

use super::{Kind, MEDIA_TYPE};

/// The problems of every operation.
const ALWAYS: &[Kind] = &[
    Kind::BadRequest,
    Kind::InvalidParameter,
    Kind::UriTooLong,
    Kind::HeadersTooLarge,
    Kind::Internal,
    Kind::Timeout,
    Kind::ConnectionsBusy,
    Kind::BuffersBusy,
];

/// No other problems: the operation needs no token.
pub(crate) const PUBLIC: &[Kind] = &[];

/// The further problems of every operation that needs a token.
pub(crate) const SECURED: &[Kind] = &[
    Kind::Unauthorized,
    Kind::TokenMalformed,
    Kind::TokenAlgorithm,
    Kind::TokenUnknownKey,
    Kind::TokenSignature,
    Kind::TokenWrongIssuer,
    Kind::TokenWrongAudience,
    Kind::TokenExpired,
    Kind::TokenNotYetValid,
    Kind::TokenClaims,
    Kind::Forbidden,
    Kind::TooManyRequests,
    Kind::DatabaseUnavailable,
    Kind::KeysUnavailable,
];

/// The further problems of every operation with a body.
pub(crate) const BODY: &[Kind] = &[
    Kind::MalformedJson,
    Kind::BodyTooLarge,
    Kind::RequestTimeout,
    Kind::UnsupportedMediaType,
    Kind::InvalidRequest,
    Kind::TooDeep,
];

/// Declares the problems of an operation for its responses.
macro_rules! problems {
    ($name:ident = $($base:ident)|+ $(, $kind:ident)* $(,)?) => {
        /// The problems of this operation.
        pub(crate) struct $name;

        impl utoipa::IntoResponses for $name {
            fn responses()
            -> std::collections::BTreeMap<String, utoipa::openapi::RefOr<utoipa::openapi::Response>> {
                crate::problem::responses(&[$($crate::problem::$base,)+ &[$($crate::problem::Kind::$kind),*]])
            }
        }
    };
}

pub(crate) use problems;

fn etag() -> Header {
    let schema = ObjectBuilder::new().schema_type(Type::String).build();
    let description =
        "For a cluster with invalid settings: the `ETag` that a correction sends in `If-Match`.";
    HeaderBuilder::new().schema(Some(schema)).description(Some(description)).build()
}

/// One response for each status; its description lists the kinds.
pub(crate) fn responses(kinds: &[&[Kind]]) -> BTreeMap<String, RefOr<Response>> {
    let mut descriptions: BTreeMap<String, String> = BTreeMap::new();
    for kind in ALWAYS.iter().chain(kinds.iter().copied().flatten()) {
        let line = format!("{} (`{}`).", kind.title(), kind.code());
        descriptions
            .entry(kind.status().as_str().to_owned())
            .and_modify(|text| {
                text.push(' ');
                text.push_str(&line);
            })
            .or_insert(line);
    }
    let response = |description: String| {
        // An unusable cluster is corrected by a change that names its revision.
        let tagged = description.contains(Kind::ClusterUnusable.code());
        let content = ContentBuilder::new().schema(Some(Ref::from_schema_name("Problem"))).build();
        let response = ResponseBuilder::new().description(description).content(MEDIA_TYPE, content);
        if tagged { response.header("ETag", etag()) } else { response }.build()
    };
    descriptions.into_iter().map(|(status, text)| (status, RefOr::T(response(text)))).collect()
}

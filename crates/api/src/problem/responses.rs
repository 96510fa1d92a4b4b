//! The problems of an operation, as its document lists them: made from the same table as the answers.

use std::collections::BTreeMap;

use utoipa::openapi::{
    ContentBuilder, Header, Ref, RefOr, Response, ResponseBuilder,
    header::HeaderBuilder,
    schema::{ObjectBuilder, Type},
};

use super::{Kind, MEDIA_TYPE};

/// What any operation may answer.
pub(crate) const ALWAYS: &[Kind] = &[
    Kind::BadRequest,
    Kind::InvalidParameter,
    Kind::UriTooLong,
    Kind::HeadersTooLarge,
    Kind::Internal,
    Kind::Timeout,
];

/// What any operation that needs a token may answer.
pub(crate) const SECURED: &[Kind] = &[
    Kind::BadRequest,
    Kind::InvalidParameter,
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
    Kind::UriTooLong,
    Kind::TooManyRequests,
    Kind::HeadersTooLarge,
    Kind::Internal,
    Kind::DatabaseUnavailable,
    Kind::KeysUnavailable,
    Kind::Timeout,
];

/// Declares the problems of one operation, for its list of responses.
macro_rules! problems {
    ($name:ident = $base:ident $(, $kind:ident)* $(,)?) => {
        /// The problems of this operation.
        pub(crate) struct $name;

        impl utoipa::IntoResponses for $name {
            fn responses()
            -> std::collections::BTreeMap<String, utoipa::openapi::RefOr<utoipa::openapi::Response>> {
                crate::problem::responses($crate::problem::$base, &[$($crate::problem::Kind::$kind),*])
            }
        }
    };
}

pub(crate) use problems;

fn etag() -> Header {
    let schema = ObjectBuilder::new().schema_type(Type::String).build();
    let description = "Of a cluster whose settings are no good: what a change of them names in `If-Match`.";
    HeaderBuilder::new().schema(Some(schema)).description(Some(description)).build()
}

/// One response for each status; kinds that share one are listed in its description.
pub(crate) fn responses(base: &[Kind], more: &[Kind]) -> BTreeMap<String, RefOr<Response>> {
    let mut descriptions: BTreeMap<String, String> = BTreeMap::new();
    for kind in base.iter().chain(more) {
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
        // A cluster whose settings are no good is mended by a change that names them.
        let tagged = description.contains(Kind::ClusterUnusable.code());
        let content = ContentBuilder::new().schema(Some(Ref::from_schema_name("Problem"))).build();
        let response = ResponseBuilder::new().description(description).content(MEDIA_TYPE, content);
        if tagged { response.header("ETag", etag()) } else { response }.build()
    };
    descriptions.into_iter().map(|(status, text)| (status, RefOr::T(response(text)))).collect()
}

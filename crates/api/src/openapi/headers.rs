//! Headers of all answers, which layers add whatever the call. Headers of one call are documented there.

use utoipa::openapi::{
    Header, OpenApi, Ref, RefOr, Response,
    header::HeaderBuilder,
    schema::{ObjectBuilder, Type},
};

const REQUEST_ID: Said = Said(
    "X-Request-Id",
    Type::String,
    "The request's id: the one that was sent, or a new one. The service's log contains it.",
);
const CHALLENGE: Said = Said(
    "WWW-Authenticate",
    Type::String,
    "What is wrong with the token, or which scope is missing (RFC 6750).",
);
const RETRY_AFTER: Said =
    Said("Retry-After", Type::Integer, "The number of seconds to wait before the next try.");
const POLICY: Said = Said(
    "RateLimit-Policy",
    Type::String,
    "The limit: `q` requests in `w` seconds for a token. Absent without a limit.",
);
const RATE: Said = Said(
    "RateLimit",
    Type::String,
    "The token's remaining requests `r`, and the seconds `t` until all are available again. Absent without a limit.",
);

/// A header, and what it says.
struct Said(&'static str, Type, &'static str);

impl Said {
    fn header(&self) -> Header {
        let Self(_, kind, description) = self;
        let schema = ObjectBuilder::new().schema_type(kind.clone()).build();
        HeaderBuilder::new().schema(Some(schema)).description(Some(*description)).build()
    }

    fn put(&self, response: &mut Response) {
        let place = Ref::new(format!("#/components/headers/{}", self.0));
        response.headers.entry(self.0.to_owned()).or_insert(RefOr::Ref(place));
    }
}

/// Puts them into the document.
pub(super) fn put(document: &mut OpenApi) {
    let headers = &mut document.components.get_or_insert_default().headers;
    for said in [REQUEST_ID, CHALLENGE, RETRY_AFTER, POLICY, RATE] {
        headers.insert(said.0.to_owned(), RefOr::T(said.header()));
    }
    for operation in document.paths.paths.values_mut().flat_map(super::operations_of) {
        let is_secured = operation.security.as_ref().is_some_and(|ways| !ways.is_empty());
        let responses = &mut operation.responses.responses;
        for (status, response) in responses {
            let RefOr::T(response) = response else { continue };
            REQUEST_ID.put(response);
            let status = status.as_str();
            if matches!(status, "401" | "403") {
                CHALLENGE.put(response);
            }
            if matches!(status, "429" | "503") {
                RETRY_AFTER.put(response);
            }
            // These errors occur before the caller is known.
            if is_secured && !matches!(status, "401" | "414" | "431") {
                POLICY.put(response);
                RATE.put(response);
            }
        }
    }
}

//! The headers that answers have whatever the operation: what surrounds every endpoint adds them, so they are said here,
//! once. Those of one operation stand beside it.

use utoipa::openapi::{
    Header, OpenApi, Ref, RefOr, Response,
    header::HeaderBuilder,
    schema::{ObjectBuilder, Type},
};

const REQUEST_ID: Said = Said(
    "X-Request-Id",
    Type::String,
    "The request's id: the one that was sent, or one of the service's own. Its log has it.",
);
const CHALLENGE: Said = Said(
    "WWW-Authenticate",
    Type::String,
    "What is wrong with the token, or which scope it lacks (RFC 6750).",
);
const RETRY_AFTER: Said = Said("Retry-After", Type::Integer, "Ask again after so many seconds.");
const POLICY: Said = Said(
    "RateLimit-Policy",
    Type::String,
    "How many requests a token may make, and in how many seconds (`q`, `w`); absent where there is no limit.",
);
const RATE: Said = Said(
    "RateLimit",
    Type::String,
    "How many requests the token has left, and after how many seconds all of them (`r`, `t`); absent where there is no limit.",
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
            // Counted when it is known who calls, which is after the head was found to be of a size to be read.
            if is_secured && !matches!(status, "401" | "414" | "431") {
                POLICY.put(response);
                RATE.put(response);
            }
        }
    }
}

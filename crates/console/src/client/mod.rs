//! The API as pages use it: requests in memory, with the visitor's own token.

mod calls;
mod failure;

pub(crate) use calls::*;
pub(crate) use failure::Failure;
pub(crate) use loopback::{Call, Query, segment};

/// The API with the rights of one visitor.
pub(crate) type Api = loopback::Api<Failure>;

#[cfg(test)]
mod document_tests {
    use super::calls;

    #[test]
    fn every_call_and_every_field_that_pages_read_is_in_the_apis_document() {
        let missing = loopback::document::lacking(calls::all());
        assert!(missing.is_empty(), "the document lacks {missing:#?}");
    }
}

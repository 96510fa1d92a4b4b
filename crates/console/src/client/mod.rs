//! The API as pages use it: requests in memory, with the visitor's own token.

mod calls;
mod failure;
mod path;
mod send;

pub(crate) use calls::*;
pub(crate) use failure::Failure;
pub(crate) use path::{Query, segment};
pub(crate) use send::{Api, Call};
#[cfg(test)]
mod document_tests;

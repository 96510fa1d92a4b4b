//! A client of the API in the same process: it sends the API's router requests in memory, with the caller's own token (ADR 31).
//!
//! This crate depends on none of ours, so its users cannot do what the API does not offer.

#[cfg(feature = "document")]
pub mod document;
mod failure;
mod letters;
mod like;
mod path;
mod send;

pub use failure::{Failure, Fault, Problem};
pub use letters::is_odd;
pub use like::{NOT_COPIED, request_like, shown_in_part};
pub use path::{Query, segment};
pub use send::{Api, Call, Document};

//! Tells those who asked for it of each change of a job's status.
//!
//! The database makes the messages, in the transaction that changes the status, and gives the right to deliver a job's
//! oldest by lease: so every message is delivered at least once, those of a job in their order, whatever number of
//! processes deliver and whichever of them dies. This crate posts them, only to addresses that may be called.

mod authorities;
mod deliver;
mod post;
mod resolver;
mod signature;

pub use authorities::{Authorities, UnfitAuthorities};
pub use deliver::{Deliverer, DeliverySettings};

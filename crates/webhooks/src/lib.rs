//! Delivers webhooks: one message for each change of a job's status.
//!
//! The database creates a message in the transaction that changes the status. A process leases the oldest message of a job to
//! deliver it. So every message is delivered at least once, and the messages of a job in order, with any number of processes
//! and after any crash. This crate posts the messages, and only to addresses that may be called.

mod authorities;
mod deliver;
mod post;
mod signature;

pub use authorities::{Authorities, InvalidAuthorities};
pub use deliver::{Deliverer, DeliverySettings};

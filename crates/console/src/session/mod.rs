//! Sessions: the visitor's token, sealed. There is no table of them, and a revoked token ends its session.

mod cookie;
mod pending;
mod seal;

pub(crate) use cookie::{expired, is_https, issued, presented};
pub(crate) use pending::LogInBegun;
pub use seal::SessionKey;
pub(crate) use seal::{Sealer, Session};

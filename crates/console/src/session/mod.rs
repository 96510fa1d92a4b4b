//! Sessions: the visitor's token, sealed. There is no table of them, and a revoked token ends its session.

mod cookie;
mod seal;

pub(crate) use cookie::{expired, issued, presented};
pub use seal::SessionKey;
pub(crate) use seal::{Sealer, Session};

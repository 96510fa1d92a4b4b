//! Bearer tokens, and requests with an idempotency key.

pub(crate) mod idempotency;
pub(crate) mod tokens;

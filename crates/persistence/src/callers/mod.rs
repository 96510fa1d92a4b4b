//! Who may call, and which requests were already carried out.

pub(crate) mod idempotency;
pub(crate) mod tokens;

//! The database: given by its address, or a private one.

pub(crate) mod connect;
pub(crate) mod embedded_postgres;
pub(crate) mod retention;

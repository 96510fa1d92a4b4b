//! The database: the configured one, or a private Postgres.

pub(crate) mod connect;
pub(crate) mod embedded_postgres;
pub(crate) mod retention;

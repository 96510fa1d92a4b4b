//! The process: lifecycle, clock, logs, metrics and HTTP server.

pub(crate) mod clock;
pub(crate) mod gauges;
pub(crate) mod http_server;
mod issuer_http;
pub(crate) mod jwks;
pub(crate) mod lifecycle;
pub(crate) mod log_in;
mod metric_help;
pub(crate) mod open_files;
pub(crate) mod telemetry;

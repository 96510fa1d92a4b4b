//! Tools for agents, by the Model Context Protocol at `/mcp`.
//!
//! A tool is a client of the API (ADR 32). `gate` lets callers in, `tools` has one file for each group of tools, `client` the calls and
//! the few fields that tools return, and `text` makes texts of others harmless. This crate knows the API alone, so an agent cannot do
//! what the API does not offer.

mod client;
mod gate;
mod server;
mod text;
mod tools;

use axum::Router;
use tracing::{Level, Metadata};

/// Where the tools are.
pub const PATH: &str = "/mcp";

/// Puts the tools before the rest of the service. All other requests reach `rest` unchanged.
pub fn mount(rest: Router, api: Router) -> Router {
    gate::around(Router::new().route_service(PATH, server::service()), api).fallback_service(rest)
}

/// Whether a line of the log would show messages of agents, which may have secrets among their arguments, or says only that one came.
pub fn shows_messages(line: &Metadata<'_>) -> bool {
    line.target().split("::").next() == Some("rmcp") && *line.level() > Level::WARN
}

#[cfg(test)]
mod tests;

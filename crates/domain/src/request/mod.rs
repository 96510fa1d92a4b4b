//! Requests, and the validated specification made from one.

pub(crate) mod array;
pub(crate) mod body;
pub(crate) mod component;
pub(crate) mod component_body;
pub(crate) mod component_settings;
pub(crate) mod components;
pub(crate) mod container;
pub(crate) mod container_job;
pub(crate) mod copies;
pub mod cosmos;
pub(crate) mod datasets;
#[cfg(test)]
pub(crate) mod edge_tests;
pub(crate) mod environment;
pub(crate) mod files;
pub(crate) mod idle;
pub(crate) mod launcher;
pub mod limits;
pub(crate) mod needs;
mod nulls;
pub(crate) mod options;
pub(crate) mod options_body;
pub(crate) mod pipeline;
pub(crate) mod program;
pub(crate) mod progress;
pub(crate) mod resources;
pub(crate) mod restart;
pub(crate) mod results;
pub(crate) mod secret;
pub(crate) mod service;
pub(crate) mod spec;
pub(crate) mod text;
pub(crate) mod uri;
pub(crate) mod variable;
pub(crate) mod warnings;
pub(crate) mod webhook;

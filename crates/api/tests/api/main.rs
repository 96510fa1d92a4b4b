//! The HTTP interface as a caller meets it: the router of the real service, over a real database.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on fails")]

mod auth;
mod callers;
mod cancel;
mod clusters;
mod cors;
mod create;
mod diagnosis;
mod document;
mod errors;
mod errors_page;
mod every_field;
mod examples;
mod follow;
mod history;
mod hostile;
mod jwt;
mod kept_clusters;
mod list;
mod log_lines;
mod log_search;
mod logs;
mod metrics;
mod once;
mod option_examples;
mod parameters;
mod pipelines;
mod promised;
mod rate;
mod refusals;
mod results;
mod service;
mod standing;
mod stats;
mod status;
mod support;
mod tao;
mod tasks;
mod timeline;
mod unread;
mod validate;
mod wait;
mod watch;
mod webhook;
mod wrong_jobs;

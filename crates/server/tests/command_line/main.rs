//! Tests of the program as a client of the API, with a server that has prepared answers.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

mod jobs;
mod login;
mod pipelines;
mod prepared;

//! A preflight as callers see it.

use chrono::{DateTime, Utc};
use domain::preflight::{Check, Outcome};
use serde::Serialize;
use utoipa::ToSchema;

/// What a preflight has found.
#[derive(Debug, Serialize, ToSchema)]
pub struct PreflightView {
    /// The cluster's name.
    pub cluster: String,
    /// The worst outcome; skipped checks do not count.
    pub outcome: Outcome,
    /// When it began.
    pub checked_on: DateTime<Utc>,
    /// The checks, in the order in which to mend what fails.
    pub checks: Vec<Check>,
}

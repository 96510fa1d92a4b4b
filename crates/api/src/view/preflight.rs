//! The result of a preflight.

use chrono::{DateTime, Utc};
use domain::preflight::{Check, Outcome};
use serde::Serialize;
use utoipa::ToSchema;

/// The result of a preflight.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PreflightView {
    /// The cluster's name.
    pub cluster: String,
    /// The worst outcome; skipped checks do not count.
    pub outcome: Outcome,
    /// When the preflight began.
    pub checked_on: DateTime<Utc>,
    /// The checks, in the order in which to fix failures.
    pub checks: Vec<Check>,
}

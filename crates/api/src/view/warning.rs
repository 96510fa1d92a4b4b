//! Warnings about a request that was accepted.

use domain::{Note, Warning};
use serde::Serialize;
use utoipa::ToSchema;

/// An accepted setting that may be a mistake.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct WarningView {
    /// JSON pointer to the field in the request.
    pub pointer: String,
    /// A stable name of the rule.
    pub code: String,
    /// What happens, and what the alternative is.
    pub detail: String,
}

impl From<Warning> for WarningView {
    fn from(warning: Warning) -> Self {
        Self { pointer: warning.pointer, code: warning.code.to_owned(), detail: warning.detail }
    }
}

impl From<&Note> for WarningView {
    fn from(Note { pointer, code, detail }: &Note) -> Self {
        Self { pointer: pointer.clone(), code: code.clone(), detail: detail.clone() }
    }
}

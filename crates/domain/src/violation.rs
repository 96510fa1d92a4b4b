//! One thing that is wrong with a request, in the words of the caller's document.

use std::fmt;

/// A fault in one field of a request; the HTTP layer shows all of them at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// JSON pointer (RFC 6901) to the field in the caller's document.
    pub pointer: String,
    /// Stable, machine-readable name of the rule that was broken.
    pub code: &'static str,
    /// What is wrong and what would be right.
    pub detail: String,
}

impl Violation {
    pub fn new(pointer: impl Into<String>, code: &'static str, detail: impl fmt::Display) -> Self {
        Self { pointer: pointer.into(), code, detail: detail.to_string() }
    }
}

/// The pointer of a field (RFC 6901 §3: `~` and `/` in a key are escaped).
pub(crate) fn pointer(parent: &str, key: &str) -> String {
    format!("{parent}/{}", key.replace('~', "~0").replace('/', "~1"))
}

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

/// A pointer names a field for a person; a name of a megabyte would only be a megabyte of answer.
const LONGEST_KEY: usize = 200;

/// The pointer of a field (RFC 6901 §3: `~` and `/` in a key are escaped). Of a very long key only the beginning.
pub fn pointer(parent: &str, key: &str) -> String {
    let escaped = |key: &str| key.replace('~', "~0").replace('/', "~1");
    match key.char_indices().nth(LONGEST_KEY) {
        Some((end, _)) => format!("{parent}/{}…", escaped(&key[..end])),
        None => format!("{parent}/{}", escaped(key)),
    }
}

//! The faults of a request, in the terms of the caller's document.

use std::{fmt, ops::RangeInclusive, str::FromStr};

/// A fault in one field of a request. The HTTP layer reports all of them at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// JSON pointer (RFC 6901) to the field in the caller's document.
    pub pointer: String,
    /// Stable, machine-readable name of the violated rule.
    pub code: &'static str,
    /// What is wrong, and what would be right.
    pub detail: String,
}

impl Violation {
    pub fn new(pointer: impl Into<String>, code: &'static str, detail: impl fmt::Display) -> Self {
        Self { pointer: pointer.into(), code, detail: detail.to_string() }
    }
}

/// The faults of a request that were found so far.
#[derive(Default)]
pub(crate) struct Faults(pub(crate) Vec<Violation>);

impl Faults {
    pub(crate) fn add(&mut self, pointer: impl Into<String>, code: &'static str, detail: impl fmt::Display) {
        self.0.push(Violation::new(pointer, code, detail));
    }

    pub(crate) fn parse<T: FromStr<Err: fmt::Display>>(&mut self, pointer: &str, text: &str) -> Option<T> {
        text.parse().map_err(|error| self.add(pointer, "invalid", error)).ok()
    }

    /// Checks that a number is in its range, and returns it.
    pub(crate) fn within(&mut self, pointer: &str, value: u32, range: RangeInclusive<u32>) -> u32 {
        if !range.contains(&value) {
            let detail = format_args!("is {value}; must be from {} to {}", range.start(), range.end());
            self.add(pointer, "out_of_range", detail);
        }
        value
    }
}

/// A longer key is cut: the pointer goes into an error that a person reads.
const LONGEST_KEY: usize = 200;

/// The pointer of a field (RFC 6901 §3: `~` and `/` in a key are escaped).
pub fn pointer(parent: &str, key: &str) -> String {
    let escaped = |key: &str| key.replace('~', "~0").replace('/', "~1");
    match key.char_indices().nth(LONGEST_KEY) {
        Some((end, _)) => format!("{parent}/{}…", escaped(&key[..end])),
        None => format!("{parent}/{}", escaped(key)),
    }
}

//! The faults of a request, gathered while it is read.

use std::{fmt, str::FromStr};

use crate::violation::Violation;

/// Everything that is wrong so far, and the means to note one more fault.
#[derive(Default)]
pub(super) struct Faults(pub(super) Vec<Violation>);

impl Faults {
    pub(super) fn add(&mut self, pointer: impl Into<String>, code: &'static str, detail: impl fmt::Display) {
        self.0.push(Violation::new(pointer, code, detail));
    }

    pub(super) fn parse<T: FromStr<Err: fmt::Display>>(&mut self, pointer: &str, text: &str) -> Option<T> {
        text.parse().map_err(|error| self.add(pointer, "invalid", error)).ok()
    }
}

//! What was found in a log.

use serde::Deserialize;

use super::Text;

/// What was found.
#[derive(Debug, Deserialize)]
pub(crate) struct LogSearch {
    pub(crate) attempt: u64,
    pub(crate) hits: Vec<LogHit>,
    pub(crate) logs: Vec<SearchedLog>,
}

/// A match.
#[derive(Debug, Deserialize)]
pub(crate) struct LogHit {
    pub(crate) offset: u64,
    pub(crate) excerpt: Text,
    /// In characters, as the length.
    pub(crate) match_start: usize,
    pub(crate) match_length: usize,
}

/// How far a log was searched.
#[derive(Debug, Deserialize)]
pub(crate) struct SearchedLog {
    pub(crate) size: u64,
    pub(crate) to: u64,
    pub(crate) complete: bool,
}

impl LogHit {
    /// What stands before the match, the match, and what follows.
    pub(crate) fn parts(&self) -> [Text; 3] {
        let letters = || self.excerpt.raw().chars();
        let end = self.match_start.saturating_add(self.match_length);
        let parts: [String; 3] = [
            letters().take(self.match_start).collect(),
            letters().skip(self.match_start).take(self.match_length).collect(),
            letters().skip(end).collect(),
        ];
        parts.map(Text::new)
    }
}

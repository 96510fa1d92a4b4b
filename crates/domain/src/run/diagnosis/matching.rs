//! The search of the logs for the lines of the table.

use std::sync::LazyLock;

use regex::RegexSet;

use super::{Fault, RULES, Rule};
use crate::run::log_lines::printable;

/// How many lines from the end of each log are searched, as in TAO.
pub(super) const LINES: usize = 500;
/// A longer line is not a message.
const LINE_BYTES: usize = 4096;
/// How much of a matched line is stored, in characters.
const SHOWN: usize = 300;
/// Matches no line.
const NEVER: &str = r"[^\s\S]";

/// A rule that matches a line of a log.
pub(super) struct Matched {
    pub(super) rule: &'static Rule,
    pub(super) fault: Fault,
    /// The first line that it matches.
    pub(super) line: String,
    /// The place of that line's log.
    pub(super) place: usize,
}

/// The rules that match and judge, in the order of the logs.
pub(super) fn matches(logs: &[&[u8]]) -> Vec<Matched> {
    // The pattern of each rule, then the line of each rule that voids it.
    static JUDGING: LazyLock<Vec<(&Rule, Fault)>> =
        LazyLock::new(|| RULES.iter().filter_map(|rule| Some((*rule, rule.fault?))).collect());
    static ALL: LazyLock<RegexSet> = LazyLock::new(|| {
        let patterns = JUDGING.iter().map(|(rule, _)| rule.pattern);
        let voids = JUDGING.iter().map(|(rule, _)| rule.unless.unwrap_or(NEVER));
        // A test compiles each pattern, so this cannot fail.
        RegexSet::new(patterns.chain(voids)).unwrap_or_else(|_| RegexSet::empty())
    });
    let mut found: Vec<(usize, String, usize)> = Vec::new();
    let mut void = Vec::new();
    for (place, log) in logs.iter().enumerate() {
        let text = String::from_utf8_lossy(log);
        let lines: Vec<&str> = text.lines().collect();
        for line in &lines[lines.len().saturating_sub(LINES)..] {
            if line.len() > LINE_BYTES {
                continue;
            }
            for index in ALL.matches(line) {
                if index >= JUDGING.len() {
                    void.push(index - JUDGING.len());
                } else if found.iter().all(|(known, ..)| *known != index) {
                    found.push((index, printable(line.trim(), SHOWN), place));
                }
            }
        }
    }
    found.retain(|(index, ..)| !void.contains(index));
    found
        .into_iter()
        .map(|(index, line, place)| {
            let (rule, fault) = JUDGING[index];
            Matched { rule, fault, line, place }
        })
        .collect()
}

/// Whether the patterns of a rule are valid.
#[cfg(test)]
pub(super) fn compiles(rule: &Rule) -> bool {
    [rule.pattern, rule.unless.unwrap_or(NEVER)].iter().all(|pattern| regex::Regex::new(pattern).is_ok())
}

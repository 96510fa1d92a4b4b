//! Texts that try to run as scripts, each with its own number.

use serde_json::{Map, Value};

/// In groups. `NNN` is in the place of the number.
const TEXTS: &str = include_str!("payloads.json");

/// All of them. Each calls `alert` with its number, or asks `evil.example` for something.
pub(super) fn all() -> Vec<String> {
    let groups: Map<String, Value> = serde_json::from_str(TEXTS).unwrap();
    let texts =
        groups.values().flat_map(|group| group.as_array().unwrap()).map(|text| text.as_str().unwrap());
    let all: Vec<_> =
        texts.enumerate().map(|(number, text)| text.replace("NNN", &number.to_string())).collect();
    assert!(all.len() >= 200, "{}", all.len());
    all
}

/// As many texts in a row as a name has room for.
pub(super) fn groups(texts: &[String]) -> Vec<&[String]> {
    let (mut groups, mut rest) = (Vec::new(), texts);
    while !rest.is_empty() {
        let fits = (1..=rest.len()).take_while(|count| rest[..*count].join(" ").chars().count() < 200).last();
        let (group, others) = rest.split_at(fits.unwrap_or(1));
        groups.push(group);
        rest = others;
    }
    groups
}

/// On one line, for fields that allow no control characters.
pub(super) fn line(text: &str) -> String {
    text.chars().filter(|letter| !letter.is_control()).take(200).collect()
}

/// A path on a cluster.
pub(super) fn path(text: &str) -> String {
    format!("/data/x{}", line(text).replace(['/', '%', '\\'], "|"))
}

/// Without what no environment, script or address can hold.
pub(super) fn without(text: &str, unfit: fn(char) -> bool) -> String {
    text.chars().filter(|letter| !unfit(*letter)).collect()
}

/// Whether a page shows it as it is: its invisible characters have names there, and its ends no blanks.
pub(super) fn is_plain(text: &str) -> bool {
    text.trim() == text && !text.contains("  ") && text.chars().all(|letter| matches!(letter, ' '..='~'))
}

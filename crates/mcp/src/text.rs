//! Texts of others: names, messages, logs. An agent reads them as data, so nothing in them may hide, steer a terminal or have no end.

use std::{borrow::Cow, fmt::Write};

use loopback::is_odd;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A text of somebody else, of at most `MOST` bytes as JSON.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Text<const MOST: usize = 300>(String);

impl<const MOST: usize> Text<MOST> {
    pub(crate) fn new(text: &str) -> Self {
        // Far more than is shown, also if most of it is removed.
        let read = &text[..text.floor_char_boundary(MOST * 16)];
        Self(beginning(&harmless(read), MOST, text.len() - read.len()))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl<'de, const MOST: usize> Deserialize<'de> for Text<MOST> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(|text| Self::new(&text))
    }
}

impl<const MOST: usize> Serialize for Text<MOST> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<const MOST: usize> JsonSchema for Text<MOST> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Text".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string"})
    }
}

/// The first `MOST` entries of a list, and how many more there are.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct Few<T, const MOST: usize> {
    pub(crate) items: Vec<T>,
    /// How many entries are left out here.
    pub(crate) more: usize,
}

impl<T, const MOST: usize> From<Vec<T>> for Few<T, MOST> {
    fn from(mut items: Vec<T>) -> Self {
        let more = items.len().saturating_sub(MOST);
        items.truncate(MOST);
        Self { items, more }
    }
}

impl<'de, T: Deserialize<'de>, const MOST: usize> Deserialize<'de> for Few<T, MOST> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Vec::deserialize(deserializer).map(Self::from)
    }
}

/// The text without escape sequences, control characters, and characters that are invisible or turn others around.
pub(crate) fn harmless(text: &str) -> String {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let plain = anstream::adapter::strip_str(&text).to_string();
    plain.chars().filter(|letter| !is_odd(*letter)).collect()
}

/// How many bytes a character has in JSON.
fn cost(letter: char) -> usize {
    match letter {
        '"' | '\\' | '\n' | '\t' => 2,
        letter => letter.len_utf8(),
    }
}

/// The beginning of a text after which there are further bytes.
fn beginning(text: &str, most: usize, further: usize) -> String {
    let letters = text.char_indices().map(|(at, letter)| (at, cost(letter)));
    let end = end_of(letters, most).unwrap_or(text.len());
    let more = text.len() - end + further;
    let mut cut = text[..end].to_owned();
    if more > 0 {
        // Writing to a string cannot fail.
        let _ = write!(cut, "… ({more} more bytes)");
    }
    cut
}

/// The end of a text that has at most so many bytes as JSON, and how many bytes are left out before it.
pub(crate) fn ending(text: &str, most: usize) -> (&str, usize) {
    let backwards = text.char_indices().rev().map(|(at, letter)| (at + letter.len_utf8(), cost(letter)));
    let start = end_of(backwards, most).unwrap_or(0);
    (&text[start..], start)
}

/// Where the characters are more than so many bytes.
fn end_of(letters: impl Iterator<Item = (usize, usize)>, most: usize) -> Option<usize> {
    let mut sum = 0;
    letters
        .into_iter()
        .find(|(_, cost)| {
            sum += cost;
            sum > most
        })
        .map(|(at, _)| at)
}

#[cfg(test)]
mod tests {
    use test_case::test_case;

    use super::*;

    #[test_case("\u{1b}[31mred\u{1b}[0m" => "red"; "colours")]
    #[test_case("\u{1b}]0;title\u{7}x" => "x"; "a title")]
    #[test_case("a\u{0}b\u{8}c\u{7f}\u{9b}d" => "abcd"; "control characters")]
    #[test_case("10 %\r20 %\r\nend" => "10 %\n20 %\nend"; "lines that are drawn again")]
    #[test_case("a\u{202e}b\u{e0041}\u{200b}c" => "abc"; "hidden and turned characters")]
    #[test_case("größer ↑ \t\"x\"" => "größer ↑ \t\"x\""; "all others stay")]
    fn a_harmless_text(text: &str) -> String {
        harmless(text)
    }

    #[test]
    fn a_text_has_a_limit_and_says_what_is_missing() {
        assert_eq!(Text::<4>::new("äöü").as_str(), "äö… (2 more bytes)");
        assert_eq!(Text::<4>::new("\"\"\"").as_str(), "\"\"… (1 more bytes)");
        assert_eq!(Text::<4>::new("abcd").as_str(), "abcd");
        assert_eq!(ending("äöü", 4), ("öü", 2));
        assert_eq!(ending("abc", 4), ("abc", 0));
    }

    #[test]
    fn a_list_has_a_limit_and_says_what_is_missing() {
        let few: Few<u32, 2> = serde_json::from_str("[1, 2, 3]").unwrap();
        assert_eq!(serde_json::to_value(&few).unwrap(), serde_json::json!({"items": [1, 2], "more": 1}));
    }
}

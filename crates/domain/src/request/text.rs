//! Short texts from callers, validated on arrival.

use serde_with::{DeserializeFromStr, SerializeDisplay};
use slurm::text_type;

/// Why a text was rejected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidText(String);

impl InvalidText {
    fn new(rule: &str, text: &str) -> Self {
        Self(format!("{rule}; got {}", slurm::shown(text)))
    }
}

/// Whether a text is only space, by `\s` of the patterns in the API's schemas (ECMA-262), which leaves out U+0085.
pub(crate) fn is_blank(text: &str) -> bool {
    text.chars().all(|c| c.is_whitespace() && c != '\u{85}')
}

/// One plain word, such as a network architecture or an action. It becomes an argument of the container's command line
/// and a filter of the job list.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, SerializeDisplay, DeserializeFromStr)]
pub struct Word(String);

text_type!(Word, InvalidText);

impl Word {
    fn check(text: &str) -> Result<String, InvalidText> {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        let first = text.chars().next();
        let begins = first.is_some_and(|c| c.is_ascii_alphanumeric());
        let is_word = begins && text.len() <= 100 && text.chars().all(plain);
        let rule = "must be 1 to 100 letters, digits, `_`, `-` or `.`, starting with a letter or a digit";
        is_word.then(|| text.to_owned()).ok_or_else(|| InvalidText::new(rule, text))
    }
}

/// A text for people: a job's name, or the key of a label. It never reaches a shell or an `#SBATCH` line.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, SerializeDisplay, DeserializeFromStr)]
pub struct Label(String);

text_type!(Label, InvalidText);

impl Label {
    fn check(text: &str) -> Result<String, InvalidText> {
        let is_label = (1..=500).contains(&text.chars().count()) && !text.chars().any(char::is_control);
        let rule = "must be 1 to 500 characters without control characters";
        is_label.then(|| text.to_owned()).ok_or_else(|| InvalidText::new(rule, text))
    }
}

#[cfg(test)]
mod tests {
    use test_case::test_case;

    use super::*;

    #[test]
    fn a_text_is_blank_as_the_schemas_say() {
        assert!(is_blank("") && is_blank(" \n\u{a0}\u{2028}"));
        assert!(!is_blank("\u{85}") && !is_blank(" x"));
    }

    #[test_case("classification_pyt", true)]
    #[test_case("cosmos-rl", true)]
    #[test_case("", false ; "empty")]
    #[test_case("-x", false ; "an option")]
    #[test_case("a b", false ; "two words")]
    #[test_case("a\nb", false ; "two lines")]
    #[test_case("é", false ; "not ASCII")]
    fn a_word_is_one_plain_word(text: &str, accepted: bool) {
        assert_eq!(text.parse::<Word>().is_ok(), accepted);
    }

    #[test_case("Größe, 日本", true)]
    #[test_case("a\0b", false ; "NUL")]
    #[test_case("a\nb", false ; "newline")]
    fn a_label_is_any_text_on_one_line(text: &str, accepted: bool) {
        assert_eq!(text.parse::<Label>().is_ok(), accepted);
    }
}

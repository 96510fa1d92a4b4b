//! Free texts in options. The script quotes them for sbatch.

use crate::names::text_type::word_type;

word_type!(
    /// The value of an option: 1 to 1,000 bytes without control characters.
    OptionText, "option value", "1 to 1000 bytes without newlines and control characters", max 1000,
    |text| !text.is_empty() && !text.chars().any(|c| c.is_control() || is_line_end(c))
);

/// Unicode's own line ends: harmless for sbatch, but confusing in a script that a person reads.
fn is_line_end(c: char) -> bool {
    matches!(c, '\u{2028}' | '\u{2029}')
}

#[cfg(test)]
mod tests {
    use test_case::test_case;

    use super::*;

    #[test_case("idle-gpu exempt" => true)]
    #[test_case(r#"{"reason": "it's #1"}"# => true ; "JSON")]
    #[test_case("größer" => true ; "not ASCII")]
    #[test_case("" => false)]
    #[test_case("a\nb" => false ; "two lines")]
    #[test_case("a\u{2028}b" => false ; "two lines in Unicode")]
    #[test_case("a\0b" => false ; "NUL")]
    #[test_case("\u{1b}[2J" => false ; "an escape sequence")]
    #[test_case(&"a".repeat(1001) => false ; "too long")]
    fn a_text_is_one_line(text: &str) -> bool {
        text.parse::<OptionText>().is_ok()
    }
}

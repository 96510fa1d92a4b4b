//! Sentences that end with a text of somebody else.

/// The text with a full stop, if it has no mark at its end: another sentence may follow.
pub(crate) fn sentence(text: &str) -> String {
    let text = text.trim_end();
    if text.ends_with(['.', '!', '?', '\u{2026}']) { text.to_owned() } else { format!("{text}.") }
}

#[cfg(test)]
mod tests {
    use test_case::test_case;

    use super::*;

    #[test_case("it broke" => "it broke."; "a text without a stop")]
    #[test_case("It broke.\n" => "It broke."; "a sentence")]
    #[test_case("(see the log)" => "(see the log)."; "a parenthesis")]
    #[test_case("Why?" => "Why?"; "a question")]
    fn a_sentence_has_one_mark_at_its_end(text: &str) -> String {
        sentence(text)
    }
}

//! What is shown of a line around a match.

use std::sync::LazyLock;

use regex::Regex;

/// The most characters.
const MOST: usize = 300;
/// How many of them are before the match, if there are enough after it.
const BEFORE: usize = 100;

/// A part of a line, without colours and control characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogExcerpt {
    /// At most 300 characters.
    pub text: String,
    /// The characters before the match.
    pub match_start: usize,
    /// The characters of the match.
    pub match_length: usize,
}

impl LogExcerpt {
    /// `window` has the bytes around the match, which begins at `start` in it and has `length` bytes. A carriage return ends a line too.
    pub fn new(window: &[u8], start: usize, length: usize) -> Self {
        let start = start.min(window.len());
        let (before, rest) = window.split_at(start);
        let (matched, after) = rest.split_at(length.min(rest.len()));
        let is_end = |byte: &u8| matches!(byte, b'\n' | b'\r');
        let begin = before.iter().rposition(is_end);
        let (before, after) =
            (&before[begin.map_or(0, |at| at + 1)..], after.split(is_end).next().unwrap_or_default());
        let mut before = plain(before);
        if begin.is_none() {
            // The window begins within a character.
            before = before.trim_start_matches('\u{fffd}').to_owned();
        }
        let matched: String = plain(matched).chars().take(MOST).collect();
        let (after, shown) = (plain(after), matched.chars().count());
        let left = MOST - shown;
        let (has_before, has_after) = (before.chars().count(), after.chars().count());
        let before_shown = has_before.min(BEFORE.min(left).max(left.saturating_sub(has_after)));
        let lead = before.chars().skip(has_before - before_shown);
        let trail = after.chars().take(left - before_shown);
        let text = lead.chain(matched.chars()).chain(trail).collect();
        Self { text, match_start: before_shown, match_length: shown }
    }
}

/// Text without escape sequences and control characters. A tab is a space.
fn plain(bytes: &[u8]) -> String {
    static SEQUENCES: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r"\x1b\[[0-9;:?]*[ -/]*[@-~]").ok());
    let text = String::from_utf8_lossy(bytes);
    let text = SEQUENCES.as_ref().map_or(text.clone(), |sequences| sequences.replace_all(&text, ""));
    let letters = text.chars().map(|letter| if letter == '\t' { ' ' } else { letter });
    letters.filter(|letter| !letter.is_control()).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use test_case::test_case;

    use super::*;

    fn around(text: &str, found: &str) -> (String, usize, usize) {
        let excerpt = LogExcerpt::new(text.as_bytes(), text.find(found).unwrap(), found.len());
        (excerpt.text, excerpt.match_start, excerpt.match_length)
    }

    #[test_case("before\nan error here\nafter", "error" => ("an error here".to_owned(), 3, 5); "a line")]
    #[test_case(" 1%\r 2% error\r 3%", "error" => (" 2% error".to_owned(), 4, 5); "a bar")]
    #[test_case("\u{1b}[1;31mred\u{1b}[0m\terror\u{7}!", "error" => ("red error!".to_owned(), 4, 5); "colours")]
    #[test_case("é日 error", "error" => ("é日 error".to_owned(), 3, 5); "characters, not bytes")]
    fn an_excerpt_is_the_line_around_the_match(text: &str, found: &str) -> (String, usize, usize) {
        around(text, found)
    }

    #[test]
    fn a_long_line_is_shown_around_the_match_and_not_from_its_beginning() {
        let (x, y) = ("x".repeat(1000), "y".repeat(1000));
        let middle = around(&format!("{x}match{y}"), "match");
        assert_eq!((middle.0.len(), middle.1, middle.2), (300, 100, 5));
        assert_eq!(around(&format!("{x}match"), "match").1, 295);
        assert_eq!(around(&format!("match{y}"), "match").0.len(), 300);
        let long = around(&format!("{x}{}", "z".repeat(1000)), &"z".repeat(1000));
        assert_eq!((long.0, long.1, long.2), ("z".repeat(300), 0, 300));
    }

    #[test]
    fn a_window_that_begins_within_a_character_shows_none_of_it() {
        let excerpt = LogExcerpt::new(b"\xa9\xb8 match", 3, 5);
        assert_eq!((excerpt.text.as_str(), excerpt.match_start), (" match", 1));
    }

    proptest! {
        #[test]
        fn no_bytes_and_no_place_break_it(window in any::<Vec<u8>>(), start in 0_usize..300, length in any::<usize>()) {
            let excerpt = LogExcerpt::new(&window, start, length);
            prop_assert!(excerpt.text.chars().count() <= MOST);
            prop_assert!(excerpt.match_start + excerpt.match_length <= excerpt.text.chars().count());
        }
    }
}

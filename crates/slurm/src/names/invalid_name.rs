//! The error of the newtypes: what was rejected, and what is allowed.

/// How many characters of a rejected text an error shows. The text is untrusted and may be long.
const SHOWN: usize = 40;

/// A text that its type does not allow.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid {kind}: {reason}")]
pub struct InvalidName {
    /// What the text should have been: for instance, `job name`.
    pub kind: &'static str,
    /// What is allowed, and the beginning of the given text, escaped.
    pub reason: String,
}

impl InvalidName {
    pub(crate) fn new(kind: &'static str, allowed: &str, text: &str) -> Self {
        Self { kind, reason: format!("{allowed}; got {}", shown(text)) }
    }
}

/// The beginning of `text` in quotes, with all characters escaped that are not printable ASCII.
pub fn shown(text: &str) -> String {
    let mut out = String::from("\"");
    let mut room = SHOWN;
    for character in text.chars() {
        let escaped = character.escape_default();
        if escaped.len() > room {
            out.push_str("\"…");
            return out;
        }
        room -= escaped.len();
        out.extend(escaped);
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_shows_at_most_forty_characters_of_a_hostile_text() {
        let error = InvalidName::new("job name", "letters", &"\u{202e}\n".repeat(1_000_000));
        assert!(error.to_string().len() < 90, "{error}");
        assert!(error.to_string().is_ascii() || error.to_string().ends_with('…'), "{error}");
        assert!(!error.to_string().contains('\n'));
    }

    #[test]
    fn a_short_text_is_shown_whole() {
        assert_eq!(shown("a\"b"), r#""a\"b""#);
    }
}

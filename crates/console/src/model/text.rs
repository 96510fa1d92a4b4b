//! Texts of others: names, labels, messages, scripts, logs. They are hostile until they are rendered.

use std::fmt;

use loopback::is_odd;
use maud::{Markup, PreEscaped, Render, html};
use serde::{Deserialize, Serialize};

/// What a text may have in a page. The rest is left out, and the page says so.
const SHOWN: usize = 4096;
/// The same for whole files, such as scripts.
const SHOWN_OF_FILE: usize = 512 * 1024;

/// A text of somebody else. It renders as text: escaped, in a direction of its own, and with each character that is invisible or
/// turns others around by its number.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Text(String);

impl Text {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself, to compare it or to send it back to the API.
    pub(crate) fn raw(&self) -> &str {
        &self.0
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// For places that take no elements, such as titles: with `�` for such characters, and on one line.
    pub(crate) fn plain(&self) -> String {
        let shown = self.0.chars().take(SHOWN);
        shown.map(|letter| if is_odd(letter) || letter.is_control() { '\u{fffd}' } else { letter }).collect()
    }

    /// A whole file, for a `pre`.
    pub(crate) fn file(&self) -> Markup {
        visible(&self.0, SHOWN_OF_FILE)
    }
}

impl Render for Text {
    fn render(&self) -> Markup {
        html! { bdi { (visible(&self.0, SHOWN)) } }
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

/// The text with its odd characters by their numbers, at most `most` bytes of it.
pub(crate) fn visible(text: &str, most: usize) -> Markup {
    let end = text.floor_char_boundary(most);
    let mut out = String::with_capacity(end + 64);
    push_visible(&mut out, &text[..end]);
    if end < text.len() {
        out.push_str(&html! { span.odd { "… " (text.len() - end) " more bytes" } }.into_string());
    }
    PreEscaped(out)
}

/// Appends the text as HTML.
pub(crate) fn push_visible(out: &mut String, text: &str) {
    for letter in text.chars() {
        match letter {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            odd if is_odd(odd) => {
                out.push_str(&html! { span.odd { (name(odd)) } }.into_string());
            }
            letter => out.push(letter),
        }
    }
}

/// Control characters have pictures; others have only a number.
fn name(odd: char) -> String {
    match u32::from(odd) {
        code @ 0..0x20 => char::from_u32(0x2400 + code).into_iter().collect(),
        0x7f => "\u{2421}".to_owned(),
        code => format!("U+{code:04X}"),
    }
}

#[cfg(test)]
mod tests {
    use test_case::test_case;

    use super::*;

    #[test_case("<script>alert(1)</script>" => "<bdi>&lt;script&gt;alert(1)&lt;/script&gt;</bdi>"; "HTML")]
    #[test_case("\" onload='x' &amp;" => "<bdi>&quot; onload=&#39;x&#39; &amp;amp;</bdi>"; "an attribute")]
    #[test_case("a\u{202e}b" => "<bdi>a<span class=\"odd\">U+202E</span>b</bdi>"; "an override of direction")]
    #[test_case("\u{1b}[31m\u{7f}\r" => "<bdi><span class=\"odd\">␛</span>[31m<span class=\"odd\">␡</span><span class=\"odd\">␍</span></bdi>"; "control characters")]
    #[test_case("مرحبا" => "<bdi>مرحبا</bdi>"; "a language written from right to left")]
    #[test_case("a\n\tb" => "<bdi>a\n\tb</bdi>"; "lines")]
    fn a_text_is_shown_as_text(text: &str) -> String {
        Text::from(text).render().into_string()
    }

    #[test]
    fn a_text_without_end_is_cut_between_characters() {
        let long = Text::new("é".repeat(SHOWN));
        let shown = long.render().into_string();
        assert!(shown.len() < SHOWN + 100, "{}", shown.len());
        assert!(shown.ends_with("… 4096 more bytes</span></bdi>"), "{}", &shown[shown.len() - 60..]);
        assert_eq!(Text::from("a\u{202e}\n\u{0}").plain(), "a\u{fffd}\u{fffd}\u{fffd}");
    }
}

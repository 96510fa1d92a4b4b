//! Text of other people on this person's terminal: shown, never obeyed.

/// The text with every control character but newline and tab made visible. Jobs write what they like into their
/// logs, and a terminal does what an escape sequence says.
pub(crate) fn printable(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let mut shown = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\n' | '\t' => shown.push(character),
            // The line end of another system.
            '\r' if characters.peek() == Some(&'\n') => {}
            other => shown.push(visible(other)),
        }
    }
    shown
}

/// The same for a text that has to stay on its line.
pub(crate) fn on_one_line(text: &str) -> String {
    text.chars().map(visible).collect()
}

/// A control character's picture (Unicode's "Control Pictures"); any other character itself.
fn visible(character: char) -> char {
    match character {
        '\0'..='\u{1f}' => {
            char::from_u32(0x2400 + u32::from(character)).unwrap_or(char::REPLACEMENT_CHARACTER)
        }
        '\u{7f}' => '\u{2421}',
        // The second set of controls, and what turns the direction of the text around.
        '\u{80}'..='\u{9f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
            char::REPLACEMENT_CHARACTER
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_tabs_stay_and_escapes_become_visible() {
        assert_eq!(printable(b"a\tb\r\nc\x1b[31mred\x07\n"), "a\tb\nc\u{241b}[31mred\u{2407}\n");
        assert_eq!(printable("50%\r100%".as_bytes()), "50%\u{240d}100%");
        assert_eq!(printable("Größe 日本 ✓".as_bytes()), "Größe 日本 ✓");
    }

    #[test]
    fn no_control_character_passes_whatever_comes() {
        let all: Vec<u8> = (0..=255).collect();
        for shown in [printable(&all), printable("\u{85}\u{9b}31m\u{202e}".as_bytes())] {
            assert!(shown.chars().all(|c| !c.is_control() || c == '\n' || c == '\t'), "{shown:?}");
        }
        assert!(!on_one_line("a\nb\u{9b}").chars().any(char::is_control));
    }
}

//! Characters that hide in a text.

/// Whether the character is invisible, or changes how others are shown.
pub fn is_odd(letter: char) -> bool {
    match letter {
        '\n' | '\t' => false,
        '\u{61c}'
        | '\u{feff}'
        | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' => true,
        // Marks between lines, and tags.
        letter => {
            matches!(letter, '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}') || letter.is_control()
        }
    }
}

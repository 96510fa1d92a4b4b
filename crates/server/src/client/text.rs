//! Text from jobs and from the service, safe to print on a terminal; tables.

/// The text with every control character except newline and tab replaced by a visible one: a terminal would execute the
/// escape sequences in a log.
pub(crate) fn printable(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let mut shown = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\n' | '\t' => shown.push(character),
            // A Windows line end.
            '\r' if characters.peek() == Some(&'\n') => {}
            other => shown.push(visible(other)),
        }
    }
    shown
}

/// As [`printable`], with newlines and tabs replaced, too.
pub(crate) fn on_one_line(text: &str) -> String {
    text.chars().map(visible).collect()
}

/// A control character's symbol from Unicode's "Control Pictures" block; any other character unchanged.
fn visible(character: char) -> char {
    match character {
        '\0'..='\u{1f}' => {
            char::from_u32(0x2400 + u32::from(character)).unwrap_or(char::REPLACEMENT_CHARACTER)
        }
        '\u{7f}' => '\u{2421}',
        // C1 controls, and characters that reverse the direction of text.
        '\u{80}'..='\u{9f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
            char::REPLACEMENT_CHARACTER
        }
        other => other,
    }
}

/// A timestamp of the API to the second, in UTC.
pub(crate) fn seconds(timestamp: &str) -> String {
    timestamp.get(..19).unwrap_or(timestamp).replace('T', " ")
}

/// Columns as wide as their widest cell, under a line of headers.
pub(crate) fn table<const N: usize>(
    headers: [&str; N],
    rows: impl IntoIterator<Item = [String; N]>,
) -> String {
    let rows = std::iter::once(headers.map(str::to_owned)).chain(rows);
    let rows: Vec<_> = rows.map(|row| row.map(|cell| on_one_line(&cell))).collect();
    let widths: [usize; N] = std::array::from_fn(|column| {
        rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default()
    });
    let line = |row: &[String; N]| {
        let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}  "));
        format!("{}\n", cells.collect::<String>().trim_end())
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let job = |json: &str| serde_json::from_str::<super::super::StatusDocument>(json).unwrap().row();
        let jobs = [
            job(
                r#"{"id": "a", "status": "Canceling", "cluster": "c", "created_on": "2026-11-21T03:04:05.123Z", "name": "n"}"#,
            ),
            job(r#"{"id": "bcd", "status": "Done", "cluster": "c", "name": null}"#),
        ];
        let expected = "\
ID   STATUS     CLUSTER  SLURM JOB  CREATED              PROGRESS  NAME
a    Canceling  c                   2026-11-21 03:04:05            n
bcd  Done       c
";
        let headers = ["ID", "STATUS", "CLUSTER", "SLURM JOB", "CREATED", "PROGRESS", "NAME"];
        assert_eq!(table(headers, jobs), expected);
    }

    #[test]
    fn lines_and_tabs_stay_and_escapes_become_visible() {
        assert_eq!(printable(b"a\tb\r\nc\x1b[31mred\x07\n"), "a\tb\nc\u{241b}[31mred\u{2407}\n");
        assert_eq!(printable("50%\r100%".as_bytes()), "50%\u{240d}100%");
        assert_eq!(printable("Größe 日本 ✓".as_bytes()), "Größe 日本 ✓");
    }

    #[test]
    fn no_control_character_is_printed() {
        let all: Vec<u8> = (0..=255).collect();
        for shown in [printable(&all), printable("\u{85}\u{9b}31m\u{202e}".as_bytes())] {
            assert!(shown.chars().all(|c| !c.is_control() || c == '\n' || c == '\t'), "{shown:?}");
        }
        assert!(!on_one_line("a\nb\u{9b}").chars().any(char::is_control));
    }
}

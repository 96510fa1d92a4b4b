//! Text from jobs and from the service, safe to print on a terminal; tables and colours.

use anstyle::{AnsiColor, Style};
use chrono::{DateTime, Utc};

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

/// The first line of a message, without a last sentence that only introduces the lines below it.
pub(crate) fn headline(message: &str) -> &str {
    let Some((first, _)) = message.split_once('\n') else { return message };
    let end = if first.trim_end().ends_with(':') { first.rfind(". ").map(|at| at + 1) } else { None };
    &first[..end.unwrap_or(first.len())]
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

/// How long ago a timestamp of the API was, in its largest unit: `12s`, `5m`, `3h`, `9d`.
pub(crate) fn age(timestamp: &str, now: DateTime<Utc>) -> String {
    let Ok(then) = timestamp.parse::<DateTime<Utc>>() else { return String::new() };
    let seconds = (now - then).num_seconds().max(0);
    match seconds {
        0..120 => format!("{seconds}s"),
        120..7_200 => format!("{}m", seconds / 60),
        7_200..172_800 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// The word in the colour of the state that it names. What is no terminal gets it without.
pub(crate) fn colored(word: &str) -> String {
    let color = match word.to_ascii_lowercase().as_str() {
        "done" | "pass" | "healthy" | "up" => AnsiColor::Green,
        "error" | "fail" | "unusable" | "down" => AnsiColor::Red,
        "running" | "started" => AnsiColor::Cyan,
        "canceled" | "canceling" | "paused" | "pausing" | "warn" | "retried" => AnsiColor::Yellow,
        _ => return word.to_owned(),
    };
    let style = Style::new().fg_color(Some(color.into()));
    format!("{style}{word}{style:#}")
}

/// Columns as wide as their widest cell, under a line of headers. Statuses have colours.
pub(crate) fn table<const N: usize>(
    headers: [&str; N],
    rows: impl IntoIterator<Item = [String; N]>,
) -> String {
    let rows = std::iter::once(headers.map(str::to_owned)).chain(rows);
    let rows: Vec<_> = rows.map(|row| row.map(|cell| on_one_line(&cell))).collect();
    let widths: [usize; N] = std::array::from_fn(|column| {
        rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default()
    });
    let has_states = headers.map(|header| ["STATUS", "STATE", "OUTCOME"].contains(&header));
    let line = |row: &[String; N]| {
        let last = row.iter().rposition(|cell| !cell.is_empty()).unwrap_or_default();
        let cells = row.iter().take(last + 1).enumerate().map(|(column, cell)| {
            let padding = if column == last { 0 } else { widths[column] - cell.chars().count() + 2 };
            let cell = if has_states[column] { colored(cell) } else { cell.clone() };
            format!("{cell}{:padding$}", "")
        });
        cells.collect::<String>() + "\n"
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use anstream::adapter::strip_str;

    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows =
            [["a", "Canceling", ""], ["bcd", "Done", "x"], ["e", "", ""]].map(|row| row.map(str::to_owned));
        let expected = "\
ID   STATUS     NAME
a    Canceling
bcd  Done       x
e
";
        let colored = table(["ID", "STATUS", "NAME"], rows);
        assert_eq!(strip_str(&colored).to_string(), expected);
        assert!(colored.contains("\u{1b}[32mDone\u{1b}[0m  "), "{colored:?}");
    }

    #[test]
    fn a_headline_introduces_nothing() {
        assert_eq!(headline("It failed. Last lines of main.err:\nboom"), "It failed.");
        assert_eq!(headline("It failed:\nboom"), "It failed:");
        assert_eq!(headline("Epoch 3 of 6: a. b:"), "Epoch 3 of 6: a. b:");
        assert_eq!(headline("One.\nTwo."), "One.");
    }

    #[test]
    fn an_age_has_its_largest_unit() {
        let age = |time: &str| age(time, "2026-11-28T12:00:00Z".parse().unwrap());
        assert_eq!(age("2026-11-28T11:58:01Z"), "119s");
        assert_eq!(age("2026-11-28T11:00:00Z"), "60m");
        assert_eq!(age("2026-11-27T12:00:00Z"), "24h");
        assert_eq!(age("2026-10-28T12:00:00Z"), "31d");
        assert_eq!(age("2026-11-28T12:00:05Z"), "0s");
        assert_eq!(age("?"), "");
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

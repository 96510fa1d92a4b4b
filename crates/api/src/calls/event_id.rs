//! The id of an event: its position among the events of all jobs.

use std::{fmt, str::FromStr};

/// Opaque to callers, except that later events have greater ids when compared as texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct EventId(pub(crate) u64);

/// The text is not an event id.
#[derive(Debug)]
pub(crate) struct NoEventId;

const DIGITS: usize = 16;

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:0width$x}", self.0, width = DIGITS)
    }
}

impl FromStr for EventId {
    type Err = NoEventId;

    fn from_str(text: &str) -> Result<Self, NoEventId> {
        let ours = text.len() == DIGITS && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        let number = ours.then(|| u64::from_str_radix(text, 16).ok()).flatten();
        // Positions are signed in the database.
        number.filter(|number| i64::try_from(*number).is_ok()).map(Self).ok_or(NoEventId)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_reads_back_and_later_ones_are_greater_texts() {
        let ids: Vec<String> =
            [0, 9, 10, 255, 256, 1 << 40].map(|number| EventId(number).to_string()).to_vec();
        assert!(ids.is_sorted());
        for id in ids {
            assert_eq!(id.parse::<EventId>().unwrap().to_string(), id);
        }
    }

    #[test]
    fn a_foreign_id_is_refused() {
        for text in ["", "1", "00000000000000001", "000000000000000G", "+000000000000001", "ffffffffffffffff"]
        {
            assert!(text.parse::<EventId>().is_err(), "{text}");
        }
    }
}

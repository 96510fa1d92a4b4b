//! Where the next page of a timeline begins.

use std::{fmt, str::FromStr};

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use chrono::DateTime;
use persistence::TimelinePlace;

/// Opaque to callers: base64url of the microseconds and the id of the last entry of the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place(pub(super) TimelinePlace);

/// A text that is no place.
#[derive(Debug)]
pub(super) struct InvalidPlace;

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (began, id) = self.0;
        let bytes = [began.timestamp_micros().to_be_bytes(), id.to_be_bytes()].concat();
        f.write_str(&BASE64_URL_SAFE_NO_PAD.encode(bytes))
    }
}

impl FromStr for Place {
    type Err = InvalidPlace;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(text).map_err(|_| InvalidPlace)?;
        let (micros, id) = bytes.split_first_chunk::<8>().ok_or(InvalidPlace)?;
        let micros = i64::from_be_bytes(*micros);
        // Postgres knows no time before 4713 BC.
        let began = DateTime::from_timestamp_micros(micros).filter(|_| micros >= 0).ok_or(InvalidPlace)?;
        let id = i64::from_be_bytes(id.try_into().map_err(|_| InvalidPlace)?);
        Ok(Self((began, id)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_reads_back_to_the_microsecond() {
        let place = Place((DateTime::from_timestamp_micros(1_700_000_000_123_456).unwrap(), 7));
        assert_eq!(place.to_string().parse::<Place>().unwrap(), place);
    }

    #[test]
    fn what_we_did_not_write_is_refused() {
        let before_christ = BASE64_URL_SAFE_NO_PAD.encode([0xff; 16]);
        for text in ["", "x", "!!!!", "AAAA", &"A".repeat(64), &before_christ] {
            assert!(text.parse::<Place>().is_err(), "{text}");
        }
    }
}

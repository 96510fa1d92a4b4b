//! Page tokens: the position of the last entry of a page, so that new entries do not shift the next one.

use std::{fmt, str::FromStr};

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use chrono::DateTime;
use domain::Timestamp;

/// A position in a list by time. Opaque to callers: base64url of the time in microseconds and the entry's id of `N` bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PageToken<const N: usize> {
    pub(crate) at: Timestamp,
    pub(crate) id: [u8; N],
}

/// The text is not a page token.
#[derive(Debug)]
pub(crate) struct InvalidPageToken;

impl<const N: usize> fmt::Display for PageToken<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = [self.at.timestamp_micros().to_be_bytes().as_slice(), &self.id].concat();
        f.write_str(&BASE64_URL_SAFE_NO_PAD.encode(bytes))
    }
}

impl<const N: usize> FromStr for PageToken<N> {
    type Err = InvalidPageToken;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(text).map_err(|_| InvalidPageToken)?;
        let (micros, id) = bytes.split_first_chunk::<8>().ok_or(InvalidPageToken)?;
        let micros = i64::from_be_bytes(*micros);
        // Postgres knows no time before 4713 BC, and no entry is older than 1970.
        let at = DateTime::from_timestamp_micros(micros).filter(|_| micros >= 0).ok_or(InvalidPageToken)?;
        Ok(Self { at, id: id.try_into().map_err(|_| InvalidPageToken)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reads_back<const N: usize>(id: [u8; N]) {
        let at = DateTime::from_timestamp_micros(1_700_000_000_123_456).unwrap();
        let token = PageToken { at, id };
        assert_eq!(token.to_string().parse::<PageToken<N>>().unwrap(), token);
    }

    fn is_refused<const N: usize>() {
        let before_christ = BASE64_URL_SAFE_NO_PAD.encode([[0xff; 8].as_slice(), &[0; N]].concat());
        for text in ["", "x", "!!!!", "AAAA", &"A".repeat(64), &before_christ] {
            assert!(text.parse::<PageToken<N>>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_token_reads_back_to_the_microsecond() {
        reads_back(7_u128.to_be_bytes());
    }

    #[test]
    fn a_place_in_a_timeline_reads_back_to_the_microsecond() {
        reads_back(7_i64.to_be_bytes());
    }

    #[test]
    fn a_foreign_token_is_refused() {
        is_refused::<16>();
    }

    #[test]
    fn a_foreign_place_in_a_timeline_is_refused() {
        is_refused::<8>();
    }
}

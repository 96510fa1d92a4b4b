//! Where the next page begins: behind the last job of this one, whatever is added in the meantime.

use std::{fmt, str::FromStr};

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use chrono::DateTime;
use domain::{JobId, Timestamp};
use uuid::Uuid;

/// The place of a job in the order of the list. Opaque to callers: base64url of its microseconds and id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PageToken {
    pub(super) created_at: Timestamp,
    pub(super) id: JobId,
}

/// A text that is no page token.
#[derive(Debug)]
pub(super) struct InvalidPageToken;

impl fmt::Display for PageToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut bytes = self.created_at.timestamp_micros().to_be_bytes().to_vec();
        bytes.extend(self.id.get().as_bytes());
        f.write_str(&BASE64_URL_SAFE_NO_PAD.encode(bytes))
    }
}

impl FromStr for PageToken {
    type Err = InvalidPageToken;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(text).map_err(|_| InvalidPageToken)?;
        let (micros, id) = bytes.split_first_chunk::<8>().ok_or(InvalidPageToken)?;
        let micros = i64::from_be_bytes(*micros);
        // Postgres knows no time before 4713 BC; no job is older than this century anyway.
        let created_at =
            DateTime::from_timestamp_micros(micros).filter(|_| micros >= 0).ok_or(InvalidPageToken)?;
        let id = Uuid::from_slice(id).map_err(|_| InvalidPageToken)?;
        Ok(Self { created_at, id: JobId::new(id) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_reads_back_to_the_microsecond() {
        let created_at = DateTime::from_timestamp_micros(1_700_000_000_123_456).unwrap();
        let token = PageToken { created_at, id: JobId::new(Uuid::from_u128(7)) };
        assert_eq!(token.to_string().parse::<PageToken>().unwrap(), token);
    }

    #[test]
    fn what_we_did_not_write_is_refused() {
        let before_christ = BASE64_URL_SAFE_NO_PAD.encode([[0xff; 8].as_slice(), &[0; 16]].concat());
        for text in ["", "x", "!!!!", "AAAA", &"A".repeat(64), &before_christ] {
            assert!(text.parse::<PageToken>().is_err(), "{text}");
        }
    }
}

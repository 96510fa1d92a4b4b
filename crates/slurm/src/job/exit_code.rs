//! The exit code and signal of a job in accounting.

use std::{fmt, str::FromStr};

use serde_with::{DeserializeFromStr, SerializeDisplay};

use crate::{InvalidName, number::digits};

/// `code:signal` as sacct prints it: `3:0` is exit code 3, `0:9` is SIGKILL.
///
/// Some signals have other meanings: 53 is a log file that could not be opened, 54 a failed prolog, 125 out of memory
/// (Slurm 22.05 and 24.11).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, SerializeDisplay, DeserializeFromStr)]
pub struct ExitCode {
    /// The exit code of the batch script.
    pub code: u8,
    /// The signal that ended it; 0 for none.
    pub signal: u8,
}

impl ExitCode {
    /// Whether it is `0:0`.
    pub const fn is_success(self) -> bool {
        self.code == 0 && self.signal == 0
    }

    /// Parses sacct's column. It is empty for the batch step of a job whose node failed (22.05): that is `None`.
    pub fn from_column(text: &str) -> Result<Option<Self>, InvalidName> {
        if text.is_empty() { Ok(None) } else { text.parse().map(Some) }
    }
}

impl fmt::Display for ExitCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.code, self.signal)
    }
}

impl FromStr for ExitCode {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parts =
            text.split_once(':').and_then(|(code, signal)| Some((digits(code, 3)?, digits(signal, 3)?)));
        parts
            .map(|(code, signal)| Self { code, signal })
            .ok_or_else(|| InvalidName::new("exit code", "two numbers up to 255, like 3:0", text))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_empty_column_is_no_exit_code() {
        assert_eq!(ExitCode::from_column(""), Ok(None));
        assert_eq!(ExitCode::from_column("0:125"), Ok(Some(ExitCode { code: 0, signal: 125 })));
    }

    #[test]
    fn anything_else_is_refused() {
        for text in ["3", ":", "3:", ":0", "256:0", "+3:0", "3:0:0", " 3:0", "a:b"] {
            assert!(text.parse::<ExitCode>().is_err(), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn every_exit_code_round_trips(code: u8, signal: u8) {
            let exit = ExitCode { code, signal };
            prop_assert_eq!(exit.to_string().parse::<ExitCode>().unwrap(), exit);
        }
    }
}

//! The id of a job in Slurm.

use std::{fmt, str::FromStr};

use serde_with::{DeserializeFromStr, SerializeDisplay};

use crate::InvalidName;

/// A Slurm job id: `^[1-9][0-9]*$`, at most `u32::MAX` (Slurm's own width; `NO_VAL` and friends are at its end).
///
/// Slurm reuses ids after a controller's reset, so an id alone does not identify a job: compare the job name too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, SerializeDisplay, DeserializeFromStr)]
pub struct SlurmJobId(u32);

impl SlurmJobId {
    /// The id with this number; `None` for zero, which is not an id.
    pub const fn new(id: u32) -> Option<Self> {
        if id == 0 { None } else { Some(Self(id)) }
    }

    /// The number.
    pub const fn get(self) -> u32 {
        self.0
    }
}

impl fmt::Display for SlurmJobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl FromStr for SlurmJobId {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let refused = || InvalidName::new("Slurm job id", "a whole number above zero", text);
        // `u32::from_str` would also take "+7" and "007".
        let digits = text.bytes().all(|byte| byte.is_ascii_digit()) && !text.starts_with('0');
        if !digits {
            return Err(refused());
        }
        text.parse().ok().and_then(Self::new).ok_or_else(refused)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_plain_digits_are_an_id() {
        for text in ["", "0", "007", "+7", "-7", " 7", "7 ", "7_1", "7;lab", "4294967296", "٧"] {
            assert!(text.parse::<SlurmJobId>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn zero_is_no_id() {
        assert_eq!(SlurmJobId::new(0), None);
    }

    proptest! {
        #[test]
        fn every_number_above_zero_round_trips(id in 1_u32..) {
            let id = SlurmJobId::new(id).unwrap();
            prop_assert_eq!(id.to_string().parse::<SlurmJobId>().unwrap(), id);
        }

        #[test]
        fn no_text_makes_the_parser_panic(text in any::<String>()) {
            let _ = text.parse::<SlurmJobId>();
        }
    }
}

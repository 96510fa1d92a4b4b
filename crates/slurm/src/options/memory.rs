//! Amounts of memory.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};
use serde_with::{DeserializeFromStr, SerializeDisplay};

use crate::{InvalidName, number::digits};

/// An amount of memory as `--mem` takes it: a number with `K`, `M` (the default), `G` or `T`. Whole MiB, rounded up as in
/// Slurm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, SerializeDisplay, DeserializeFromStr)]
pub struct Memory(u64);

impl Memory {
    /// The amount in MiB. For `--mem`, 0 means all memory of the node.
    pub const fn mib(self) -> u64 {
        self.0
    }

    /// A number of MiB.
    pub const fn from_mib(mib: u64) -> Self {
        Self(mib)
    }
}

impl FromStr for Memory {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let refused = || InvalidName::new("memory", "a whole number with K, M, G or T, such as 64G", text);
        let (number, unit) = match text.char_indices().next_back() {
            Some((end, unit)) if unit.is_ascii_alphabetic() => (&text[..end], unit.to_ascii_uppercase()),
            _ => (text, 'M'),
        };
        // Nine digits of TiB fit into 64 bits.
        let number: u64 = digits(number, 9).ok_or_else(refused)?;
        match unit {
            'K' => Ok(Self(number.div_ceil(1024))),
            'M' => Ok(Self(number)),
            'G' => Ok(Self(number * 1024)),
            'T' => Ok(Self(number * 1024 * 1024)),
            _ => Err(refused()),
        }
    }
}

impl fmt::Display for Memory {
    /// In the largest unit that keeps it whole.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => f.write_str("0"),
            mib if mib % 1024 == 0 => write!(f, "{}G", mib / 1024),
            mib => write!(f, "{mib}M"),
        }
    }
}

/// The memory of a job. sbatch takes only one of its three options.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemoryRequest {
    /// `--mem`: of each node; 0 for all of it.
    PerNode(Memory),
    /// `--mem-per-cpu`.
    PerCpu(Memory),
    /// `--mem-per-gpu`.
    PerGpu(Memory),
}

impl MemoryRequest {
    /// The option of sbatch, and its value.
    pub const fn option(self) -> (&'static str, Memory) {
        match self {
            Self::PerNode(memory) => ("mem", memory),
            Self::PerCpu(memory) => ("mem-per-cpu", memory),
            Self::PerGpu(memory) => ("mem-per-gpu", memory),
        }
    }
}

#[cfg(test)]
mod tests {
    use test_case::test_case;

    use super::*;

    #[test_case("64G", "64G" ; "gigabytes")]
    #[test_case("512000", "500G" ; "megabytes without a unit")]
    #[test_case("1500m", "1500M" ; "a small letter")]
    #[test_case("2T", "2048G" ; "terabytes")]
    #[test_case("1K", "1M" ; "rounded up")]
    #[test_case("0", "0" ; "everything")]
    fn memory_is_read_as_slurm_reads_it(text: &str, shown: &str) {
        let memory: Memory = text.parse().unwrap();
        assert_eq!(memory.to_string(), shown);
        assert_eq!(shown.parse::<Memory>().unwrap(), memory);
    }

    #[test_case("")]
    #[test_case("G")]
    #[test_case("64GB")]
    #[test_case("1.5G")]
    #[test_case("-1")]
    #[test_case("1 G")]
    #[test_case("9999999999T")]
    #[test_case("1é")]
    fn other_texts_are_refused(text: &str) {
        assert!(text.parse::<Memory>().is_err());
    }
}

//! Random numbers that depend only on the seed, on every machine and with every version of every crate.

use chrono::TimeDelta;

/// The `SplitMix64` generator: small, fast, and good enough to choose faults.
#[derive(Debug, Clone)]
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        // Consecutive seeds must give unrelated sequences.
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d_4c95_7f2d)
    }

    pub fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from 0 to `below`, exclusive.
    pub fn below(&mut self, below: u64) -> u64 {
        self.roll() % below.max(1)
    }

    /// A number from `least` to `most`, inclusive.
    pub fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.below(most.saturating_sub(least) + 1)
    }

    /// One of the values.
    pub fn one_of<T: Clone, const N: usize>(&mut self, several: &[T; N]) -> T {
        several[usize::try_from(self.below(N as u64)).unwrap_or(0)].clone()
    }

    /// True with this probability in thousandths.
    pub fn chance(&mut self, in_thousand: u64) -> bool {
        self.below(1000) < in_thousand
    }

    /// A duration from `least` to `most` milliseconds.
    pub fn millis(&mut self, least: u64, most: u64) -> TimeDelta {
        TimeDelta::milliseconds(i64::try_from(self.between(least, most)).unwrap_or(0))
    }

    /// A duration from `least` to `most` seconds, with millisecond resolution.
    pub fn seconds(&mut self, least: u64, most: u64) -> TimeDelta {
        self.millis(least * 1000, most * 1000)
    }
}

//! Chance that is the same for the same seed, on every machine and with every version of every crate.

use chrono::TimeDelta;

/// `SplitMix64`: small, fast, and good enough to choose faults.
#[derive(Debug, Clone)]
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        // Seeds that differ by one are to have nothing in common.
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d_4c95_7f2d)
    }

    pub fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From 0 to `below`, without it.
    pub fn below(&mut self, below: u64) -> u64 {
        self.roll() % below.max(1)
    }

    /// From `least` to `most`.
    pub fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.below(most.saturating_sub(least) + 1)
    }

    /// One of several.
    pub fn one_of<T: Clone, const N: usize>(&mut self, several: &[T; N]) -> T {
        several[usize::try_from(self.below(N as u64)).unwrap_or(0)].clone()
    }

    /// True so many times in a thousand.
    pub fn chance(&mut self, in_thousand: u64) -> bool {
        self.below(1000) < in_thousand
    }

    /// A time between so many milliseconds.
    pub fn millis(&mut self, least: u64, most: u64) -> TimeDelta {
        TimeDelta::milliseconds(i64::try_from(self.between(least, most)).unwrap_or(0))
    }

    /// A time between so many seconds, to the millisecond.
    pub fn seconds(&mut self, least: u64, most: u64) -> TimeDelta {
        self.millis(least * 1000, most * 1000)
    }
}

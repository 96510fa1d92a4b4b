//! How long a login host that failed is left alone.

use std::time::Duration;

use crate::SshError;

/// The first pause after a network failure.
const FIRST: Duration = Duration::from_secs(1);
/// The longest pause after network failures.
const LONGEST: Duration = Duration::from_mins(1);
/// The pause after a refusal that a person has to mend. OpenSSH 9.8 and later penalise an address that
/// fails to log in again and again, and sites block accounts.
const REFUSED: Duration = Duration::from_mins(5);

/// The pause after `error`, the `failures`-th in a row (from 1), with a fifth of jitter either way.
pub(crate) fn pause(error: &SshError, failures: u32) -> Duration {
    let pause = if error.needs_operator() { REFUSED } else { doubled(failures) };
    pause.mul_f64(rand::random_range(0.8..1.2))
}

fn doubled(failures: u32) -> Duration {
    let factor = 1_u32.checked_shl(failures.saturating_sub(1)).unwrap_or(u32::MAX);
    FIRST.saturating_mul(factor.max(1)).min(LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn network_pauses_double_from_a_second_to_a_minute() {
        let seconds: Vec<u64> = [1, 2, 3, 6, 7, 31, 32, 33, 500].map(|n| doubled(n).as_secs()).into();
        assert_eq!(seconds, [1, 2, 4, 32, 60, 60, 60, 60, 60]);
    }

    #[test]
    fn a_refusal_is_left_alone_for_minutes() {
        let pause = pause(&SshError::NoKey, 1);
        assert!((240..=360).contains(&pause.as_secs()), "{pause:?}");
    }
}

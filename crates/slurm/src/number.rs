//! Numbers in Slurm's texts.

use std::str::FromStr;

/// Parses a number of at most so many decimal digits, without a sign or spaces.
pub(crate) fn digits<T: FromStr>(text: &str, most: usize) -> Option<T> {
    let plain = (1..=most).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| text.parse().ok()).flatten()
}

/// The number, rounded up to a whole one; a deviation below `tolerance` does not count. `None` below 1 or above `most`.
pub(crate) fn round_up(number: f64, tolerance: f64, most: u32) -> Option<u32> {
    let nearest = number.round();
    let whole = if (number - nearest).abs() < tolerance { nearest } else { number.ceil() };
    let is_in_range = whole >= 1.0 && whole <= f64::from(most);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a whole number within the range of u32"
    )]
    is_in_range.then_some(whole as u32)
}

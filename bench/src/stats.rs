//! Statistics of samples.

use std::time::Duration;

/// The median; `NaN` without samples.
pub(crate) fn median(samples: &[f64]) -> f64 {
    let sorted = sorted(samples);
    match sorted.len() {
        0 => f64::NAN,
        len if len % 2 == 1 => sorted[len / 2],
        len => f64::midpoint(sorted[len / 2 - 1], sorted[len / 2]),
    }
}

/// The smallest sample that is not exceeded by `percent` % of the samples; `NaN` without samples.
pub(crate) fn percentile(samples: &[f64], percent: f64) -> f64 {
    let sorted = sorted(samples);
    let Some(last) = sorted.len().checked_sub(1) else { return f64::NAN };
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a rank is from 0 to the number of samples"
    )]
    let rank = (percent / 100.0 * sorted.len() as f64).ceil() as usize;
    sorted[rank.saturating_sub(1).min(last)]
}

fn sorted(samples: &[f64]) -> Vec<f64> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

pub(crate) fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

#[expect(clippy::cast_precision_loss, reason = "no count here is near 2^52")]
pub(crate) fn number(count: u64) -> f64 {
    count as f64
}

/// The same for a length.
#[expect(clippy::cast_precision_loss, reason = "no length here is near 2^52")]
pub(crate) fn count(length: usize) -> f64 {
    length as f64
}

/// A number with commas: 10,000.
pub(crate) fn grouped(number: impl std::fmt::Display) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_does_not_depend_on_the_order() {
        assert!((median(&[9.0, 1.0, 5.0]) - 5.0).abs() < f64::EPSILON);
        assert!((median(&[9.0, 1.0, 5.0, 7.0]) - 6.0).abs() < f64::EPSILON);
        assert!(median(&[]).is_nan());
    }

    #[test]
    fn numbers_are_grouped_by_thousands() {
        assert_eq!([7, 999, 1000, 1_000_000].map(grouped), ["7", "999", "1,000", "1,000,000"]);
    }

    #[test]
    fn a_percentile_is_a_sample() {
        let hundred: Vec<f64> = (1..=100).rev().map(f64::from).collect();
        assert!((percentile(&hundred, 95.0) - 95.0).abs() < f64::EPSILON);
        assert!((percentile(&hundred, 100.0) - 100.0).abs() < f64::EPSILON);
        assert!((percentile(&[3.0, 4.0], 99.0) - 4.0).abs() < f64::EPSILON);
        assert!((percentile(&[3.0, 4.0], 0.0) - 3.0).abs() < f64::EPSILON);
    }
}

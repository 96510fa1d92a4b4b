//! The estimated time to completion: from the durations that a job reports, or from its measured pace.

use serde::{Deserialize, Serialize};

/// The times of the first and the newest epoch, by the job's own clock or ours.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Pace {
    first: Option<(u64, i64)>,
    newest: Option<(u64, i64)>,
}

impl Pace {
    /// Records an epoch at a time in seconds.
    pub(crate) fn record(&mut self, epoch: u64, at: i64) {
        match self.newest {
            Some((newest, _)) if newest == epoch => {}
            Some((newest, _)) if newest < epoch => self.newest = Some((epoch, at)),
            // The first, or a restart.
            Some(_) | None => *self = Self { first: Some((epoch, at)), newest: Some((epoch, at)) },
        }
    }

    /// Seconds for this many more epochs, if at least one was measured.
    fn seconds_for(&self, epochs: u64) -> Option<u64> {
        let ((first, began), (newest, at)) = self.first.zip(self.newest)?;
        let (done, took) = (newest.checked_sub(first).filter(|n| *n > 0)?, at.checked_sub(began)?);
        u64::try_from(took).ok()?.checked_mul(epochs)?.checked_div(done)
    }
}

/// Seconds for the remaining epochs: from the job's own time per epoch, else from the pace.
pub(crate) fn seconds_left(pace: &Pace, time_per_epoch: Option<&str>, epochs: u64) -> Option<u64> {
    let own = time_per_epoch.and_then(seconds).map(|one| one * to_float(epochs));
    own.and_then(whole).or_else(|| pace.seconds_for(epochs))
}

/// A duration as Python writes it: `[D day[s], ]H:MM:SS[.f]`, or a number of seconds.
pub(crate) fn seconds(text: &str) -> Option<f64> {
    let text = text.trim();
    let (days, clock) = match text.split_once(',') {
        Some((days, clock)) => {
            let count = days.trim().strip_suffix("days").or_else(|| days.trim().strip_suffix("day"))?;
            (count.trim().parse::<u32>().ok()?, clock.trim())
        }
        None => (0, text),
    };
    let mut seconds = 0.0;
    for part in clock.split(':') {
        let part: f64 = part.parse().ok().filter(|part: &f64| part.is_finite() && *part >= 0.0)?;
        seconds = seconds * 60.0 + part;
    }
    if clock.split(':').count() > 3 { None } else { Some(f64::from(days) * 86_400.0 + seconds) }
}

/// Whole seconds of at most a century.
pub(crate) fn whole(seconds: f64) -> Option<u64> {
    const CENTURY: f64 = 3.2e9;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the range is checked")]
    (0.0..CENTURY).contains(&seconds).then_some(seconds.round() as u64)
}

/// `[D days, ]H:MM:SS`, as Python writes a duration.
pub(crate) fn text(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let clock = format!("{}:{:02}:{:02}", rest / 3600, rest % 3600 / 60, rest % 60);
    match days {
        0 => clock,
        1 => format!("1 day, {clock}"),
        days => format!("{days} days, {clock}"),
    }
}

#[expect(clippy::cast_precision_loss, reason = "epochs are far below 2^53")]
fn to_float(number: u64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use test_case::test_case;

    use super::*;

    #[test_case("0:01:30" => Some(90.0))]
    #[test_case("1 day, 2:00:01.5" => Some(93_601.5))]
    #[test_case("12 days, 0:00:00" => Some(1_036_800.0))]
    #[test_case("17.25" => Some(17.25) ; "seconds")]
    #[test_case("05:30" => Some(330.0) ; "minutes")]
    #[test_case("soon" => None)]
    #[test_case("-1:00:00" => None)]
    #[test_case("nan" => None)]
    #[test_case("1:2:3:4" => None)]
    #[test_case("" => None ; "nothing")]
    fn durations_are_read_as_python_writes_them(text: &str) -> Option<f64> {
        seconds(text)
    }

    #[test]
    fn the_pace_is_taken_over_all_epochs_since_the_first_heard_of() {
        let mut pace = Pace::default();
        for (epoch, at) in [(2, 100), (2, 105), (3, 130), (4, 160)] {
            pace.record(epoch, at);
        }
        assert_eq!(seconds_left(&pace, None, 10), Some(300));
        assert_eq!(seconds_left(&pace, Some("0:00:07"), 10), Some(70), "the job knows better");
        assert_eq!(seconds_left(&pace, Some("soon"), 10), Some(300));
        pace.record(1, 200);
        assert_eq!(seconds_left(&pace, None, 10), None, "it has started over");
    }

    #[test]
    fn a_clock_that_goes_backwards_measures_nothing() {
        let mut pace = Pace::default();
        pace.record(1, i64::MAX);
        pace.record(2, i64::MIN);
        assert_eq!(seconds_left(&pace, None, 10), None);
        assert_eq!(seconds_left(&Pace::default(), Some("1e300"), u64::MAX), None);
    }

    #[test]
    fn a_duration_is_written_as_python_writes_it() {
        assert_eq!(text(59), "0:00:59");
        assert_eq!(text(90_061), "1 day, 1:01:01");
        assert_eq!(text(172_800), "2 days, 0:00:00");
    }
}

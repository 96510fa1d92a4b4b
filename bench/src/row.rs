//! One figure: the measured value, its comparison, and its goal.

use serde_json::{Value, json};

use crate::stats::{count, median};

/// The goal for a figure or its ratio.
#[derive(Debug, Clone, Copy)]
enum Goal {
    AtLeast(f64),
    AtMost(f64),
    RatioAtLeast(f64),
}

#[derive(Debug, Clone)]
pub(crate) struct Row {
    figure: String,
    unit: &'static str,
    value: f64,
    samples: Vec<f64>,
    ratio: Option<f64>,
    against: Option<String>,
    goal: Option<Goal>,
    note: String,
}

impl Row {
    /// A figure that was measured once or counted.
    pub(crate) fn new(figure: impl Into<String>, unit: &'static str, value: f64) -> Self {
        Self {
            figure: figure.into(),
            unit,
            value,
            samples: vec![value],
            ratio: None,
            against: None,
            goal: None,
            note: String::new(),
        }
    }

    /// A figure that was measured in each round: its value is the median; the JSON has all samples.
    pub(crate) fn of(figure: impl Into<String>, unit: &'static str, samples: &[f64]) -> Self {
        Self { samples: samples.to_vec(), ..Self::new(figure, unit, median(samples)) }
    }

    /// Replaces the median with another value, such as a percentile of the samples.
    pub(crate) fn value(self, value: f64) -> Self {
        Self { value, ..self }
    }

    /// Compares with samples of the same rounds, for figures where more is better.
    pub(crate) fn against(self, other: impl Into<String>, samples: &[f64]) -> Self {
        let ratio = paired(&self.samples, samples);
        self.ratio(other, ratio)
    }

    /// Compares with samples of the same rounds, for figures where less is better.
    pub(crate) fn less_than(self, other: impl Into<String>, samples: &[f64]) -> Self {
        let ratio = paired(samples, &self.samples);
        self.ratio(other, ratio)
    }

    /// Sets a ratio directly. More is better.
    pub(crate) fn ratio(mut self, against: impl Into<String>, ratio: f64) -> Self {
        self.ratio = Some(ratio);
        self.against = Some(against.into());
        self
    }

    pub(crate) fn ratio_at_least(mut self, goal: f64) -> Self {
        self.goal = Some(Goal::RatioAtLeast(goal));
        self
    }

    pub(crate) fn at_least(mut self, goal: f64) -> Self {
        self.goal = Some(Goal::AtLeast(goal));
        self
    }

    pub(crate) fn at_most(mut self, goal: f64) -> Self {
        self.goal = Some(Goal::AtMost(goal));
        self
    }

    pub(crate) fn note(mut self, note: impl Into<String>) -> Self {
        self.note = note.into();
        self
    }

    /// Whether the goal is met; `None` without a goal. `NaN` meets no goal.
    pub(crate) fn reached(&self) -> Option<bool> {
        Some(match self.goal? {
            Goal::AtLeast(goal) => self.value >= goal,
            Goal::AtMost(goal) => self.value <= goal,
            Goal::RatioAtLeast(goal) => self.ratio.is_some_and(|ratio| ratio >= goal),
        })
    }

    fn goal_text(&self) -> String {
        match self.goal {
            Some(Goal::AtLeast(goal)) => format!("≥ {} {}", short(goal), self.unit),
            Some(Goal::AtMost(goal)) => format!("≤ {} {}", short(goal), self.unit),
            Some(Goal::RatioAtLeast(goal)) => format!("≥ {}×", short(goal)),
            None => String::new(),
        }
    }

    fn spread(&self) -> String {
        if self.samples.len() < 2 {
            return String::new();
        }
        let least = self.samples.iter().copied().fold(f64::INFINITY, f64::min);
        let most = self.samples.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        format!("{}–{} ({})", short(least), short(most), self.samples.len())
    }

    /// The cells of the table, in the order of [`Row::HEADS`].
    pub(crate) fn cells(&self) -> [String; 8] {
        let reached = self.reached().map_or("", |reached| if reached { "yes" } else { "**no**" });
        [
            self.ratio.map(|ratio| format!("{}×", short(ratio))).unwrap_or_default(),
            self.figure.clone(),
            format!("{} {}", short(self.value), self.unit),
            self.spread(),
            self.against.clone().unwrap_or_default(),
            self.goal_text(),
            reached.to_owned(),
            self.note.clone(),
        ]
    }

    pub(crate) const HEADS: [&str; 8] =
        ["ratio", "figure", "value", "min–max (samples)", "compared with", "goal", "met", "note"];

    pub(crate) fn json(&self, section: &str) -> Value {
        json!({
            "section": section, "figure": self.figure, "value": self.value, "unit": self.unit,
            "samples": self.samples, "ratio": self.ratio, "against": self.against, "goal": self.goal_text(),
            "reached": self.reached(), "note": self.note,
        })
    }
}

/// The median of the ratios per round; the ratio of the medians if the numbers of samples differ.
fn paired(above: &[f64], below: &[f64]) -> f64 {
    if above.len() != below.len() {
        return median(above) / median(below);
    }
    median(&above.iter().zip(below).map(|(above, below)| above / below).collect::<Vec<_>>())
}

/// Formats a value with three significant digits.
pub(crate) fn short(value: f64) -> String {
    let size = value.abs();
    if !value.is_finite() {
        return "–".to_owned();
    }
    // Counts keep all digits.
    if (value - value.round()).abs() < f64::EPSILON && size < 1e6 {
        return format!("{value:.0}");
    }
    match size {
        100.0.. => format!("{value:.0}"),
        10.0.. => format!("{value:.1}"),
        1.0.. => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

/// The average of a total.
pub(crate) fn each(total: f64, number: usize) -> f64 {
    total / count(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ratio_is_the_median_of_the_rounds_ratios() {
        let row = Row::of("rate", "1/s", &[10.0, 20.0, 30.0]).against("loop", &[10.0, 10.0, 60.0]);
        assert_eq!(row.cells()[0], "1×");
        assert_eq!(row.cells()[2], "20 1/s");
    }

    #[test]
    fn less_than_inverts_the_ratio() {
        let row = Row::of("logins", "", &[2.0]).less_than("peer", &[50.0]).ratio_at_least(20.0);
        assert_eq!((row.cells()[0].as_str(), row.reached()), ("25×", Some(true)));
    }

    #[test]
    fn nan_meets_no_goal() {
        assert_eq!(Row::new("p99", "ms", 9.9).at_most(10.0).reached(), Some(true));
        assert_eq!(Row::new("p99", "ms", 10.1).at_most(10.0).reached(), Some(false));
        assert_eq!(Row::of("p99", "ms", &[]).at_most(10.0).reached(), Some(false));
        assert_eq!(Row::of("rate", "1/s", &[]).at_least(1.0).reached(), Some(false));
        assert_eq!(Row::new("p99", "ms", 9.9).reached(), None);
    }

    #[test]
    fn values_have_three_significant_digits() {
        assert_eq!(
            ["0.123", "1.23", "12.3", "1235", "1234"],
            [0.1234, 1.234, 12.34, 1234.6, 1234.0].map(short).as_ref()
        );
    }
}

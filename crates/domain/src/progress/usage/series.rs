//! The utilization of a run over time, in memory of fixed size.

use serde::{Deserialize, Serialize};

use super::Window;

/// The most buckets, and the seconds of one at first.
const MOST: usize = 120;
const NARROWEST: i64 = 15;

/// Buckets of equal width from the beginning on. When they are too many, neighbors are merged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// The width of a bucket in seconds.
    pub width: i64,
    pub buckets: Vec<Bucket>,
}

/// The samples of all GPUs within a bucket; none if the GPUs were not looked at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bucket {
    pub samples: u64,
    pub sum: u64,
}

impl Default for Series {
    fn default() -> Self {
        Self { width: NARROWEST, buckets: Vec::new() }
    }
}

impl Bucket {
    /// The mean in percent.
    pub fn mean(&self) -> Option<f64> {
        (self.samples > 0).then(|| super::ratio(self.sum, self.samples))
    }
}

impl Series {
    /// Adds what was seen until so many seconds after the beginning.
    pub(super) fn add(&mut self, until: i64, window: &Window) {
        // A time at the edge belongs to the bucket that it ends.
        let last = until.saturating_sub(1).max(0);
        let place = |width: i64| usize::try_from(last / width.max(1)).unwrap_or(usize::MAX);
        while place(self.width) >= MOST {
            self.merge();
        }
        let place = place(self.width);
        if self.buckets.len() <= place {
            self.buckets.resize(place + 1, Bucket::default());
        }
        if let Some(bucket) = self.buckets.get_mut(place) {
            bucket.samples += window.samples;
            bucket.sum += window.sum;
        }
    }

    fn merge(&mut self) {
        self.width = self.width.max(1).saturating_mul(2);
        let pairs = self.buckets.chunks(2).map(|pair| {
            pair.iter().fold(Bucket::default(), |all, one| Bucket {
                samples: all.samples + one.samples,
                sum: all.sum + one.sum,
            })
        });
        self.buckets = pairs.collect();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn nothing_is_lost_however_long_it_is(steps in prop::collection::vec((1_i64..5000, 0_u64..100), 1..400)) {
            let (mut series, mut until) = (Series::default(), 0);
            for (step, sum) in &steps {
                until += step;
                series.add(until, &Window { samples: 1, sum: *sum, ..Window::default() });
                prop_assert!(series.buckets.len() <= MOST);
            }
            let all: u64 = series.buckets.iter().map(|bucket| bucket.sum).sum();
            let samples: u64 = series.buckets.iter().map(|bucket| bucket.samples).sum();
            prop_assert_eq!((all, samples), (steps.iter().map(|(_, sum)| sum).sum(), steps.len() as u64));
            prop_assert!(series.width * i64::try_from(series.buckets.len()).unwrap() >= until);
        }
    }

    #[test]
    fn the_width_doubles_when_there_are_too_many() {
        let mut series = Series::default();
        let window = Window { samples: 2, sum: 60, ..Window::default() };
        for k in 1..=120 {
            series.add(k * NARROWEST, &window);
        }
        assert_eq!((series.width, series.buckets.len()), (NARROWEST, 120));
        series.add(121 * NARROWEST, &window);
        assert_eq!((series.width, series.buckets.len()), (2 * NARROWEST, 61));
        assert_eq!(series.buckets[0], Bucket { samples: 4, sum: 120 });
        assert_eq!(series.buckets[60].mean(), Some(30.0));
    }
}

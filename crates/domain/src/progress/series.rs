//! Metrics over the course of a job: one series for each name and attempt, from the stored status lines.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::{
    clock::Timestamp,
    progress::{
        downsample,
        status_file::{MAX_METRICS, is_name, metric_or_null, number},
    },
};

/// The most metrics, as in the progress of a job.
pub const MOST_METRICS: usize = MAX_METRICS;
/// The most series: metrics of attempts.
const MOST_SERIES: usize = 1000;
/// The most points of all series together.
const MOST_POINTS: usize = 50_000;
/// The most points in memory.
const MOST_KEPT: usize = 4 * MOST_POINTS;
/// The name of a line's own `key_metric`.
const KEY_METRIC: &str = "key_metric";

/// The values of one metric in one attempt, in the order in which they were read.
#[derive(Debug, Clone, PartialEq)]
pub struct MetricSeries {
    pub name: String,
    pub attempt: u32,
    /// What `x` of its points is.
    pub axis: MetricAxis,
    pub points: Vec<MetricPoint>,
    /// The number of finite values before some were left out.
    pub count: u64,
    /// The number of values that are null, NaN or infinite. They are not among the points.
    pub not_finite: u64,
}

/// One finite value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MetricPoint {
    pub x: f64,
    pub value: f64,
    /// When the service read it.
    pub at: Timestamp,
}

/// The places of the points of a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum MetricAxis {
    /// The job's steps or iterations; each of its lines has one.
    Step,
    /// The job's epochs, also parts of them; each of its lines has one.
    Epoch,
    /// The time at which the service read the line, in seconds since 1970.
    Time,
}

/// Collects series from status lines in the order of their events, in bounded memory.
#[derive(Debug)]
pub struct MetricCollector {
    /// Only these names; all if it is empty.
    names: BTreeSet<String>,
    /// The most points of one series.
    most: usize,
    series: BTreeMap<String, BTreeMap<u32, Collected>>,
    number: usize,
    kept: usize,
    left_out: bool,
}

#[derive(Debug, Default)]
struct Collected {
    points: Vec<Reading>,
    count: u64,
    not_finite: u64,
}

#[derive(Debug, Clone, Copy)]
struct Reading {
    step: Option<f64>,
    epoch: Option<f64>,
    value: f64,
    at: Timestamp,
}

impl MetricCollector {
    /// `most` is the maximum number of points of one series; many series have fewer.
    pub fn new(names: BTreeSet<String>, most: usize) -> Self {
        Self { names, most, series: BTreeMap::new(), number: 0, kept: 0, left_out: false }
    }

    /// Takes in the data of an event: a status line.
    pub fn take(&mut self, attempt: u32, at: Timestamp, line: &Value) {
        let Value::Object(line) = line else { return };
        let place = |key: &str| line.get(key).and_then(number).filter(|place| place.is_finite());
        let (step, epoch) = (place("cur_iter").or_else(|| place("step")), place("epoch"));
        for (name, value) in values(line) {
            if !self.names.is_empty() && !self.names.contains(name) {
                continue;
            }
            let Some(series) = self.series_of(name, attempt) else { continue };
            match value {
                Some(value) => {
                    series.points.push(Reading { step, epoch, value, at });
                    series.count += 1;
                    self.kept += 1;
                }
                None => series.not_finite += 1,
            }
        }
        if self.kept > MOST_KEPT {
            self.thin(2 * self.share());
        }
    }

    /// None if there are too many.
    fn series_of(&mut self, name: &str, attempt: u32) -> Option<&mut Collected> {
        let is_known = self.series.contains_key(name);
        let has_room = (is_known || self.series.len() < MOST_METRICS) && self.number < MOST_SERIES;
        if !has_room && !self.series.get(name).is_some_and(|attempts| attempts.contains_key(&attempt)) {
            self.left_out = true;
            return None;
        }
        if !is_known {
            self.series.insert(name.to_owned(), BTreeMap::new());
        }
        let attempts = self.series.get_mut(name)?;
        let before = attempts.len();
        attempts.entry(attempt).or_default();
        self.number += attempts.len() - before;
        attempts.get_mut(&attempt)
    }

    /// The most points of each series.
    fn share(&self) -> usize {
        self.most.min(MOST_POINTS / self.number.max(1))
    }

    fn thin(&mut self, most: usize) {
        self.kept = 0;
        for series in self.series.values_mut().flat_map(BTreeMap::values_mut) {
            series.thin(most);
            self.kept += series.points.len();
        }
    }

    /// Whether there were more metrics than can be shown.
    pub fn has_left_out(&self) -> bool {
        self.left_out
    }

    /// The series by name and attempt.
    pub fn series(mut self) -> Vec<MetricSeries> {
        self.thin(self.share());
        let all = self.series.into_iter().flat_map(|(name, attempts)| {
            attempts.into_iter().map(move |(attempt, collected)| collected.series(name.clone(), attempt))
        });
        all.collect()
    }
}

impl Collected {
    fn axis(&self) -> MetricAxis {
        if self.points.iter().all(|point| point.step.is_some()) {
            MetricAxis::Step
        } else if self.points.iter().all(|point| point.epoch.is_some()) {
            MetricAxis::Epoch
        } else {
            MetricAxis::Time
        }
    }

    fn thin(&mut self, most: usize) {
        if self.points.len() <= most {
            return;
        }
        let axis = self.axis();
        let places: Vec<_> = self.points.iter().map(|point| (point.x(axis), point.value)).collect();
        self.points = downsample::chosen(&places, most).into_iter().map(|index| self.points[index]).collect();
    }

    fn series(self, name: String, attempt: u32) -> MetricSeries {
        let axis = self.axis();
        let point =
            |reading: &Reading| MetricPoint { x: reading.x(axis), value: reading.value, at: reading.at };
        let points = self.points.iter().map(point).collect();
        MetricSeries { name, attempt, axis, points, count: self.count, not_finite: self.not_finite }
    }
}

impl Reading {
    fn x(&self, axis: MetricAxis) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "milliseconds since 1970 have 41 bits")]
        let seconds = || self.at.timestamp_millis() as f64 / 1000.0;
        let own = match axis {
            MetricAxis::Step => self.step,
            MetricAxis::Epoch => self.epoch,
            MetricAxis::Time => None,
        };
        own.unwrap_or_else(seconds)
    }
}

/// The metrics of a line as they count for the progress, and its key metric. A value is none if it is not finite.
fn values(line: &Map<String, Value>) -> impl Iterator<Item = (&str, Option<f64>)> {
    let group = |key: &str| line.get(key).and_then(Value::as_object);
    let (kpi, graphical) = (group("kpi"), group("graphical"));
    let own = line.get(KEY_METRIC).map(|value| (KEY_METRIC, value));
    let is_repeated = move |key: &str| kpi.is_some_and(|kpi| kpi.contains_key(key));
    let further = graphical.into_iter().flatten().filter(move |(key, _)| !is_repeated(key));
    let named = kpi.into_iter().flatten().chain(further).map(|(key, value)| (key.as_str(), value));
    let is_named = move || {
        group(KEY_METRIC).is_none()
            && !is_repeated(KEY_METRIC)
            && graphical.is_none_or(|all| !all.contains_key(KEY_METRIC))
    };
    named.chain(own.filter(|_| is_named())).filter(|(key, _)| is_name(key)).filter_map(|(key, value)| {
        // Events have null in the place of NaN.
        metric_or_null(value).map(|value| (key, value.as_f64().filter(|value| value.is_finite())))
    })
}

#[cfg(test)]
mod tests;

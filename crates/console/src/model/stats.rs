//! Figures about jobs.

use serde::Deserialize;

use super::{Moment, Text};

#[derive(Debug, Deserialize)]
pub(crate) struct Stats {
    pub(crate) since: Moment,
    pub(crate) until: Moment,
    pub(crate) totals: Figures,
    pub(crate) now: Vec<StatusCount>,
    pub(crate) groups: Option<Vec<Group>>,
    pub(crate) groups_truncated: bool,
    pub(crate) buckets: Option<Vec<Bucket>>,
}

/// The figures of some jobs.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(crate) struct Figures {
    pub(crate) submitted: u64,
    pub(crate) ended: Ended,
    pub(crate) success_rate: Option<f64>,
    pub(crate) queue_wait_seconds: QueueWait,
    pub(crate) gpu_hours: f64,
}

/// How jobs ended.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(crate) struct Ended {
    pub(crate) done: u64,
    pub(crate) error: u64,
    pub(crate) canceled: u64,
}

/// How long runs waited in Slurm's queue, in seconds.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(crate) struct QueueWait {
    pub(crate) runs: u64,
    pub(crate) p50: Option<f64>,
    pub(crate) p90: Option<f64>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct StatusCount {
    pub(crate) status: Text,
    pub(crate) jobs: u64,
}

/// The figures of one value. The fields are listed once more: `flatten` would hide their names from the test that looks for them in the
/// API's document.
#[derive(Debug, Deserialize)]
pub(crate) struct Group {
    pub(crate) value: Option<Text>,
    submitted: u64,
    ended: Ended,
    success_rate: Option<f64>,
    queue_wait_seconds: QueueWait,
    gpu_hours: f64,
}

/// The figures of a part of the window.
#[derive(Debug, Deserialize)]
pub(crate) struct Bucket {
    pub(crate) start: Moment,
    submitted: u64,
    ended: Ended,
    success_rate: Option<f64>,
    queue_wait_seconds: QueueWait,
    gpu_hours: f64,
}

macro_rules! has_figures {
    ($($of:ty),+) => {
        $(impl $of {
            pub(crate) fn figures(&self) -> Figures {
                let Self { submitted, ended, success_rate, queue_wait_seconds, gpu_hours, .. } = *self;
                Figures { submitted, ended, success_rate, queue_wait_seconds, gpu_hours }
            }
        })+
    };
}

has_figures!(Group, Bucket);

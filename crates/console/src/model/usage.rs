//! What a job uses of its GPUs, processors and memory.

use serde::Deserialize;

use super::{Moment, Text};

#[derive(Debug, Deserialize)]
pub(crate) struct Usage {
    pub(crate) notes: Vec<Text>,
    pub(crate) measured: Option<Measured>,
}

/// What the job has measured itself.
#[derive(Debug, Deserialize)]
pub(crate) struct Measured {
    pub(crate) attempt: u32,
    pub(crate) gpus: Vec<Gpu>,
    pub(crate) series: Utilization,
}

/// One of its GPUs.
#[derive(Debug, Deserialize)]
pub(crate) struct Gpu {
    pub(crate) node: Text,
    pub(crate) index: u32,
    pub(crate) percent: f64,
    pub(crate) most_percent: u8,
    pub(crate) most_memory_mib: u64,
    pub(crate) memory_mib: u64,
}

/// The mean of all GPUs over time.
#[derive(Debug, Deserialize)]
pub(crate) struct Utilization {
    pub(crate) times: Vec<Moment>,
    pub(crate) percent: Vec<f64>,
}

//! What a job uses of its GPUs, processors and memory.

use serde::Deserialize;

use super::{Moment, Text};

#[derive(Debug, Deserialize)]
pub(crate) struct Usage {
    pub(crate) notes: Vec<Text>,
    pub(crate) measured: Option<Measured>,
    pub(crate) accounted: Accounted,
}

/// What Slurm accounts for, of the Slurm jobs that have ended.
#[derive(Debug, Deserialize)]
pub(crate) struct Accounted {
    pub(crate) runs: u64,
    pub(crate) seconds: i64,
    pub(crate) gpu_seconds: u64,
    pub(crate) cpu_seconds: u64,
    pub(crate) cpu_seconds_used: Option<u64>,
    pub(crate) most_memory_mib: Option<u32>,
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

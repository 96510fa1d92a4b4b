//! What a job uses of its GPUs, processors and memory.

use chrono::DateTime;
use domain::{JobId, Timestamp, Usage, mean_of};
use persistence::JobAccount;
use serde::Serialize;
use utoipa::ToSchema;

/// What a job uses.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct UsageView {
    /// The job's id.
    pub job_id: JobId,
    /// The task of the job's array; 0 for a job without one.
    pub task: u32,
    /// What the figures say, each in one sentence.
    #[schema(example = json!(["8 GPUs, 11 % used on average, 3 of them never: ask for 5."]))]
    pub notes: Vec<String>,
    /// What the job has measured itself; null if it has not measured anything, or only for some seconds.
    pub measured: Option<MeasuredView>,
    /// What Slurm accounts for.
    pub accounted: AccountedView,
}

/// What the newest run that has measured its use has told. It is up to a minute old.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MeasuredView {
    /// The attempt.
    pub attempt: u32,
    /// When the measurement began (RFC 3339), by the clock of its first node.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub from: Option<Timestamp>,
    /// The time of the newest figures.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub until: Option<Timestamp>,
    /// The mean utilization of all GPUs in percent; null without GPUs.
    pub gpu_percent: Option<f64>,
    /// Each GPU, by node and index; at most 512.
    pub gpus: Vec<GpuView>,
    /// Each node, by name.
    pub nodes: Vec<NodeView>,
    /// The utilization of all GPUs over time; at most 120 points.
    pub series: UtilizationView,
}

/// What a run uses of one GPU.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct GpuView {
    /// Its node.
    pub node: String,
    /// Its number on the node, as `nvidia-smi` tells it.
    pub index: u32,
    /// The mean of its utilization, in percent.
    pub percent: f64,
    /// The highest utilization, in percent.
    pub most_percent: u8,
    /// The most memory in use, in MiB.
    pub most_memory_mib: u64,
    /// All its memory, in MiB.
    pub memory_mib: u64,
    /// How often it was looked at.
    pub samples: u32,
}

/// What a run uses of one node.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct NodeView {
    /// Its name.
    pub name: String,
    /// The CPU seconds used.
    pub cpu_seconds: u64,
    /// The most memory in use, in MiB, without the page cache.
    pub most_memory_mib: u64,
}

/// The utilization of all GPUs over time. Both lists have the same length.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct UtilizationView {
    /// The end of each part of the time (RFC 3339). Parts without a sample are left out.
    #[schema(value_type = Vec<String>)]
    pub times: Vec<Timestamp>,
    /// The mean of each part, in percent.
    pub percent: Vec<f64>,
}

/// What Slurm accounts for, of all Slurm jobs of the job that have ended; of an array, of all its tasks.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AccountedView {
    /// How often nodes were held.
    pub runs: u64,
    /// For how many seconds in all.
    pub seconds: u64,
    /// The seconds, times the GPUs that were held.
    pub gpu_seconds: u64,
    /// The seconds, times the processors that were held.
    pub cpu_seconds: u64,
    /// The seconds in which these worked; null if Slurm does not know.
    pub cpu_seconds_used: Option<u64>,
    /// The most memory of one task of a step (`MaxRSS`), in MiB, as Slurm looked at it from time to time; null if it does not know.
    pub most_memory_mib: Option<u32>,
}

impl MeasuredView {
    pub(crate) fn new(attempt: u32, usage: &Usage) -> Self {
        let time = |seconds| DateTime::from_timestamp(seconds, 0);
        let width = usage.series.width;
        let buckets = usage.series.buckets.iter().zip(1..);
        let (times, percent) = buckets
            .filter_map(|(bucket, number)| Some((time(usage.began + width * number)?, bucket.mean()?)))
            .unzip();
        let gpus = usage.gpus().map(|(node, gpu)| GpuView {
            node: node.to_owned(),
            index: gpu.index,
            percent: mean_of(gpu),
            most_percent: gpu.most,
            most_memory_mib: gpu.most_memory,
            memory_mib: gpu.memory,
            samples: gpu.samples,
        });
        let nodes = usage.nodes.iter().map(|node| NodeView {
            name: node.name.clone(),
            cpu_seconds: node.cpu_seconds,
            most_memory_mib: node.most_memory,
        });
        Self {
            attempt,
            from: time(usage.began),
            until: time(usage.at),
            gpu_percent: usage.mean_percent(),
            gpus: gpus.collect(),
            nodes: nodes.collect(),
            series: UtilizationView { times, percent },
        }
    }
}

impl From<JobAccount> for AccountedView {
    fn from(account: JobAccount) -> Self {
        let JobAccount { runs, seconds, gpu_seconds, cpu_seconds, cpu_seconds_used, most_memory } = account;
        Self { runs, seconds, gpu_seconds, cpu_seconds, cpu_seconds_used, most_memory_mib: most_memory }
    }
}

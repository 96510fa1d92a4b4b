//! What a run uses of its nodes and GPUs, as its batch script measures it.

mod notes;
mod series;

use remote::{GpuUse, NodeUse, UsageMarker};
use serde::{Deserialize, Serialize};

use crate::cluster::idle::IdlePolicy;

pub use notes::{Held, notes};
pub use series::Bucket;
use series::Series;

/// A longer gap between two markers says nothing about idle GPUs: a mean would hide that they were busy in between.
const LONGEST_WINDOW: i64 = 300;

/// What a run has used so far. Times are seconds since 1970 by the clock of its first node.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    pub began: i64,
    pub at: i64,
    /// The sums for each node and GPU since `began`, in order.
    pub nodes: Vec<NodeUse>,
    /// The utilization of all GPUs over time.
    pub series: Series,
    /// Since when every GPU has been below the percentage of the idle policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_since: Option<i64>,
}

impl Usage {
    /// Takes in a marker. One that is known already changes nothing.
    pub(crate) fn absorb(known: Option<&Self>, marker: &UsageMarker, policy: Option<&IdlePolicy>) -> Self {
        // Another beginning: Slurm has started the run again.
        let known = known.filter(|known| known.began == marker.began).cloned();
        let mut usage =
            known.unwrap_or_else(|| Self { began: marker.began, at: marker.began, ..Self::default() });
        if marker.at <= usage.at {
            return usage;
        }
        let (from, width) = (usage.at, marker.at - usage.at);
        let window = usage.window(marker);
        usage.at = marker.at;
        usage.nodes.clone_from(&marker.nodes);
        usage.nodes.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        for node in &mut usage.nodes {
            node.gpus.sort_unstable_by_key(|gpu| gpu.index);
        }
        usage.series.add(marker.at - usage.began, &window);
        let is_idle = policy
            .is_some_and(|policy| width <= LONGEST_WINDOW && window.is_below(policy.below_percent.into()));
        usage.idle_since = is_idle.then_some(usage.idle_since.unwrap_or(from));
        usage
    }

    /// What the GPUs did between what is known and a marker.
    fn window(&self, marker: &UsageMarker) -> Window {
        let mut window = Window::default();
        for node in &marker.nodes {
            for gpu in &node.gpus {
                let before = self.gpu(&node.name, gpu.index);
                let samples = gpu.samples.saturating_sub(before.map_or(0, |gpu| gpu.samples));
                let sum = gpu.sum.saturating_sub(before.map_or(0, |gpu| gpu.sum));
                if samples > 0 {
                    window.samples += u64::from(samples);
                    window.sum += sum;
                    window.busiest = window.busiest.max(ratio(sum, samples.into()));
                } else {
                    window.is_whole = false;
                }
            }
        }
        window
    }

    fn gpu(&self, node: &str, index: u32) -> Option<&GpuUse> {
        let node = self.nodes.iter().find(|known| known.name == node)?;
        node.gpus.iter().find(|gpu| gpu.index == index)
    }

    /// The GPUs, each with its node.
    pub fn gpus(&self) -> impl Iterator<Item = (&str, &GpuUse)> {
        self.nodes.iter().flat_map(|node| node.gpus.iter().map(|gpu| (node.name.as_str(), gpu)))
    }

    /// The mean utilization of all GPUs in percent; `None` if there is none.
    pub fn mean_percent(&self) -> Option<f64> {
        let (samples, sum) = self
            .gpus()
            .fold((0, 0), |(samples, sum), (_, gpu)| (samples + u64::from(gpu.samples), sum + gpu.sum));
        (samples > 0).then(|| ratio(sum, samples))
    }

    /// For how many seconds no GPU has been busy, by the idle policy.
    pub(crate) fn idle_seconds(&self) -> i64 {
        self.idle_since.map_or(0, |since| self.at - since)
    }
}

/// What all GPUs of a run did in a short time.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Window {
    samples: u64,
    sum: u64,
    /// The mean of the GPU that did most, in percent.
    busiest: f64,
    /// Whether each GPU was looked at.
    is_whole: bool,
}

impl Default for Window {
    fn default() -> Self {
        Self { samples: 0, sum: 0, busiest: 0.0, is_whole: true }
    }
}

impl Window {
    /// Whether each GPU was surely below this percentage. Nothing seen is no idle GPU.
    fn is_below(&self, percent: f64) -> bool {
        self.is_whole && self.samples > 0 && self.busiest < percent
    }
}

/// The mean of a GPU that was looked at.
pub fn mean_of(gpu: &GpuUse) -> f64 {
    ratio(gpu.sum, gpu.samples.into())
}

#[expect(clippy::cast_precision_loss, reason = "the numbers are below 2^50")]
fn ratio(sum: u64, count: u64) -> f64 {
    sum as f64 / count.max(1) as f64
}

#[cfg(test)]
mod tests;

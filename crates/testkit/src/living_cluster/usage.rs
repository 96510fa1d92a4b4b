//! What running jobs use.

use std::collections::HashMap;

use remote::{GpuUse, NodeUse, Poll, Reports, UsageMarker};
use slurm::SlurmState;

use super::{LivingCluster, life::SlurmJob};

impl LivingCluster {
    /// What running jobs tell of their GPU, if they are asked. `is_idle`: every other Slurm job does nothing with it.
    pub fn uses(&self, poll: &Poll, is_idle: bool) -> HashMap<String, Reports> {
        let site = self.site();
        let at = site.seconds();
        let asked = poll.jobs.iter().filter(|job| job.reports.usage.is_some());
        let tells = asked.filter_map(|asked| {
            let runs = |job: &&SlurmJob| {
                let is_asked = job.id == asked.id && job.index == asked.index && job.name == asked.key.name;
                is_asked && job.executing && job.state == SlurmState::Running
            };
            let job = site.jobs.values().find(runs)?;
            let began = job.start.filter(|start| *start < at)?;
            let samples = u32::try_from(at - began).ok()?;
            let most = if is_idle && job.id.get() % 2 == 0 { 0 } else { 50 };
            let sum = u64::from(samples) * u64::from(most);
            let gpu = GpuUse { index: 0, samples, sum, most, most_memory: 1, memory: 2 };
            let node = NodeUse { name: job.node.clone(), cpu_seconds: 1, most_memory: 1, gpus: vec![gpu] };
            let usage = UsageMarker { slurm_id: job.id, restart: job.restarts, at, began, nodes: vec![node] };
            Some((asked.label(), Reports { usage: Some(usage), ..Reports::default() }))
        });
        tells.collect()
    }
}

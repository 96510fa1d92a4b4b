//! What one node has: processors, memory, and generic resources.

use slurm::{Gres, MemoryRequest, NodeGroup, PartitionInfo};

use super::{ReportedLimits, names};
use crate::{request::spec::JobSpec, violation::Violation};

impl ReportedLimits {
    /// The violation of the memory of nodes: none in the job's partitions has as much.
    pub(super) fn memory(&self, spec: &JobSpec, chosen: &[&PartitionInfo]) -> Option<Violation> {
        let request = spec.options.memory?;
        let (option, each) = request.option();
        if spec.options.drops(option) {
            return None;
        }
        let cpus = u64::from(spec.resources.cpus_per_task) * u64::from(spec.resources.tasks_per_node);
        let (asked, times, place) = match request {
            MemoryRequest::PerNode(memory) => (memory.mib(), String::new(), ""),
            MemoryRequest::PerCpu(memory) => {
                (memory.mib().saturating_mul(cpus), format!("{each} for each of {cpus} CPUs, "), "/per_cpu")
            }
            MemoryRequest::PerGpu(memory) => {
                let gpus = u64::from(spec.resources.gpus_per_node);
                (memory.mib().saturating_mul(gpus), format!("{each} for each of {gpus} GPUs, "), "/per_gpu")
            }
        };
        let most = most_of_node(spec, chosen, |group| group.memory_mib)?;
        (asked > most).then(|| {
            let names = names(chosen.iter().copied());
            let detail = format!(
                "is {times}{asked} MiB on each node; no node of {names} has more than {most} MiB (sinfo, {}). Request less",
                self.said()
            );
            Violation::new(format!("/resources/memory{place}"), "memory_limit", detail)
        })
    }

    /// The violation of the processors of nodes.
    pub(super) fn cpus(&self, spec: &JobSpec, chosen: &[&PartitionInfo]) -> Option<Violation> {
        if spec.options.drops("cpus-per-task") {
            return None;
        }
        let (each, tasks) = (spec.resources.cpus_per_task, spec.resources.tasks_per_node);
        let asked = u64::from(each) * u64::from(tasks);
        let most = most_of_node(spec, chosen, |group| u64::from(group.cpus))?;
        (asked > most).then(|| {
            let names = names(chosen.iter().copied());
            let detail = format!(
                "is {each} for each of {tasks} tasks, {asked} CPUs on each node; no node of {names} has more than {most} \
                 (sinfo, {}). Request fewer",
                self.said()
            );
            Violation::new("/resources/cpus_per_task", "cpu_limit", detail)
        })
    }

    /// The violations of the amounts of generic resources. A resource that no node has is an unknown word.
    pub(super) fn gres(&self, spec: &JobSpec, chosen: &[&PartitionInfo]) -> Vec<Violation> {
        let violation = |(pointer, gres): (String, Gres)| {
            let most = most_of(&gres, chosen).filter(|most| (1..u64::from(gres.count)).contains(most))?;
            let names = names(chosen.iter().copied());
            let detail = format!(
                "is {gres} on each node; no node of {names} has more than {most} of it (sinfo, {}). Request less",
                self.said()
            );
            Some(Violation::new(pointer, "gres_limit", detail))
        };
        requested(spec).into_iter().filter_map(violation).collect()
    }
}

/// The generic resources that a job asks for by name or type, each with the pointer to its field.
pub(super) fn requested(spec: &JobSpec) -> Vec<(String, Gres)> {
    if spec.options.drops("gres") {
        return Vec::new();
    }
    let at = |(index, gres): (usize, &Gres)| (format!("/resources/gres/{index}"), gres.clone());
    let listed = spec.options.gres.iter().enumerate().map(at);
    let count = spec.resources.gpus_per_node;
    let typed = spec.options.gpu_type.clone().filter(|_| count > 0).and_then(|kind| {
        let gres = Gres { name: "gpu".parse().ok()?, kind: Some(kind), count };
        Some(("/resources/gpu_type".to_owned(), gres))
    });
    typed.into_iter().chain(listed).collect()
}

/// How much of a resource the best node of the partitions has; `None` if that is not known.
pub(super) fn most_of(gres: &Gres, chosen: &[&PartitionInfo]) -> Option<u64> {
    let counts: Option<Vec<u64>> = chosen.iter().map(|partition| gres.most_in(partition)).collect();
    counts?.into_iter().max()
}

/// The most that one node with the job's GPUs has; `None` if that is not known.
fn most_of_node(
    spec: &JobSpec,
    chosen: &[&PartitionInfo],
    amount: impl Fn(&NodeGroup) -> u64,
) -> Option<u64> {
    let fits = |group: &&NodeGroup| group.count > 0 && group.gpus >= spec.resources.gpus_per_node;
    let groups: Vec<&NodeGroup> = chosen.iter().flat_map(|partition| &partition.nodes).filter(fits).collect();
    if groups.iter().any(|group| group.some_have_more) {
        return None;
    }
    groups.into_iter().map(amount).max()
}

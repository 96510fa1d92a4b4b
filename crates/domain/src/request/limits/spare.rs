//! How many nodes a job can do without.

use slurm::{NodeGroup, Partition, PartitionInfo, PartitionList};

use super::SaidLimits;
use crate::request::spec::JobSpec;

impl SaidLimits {
    /// How many nodes the job can be kept away from and still has as many as it needs in one of its partitions; none when
    /// nobody knows. A node that does not work now is not counted, and may be one of those that are kept away from: it
    /// is rather one too few.
    pub fn spare_nodes(&self, spec: &JobSpec) -> Option<usize> {
        let listed: Vec<Partition> = spec.partitions.iter().flat_map(PartitionList::iter).collect();
        let chosen = self.chosen(&listed);
        let most = chosen.iter().map(|partition| usable(partition, spec)).max().filter(|_| self.fresh)?;
        usize::try_from(most.saturating_sub(spec.resources.nodes)).ok()
    }
}

fn usable(partition: &PartitionInfo, spec: &JobSpec) -> u32 {
    let fits = |group: &&NodeGroup| group.gpus >= spec.resources.gpus_per_node && works(&group.state);
    partition.nodes.iter().filter(fits).fold(0, |sum, group| sum.saturating_add(group.count))
}

/// Whether a node in this state takes jobs, now or when others have ended (sinfo(1), NODE STATE CODES).
fn works(state: &str) -> bool {
    const NOT: [&str; 9] = ["down", "drain", "fail", "error", "inval", "future", "maint", "reserved", "unk"];
    !state.contains('*') && !NOT.iter().any(|word| state.starts_with(word))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use chrono::DateTime;
    use test_case::test_case;

    use super::*;
    use crate::fixtures::command_job;

    fn partition(name: &str, groups: &[(&str, u32, u32)]) -> PartitionInfo {
        let group = |(state, count, gpus): &(&str, u32, u32)| NodeGroup {
            state: (*state).to_owned(),
            count: *count,
            cpus: 64,
            memory_mib: 1,
            gpus: *gpus,
            gpu_types: BTreeSet::new(),
        };
        PartitionInfo {
            name: name.parse().unwrap(),
            is_default: name == "polar",
            availability: "up".to_owned(),
            time_limit: None,
            default_time: None,
            max_nodes: None,
            allow_accounts: None,
            nodes: groups.iter().map(group).collect(),
        }
    }

    fn said() -> SaidLimits {
        let partitions = vec![
            partition(
                "polar",
                &[("idle", 2, 8), ("mixed", 1, 8), ("drained", 3, 8), ("idle*", 4, 8), ("idle", 9, 0)],
            ),
            partition("large", &[("allocated", 40, 8), ("down", 2, 8)]),
            partition("lone", &[("idle", 1, 8)]),
        ];
        SaidLimits { partitions, all_must_allow: false, at: DateTime::UNIX_EPOCH, fresh: true }
    }

    fn spare(said: &SaidLimits, nodes: u32, list: &str) -> Option<usize> {
        let mut spec = command_job().spec;
        spec.resources.nodes = nodes;
        spec.partitions = Some(list).filter(|list| !list.is_empty()).map(|list| list.parse().unwrap());
        said.spare_nodes(&spec)
    }

    #[test_case(1, "lone" => Some(0) ; "the only node there is")]
    #[test_case(3, "polar" => Some(0) ; "all nodes that work and have GPUs")]
    #[test_case(1, "polar" => Some(2))]
    #[test_case(9, "polar" => Some(0) ; "more than there are")]
    #[test_case(3, "polar,large" => Some(37) ; "it runs in one of its partitions")]
    #[test_case(1, "" => Some(2) ; "in the default one if it names none")]
    #[test_case(1, "nosuch" => None)]
    fn a_job_can_do_without_what_its_best_partition_has_beyond_its_need(
        nodes: u32,
        list: &str,
    ) -> Option<usize> {
        spare(&said(), nodes, list)
    }

    #[test]
    fn what_was_said_long_ago_is_not_known() {
        assert_eq!(spare(&SaidLimits { fresh: false, ..said() }, 1, "lone"), None);
    }
}

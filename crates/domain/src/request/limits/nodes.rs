//! The sizes of partitions: whether a job's nodes fit into one, and whether enough of its nodes work.

use slurm::{NodeGroup, Partition, PartitionInfo, PartitionList};

use super::{ReportedLimits, allows_time, hours, names, or_only};
use crate::{
    cluster::resources::{Resources, counted},
    job::stored::Job,
    request::spec::JobSpec,
    violation::Violation,
};

impl ReportedLimits {
    /// How many nodes the job can exclude and still have enough in one of its partitions; `None` if that is unknown.
    ///
    /// Nodes that are down do not count. An excluded node may be among them, so the number may be one too low.
    pub fn spare_nodes(&self, spec: &JobSpec) -> Option<usize> {
        let needed = spec.resources.nodes.saturating_add(excluded_by_owner(spec));
        usize::try_from(self.most_usable(spec)?.saturating_sub(needed)).ok()
    }

    /// Whether one of the job's partitions surely has enough nodes that work, busy or not.
    pub fn has_nodes_for(&self, job: &Job) -> bool {
        let excluded = job.attempt.as_ref().map_or(0, |attempt| attempt.excluded.len());
        let excluded = u32::try_from(excluded).unwrap_or(u32::MAX);
        let needed =
            job.spec.resources.nodes.saturating_add(excluded).saturating_add(excluded_by_owner(&job.spec));
        self.most_usable(&job.spec).is_some_and(|most| most >= needed)
    }

    /// The number of nodes that work in the best of the job's partitions; `None` if it is unknown.
    fn most_usable(&self, spec: &JobSpec) -> Option<u32> {
        let listed: Vec<Partition> = spec.partitions.iter().flat_map(PartitionList::iter).collect();
        let works = |group: &NodeGroup| works(&group.state);
        let usable = |partition: &&PartitionInfo| count(partition, spec, works);
        self.chosen(&listed).iter().map(usable).max().filter(|_| self.fresh)
    }

    /// The violation of the partitions' sizes: none that allows the job's time can hold its nodes.
    pub(super) fn nodes(&self, spec: &JobSpec, chosen: &[&PartitionInfo]) -> Option<Violation> {
        let Resources { nodes, gpus_per_node: gpus, max_gpus_per_node, time, .. } = spec.resources;
        let long: Vec<&PartitionInfo> =
            chosen.iter().copied().filter(|partition| allows_time(partition, spec)).collect();
        let searched = if long.is_empty() { chosen } else { &long };
        // A partition of unknown size rejects nothing, and neither does an old report: partitions grow.
        let rooms: Vec<u32> =
            searched.iter().map(|partition| room(partition, spec)).collect::<Option<_>>()?;
        let most = rooms.iter().copied().max().filter(|most| self.fresh && nodes > *most)?;

        let gpus_each =
            if gpus > 0 { format!(" with {} each", counted(gpus.into(), "GPU")) } else { String::new() };
        let asked = counted(nodes.into(), "node") + &gpus_each;
        let of_these = if searched.len() < chosen.len() {
            format!("of the partitions that allow {} hours, ", hours(time.minutes()))
        } else {
            String::new()
        };
        let size = |(partition, room): (&&PartitionInfo, u32)| {
            let verb = if partition.max_nodes == Some(room) { "allows" } else { "has" };
            format!("partition {} {verb} {room}", partition.name)
        };
        let sizes: Vec<String> = searched.iter().zip(rooms).map(size).collect();
        let holds = |partition: &&PartitionInfo| {
            allows_time(partition, spec) && room(partition, spec).is_some_and(|room| nodes <= room)
        };
        let or_only = or_only("have them", &names(self.partitions.iter().filter(holds)));
        // By TAO's rule `num_gpus` may be what sets the number of nodes.
        let total = spec.requested_gpus.filter(|asked| asked.div_ceil(max_gpus_per_node.max(1)) == nodes);
        let (field, asked, limit) = match total {
            Some(total) => {
                let limit = counted(most.saturating_mul(gpus).into(), "GPU");
                ("num_gpus", format!("is {total}, which needs {asked}"), limit)
            }
            None => ("num_nodes", format!("is {asked}"), counted(most.into(), "node")),
        };
        let remedy =
            if most > 0 { format!("Request at most {limit}") } else { "Request less time".to_owned() };
        let detail =
            format!("{asked}; {of_these}{} (sinfo, {}). {remedy}{or_only}", sizes.join(", "), self.said());
        Some(Violation::new(format!("/resources/{field}"), "node_limit", detail))
    }
}

fn excluded_by_owner(spec: &JobSpec) -> u32 {
    let nodes = spec.options.exclude.as_ref().map_or(0, |set| set.nodes().len());
    u32::try_from(nodes).unwrap_or(u32::MAX)
}

/// The most nodes that the job can get in a partition when all of them work; `None` if the size is not known.
fn room(partition: &PartitionInfo, spec: &JobSpec) -> Option<u32> {
    let nodes = count(partition, spec, |_| true);
    let most = partition.max_nodes.map_or(nodes, |most| most.min(nodes));
    (partition.node_count() > 0).then_some(most)
}

/// The number of nodes with the GPUs that the job needs on each.
fn count(partition: &PartitionInfo, spec: &JobSpec, counts: impl Fn(&NodeGroup) -> bool) -> u32 {
    let fits = |group: &&NodeGroup| group.gpus >= spec.resources.gpus_per_node && counts(group);
    partition.nodes.iter().filter(fits).fold(0, |sum, group| sum.saturating_add(group.count))
}

/// Whether a node in this state accepts jobs, now or when others have ended (sinfo(1), NODE STATE CODES).
fn works(state: &str) -> bool {
    const NOT: [&str; 9] = ["down", "drain", "fail", "error", "inval", "future", "maint", "reserved", "unk"];
    !state.contains('*') && !NOT.iter().any(|word| state.starts_with(word))
}

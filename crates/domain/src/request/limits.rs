//! The limits of partitions, checked when a job is accepted and not after hours in the queue.

mod hardware;
mod nodes;
mod words;

use std::fmt;

use chrono::TimeDelta;
use slurm::{Partition, PartitionInfo, PartitionList, TimeLimit};

use crate::{
    clock::Timestamp,
    request::{options::too_short, spec::JobSpec, warnings::Warning},
    violation::Violation,
};

/// TAO's packaged partitions, in any order. TAO limits them to `max_time_hours`, even if they allow more.
const PACKAGED: [&str; 4] = ["polar", "polar3", "polar4", "grizzly"];

/// The known limits of a cluster.
#[derive(Debug, Clone)]
pub struct PartitionLimits {
    /// The configured limit in hours: for TAO's packaged partitions, and for partitions with an unknown limit.
    pub max_time_hours: f64,
    /// The limits that the cluster reported, if it ever did.
    pub reported: Option<ReportedLimits>,
}

/// The partitions that a cluster reported.
#[derive(Debug, Clone)]
pub struct ReportedLimits {
    /// All of them, including hidden ones.
    pub partitions: Vec<PartitionInfo>,
    /// Whether Slurm rejects a job that exceeds the limits of any one of its partitions (`EnforcePartLimits=ALL`).
    pub all_must_allow: bool,
    /// When the cluster reported them.
    pub at: Timestamp,
    /// Whether the report is recent: otherwise a missing partition may be a new one.
    pub fresh: bool,
}

/// Checks a job against the limits of its partitions.
pub fn check(spec: &JobSpec, limits: &PartitionLimits) -> Vec<Violation> {
    let listed: Vec<Partition> = spec.partitions.iter().flat_map(PartitionList::iter).collect();
    let Some(reported) = &limits.reported else {
        return configured_time(spec, limits.max_time_hours).into_iter().collect();
    };
    if let Some(unknown) = reported.unknown(&listed) {
        return vec![unknown];
    }
    let chosen = reported.chosen(&listed);
    let configured = || configured_time(spec, limits.max_time_hours);
    let time = if is_packaged(&listed) {
        configured().or_else(|| reported.time(spec, &chosen))
    } else if knows_time_of(&chosen) {
        reported.time(spec, &chosen)
    } else {
        reported.time(spec, &chosen).or_else(configured)
    };
    let shape = reported.gpus(spec, &chosen).or_else(|| reported.nodes(spec, &chosen));
    let size = [reported.memory(spec, &chosen), reported.cpus(spec, &chosen)];
    let gres = reported.gres(spec, &chosen);
    let unknown = reported.unknown_words(spec, &chosen).into_iter();
    let certain = unknown.filter(|word| word.is_certain).map(|word| word.violation);
    time.into_iter().chain(shape).chain(size.into_iter().flatten()).chain(gres).chain(certain).collect()
}

/// The violation of a job that would not be started any more: its deadline is over, or too near for its time limit.
pub fn too_late(spec: &JobSpec, now: Timestamp) -> Option<Violation> {
    let left = spec.deadline?.most_left(now)?;
    let detail = if left <= TimeDelta::zero() {
        Some("is over: name a later time, or leave it out".to_owned())
    } else {
        too_short(left, spec.resources.time)
    };
    Some(Violation::new("/backend_details/deadline", "contradiction", detail?))
}

/// Words of a job that the cluster did not report, although it may know them.
pub fn doubts(spec: &JobSpec, limits: &PartitionLimits) -> Vec<Warning> {
    let Some(reported) = &limits.reported else { return Vec::new() };
    let listed: Vec<Partition> = spec.partitions.iter().flat_map(PartitionList::iter).collect();
    let unknown = reported.unknown_words(spec, &reported.chosen(&listed)).into_iter();
    unknown.filter(|word| !word.is_certain).map(|word| word.violation).collect()
}

fn is_packaged(listed: &[Partition]) -> bool {
    listed.len() == PACKAGED.len() && listed.iter().all(|name| PACKAGED.contains(&name.as_str()))
}

fn configured_time(spec: &JobSpec, max_time_hours: f64) -> Option<Violation> {
    let hours = hours(spec.resources.time.minutes());
    (hours > max_time_hours).then(|| {
        time_limit(format_args!(
            "is {hours} hours; this cluster allows at most {max_time_hours} (max_time_hours), except on partitions that allow more by \
             Slurm's own report. Request less, or name such a partition in backend_details.partition"
        ))
    })
}

impl ReportedLimits {
    fn unknown(&self, listed: &[Partition]) -> Option<Violation> {
        let known = |name: &Partition| self.partitions.iter().any(|partition| partition.name == *name);
        let unknown = listed.iter().find(|name| !known(name)).filter(|_| self.fresh)?;
        let names = names(self.partitions.iter());
        let detail = format!("the cluster has no partition `{unknown}`; its partitions are {names}");
        Some(Violation::new("/backend_details/partition", "unknown_partition", detail))
    }

    /// The partitions that the job may run in: the cluster's default partition if it lists none.
    fn chosen(&self, listed: &[Partition]) -> Vec<&PartitionInfo> {
        let is_chosen = |partition: &&PartitionInfo| {
            if listed.is_empty() { partition.is_default } else { listed.contains(&partition.name) }
        };
        self.partitions.iter().filter(is_chosen).collect()
    }

    /// The violation of the time limit. With `EnforcePartLimits=ALL` every partition must allow the time, otherwise one.
    fn time(&self, spec: &JobSpec, chosen: &[&PartitionInfo]) -> Option<Violation> {
        let asked = spec.resources.time;
        let short: Vec<&PartitionInfo> =
            chosen.iter().copied().filter(|partition| !allows_time(partition, spec)).collect();
        let refused = if self.all_must_allow { !short.is_empty() } else { short.len() == chosen.len() };
        if !refused || short.is_empty() {
            return None;
        }
        let limits: Vec<String> = short.iter().filter_map(|partition| reported_time(partition)).collect();
        let long = names(self.partitions.iter().filter(|partition| allows_time(partition, spec)));
        let remedy = or_only("allow it", &long);
        Some(time_limit(format_args!(
            "is {} hours; {} (sinfo, {}). Request less{remedy}",
            hours(asked.minutes()),
            limits.join(", "),
            self.said(),
        )))
    }

    fn gpus(&self, spec: &JobSpec, chosen: &[&PartitionInfo]) -> Option<Violation> {
        let asked = spec.resources.gpus_per_node;
        let most = chosen.iter().filter_map(|partition| partition.most_gpus_per_node()).max()?;
        (asked > most).then(|| {
            let names = names(chosen.iter().copied());
            let detail = format!(
                "is {asked} GPUs on each node; no node of {names} has more than {most} (sinfo, {}). Request fewer per node: \
                 resources.gpus_per_node and num_nodes set the numbers explicitly",
                self.said()
            );
            let field = if spec.requested_gpus.is_some() { "num_gpus" } else { "gpus_per_node" };
            Violation::new(format!("/resources/{field}"), "gpu_limit", detail)
        })
    }

    /// When sinfo said so.
    fn said(&self) -> impl fmt::Display {
        self.at.format("%Y-%m-%d %H:%M UTC")
    }
}

fn allows_time(partition: &PartitionInfo, spec: &JobSpec) -> bool {
    match partition.time_limit {
        Some(TimeLimit::Limited(limit)) => spec.resources.time <= limit,
        // An unknown limit rejects nothing.
        Some(TimeLimit::Unlimited) | None => true,
    }
}

/// The end of an advice; nothing without partitions.
fn or_only(what: &str, partitions: &str) -> String {
    if partitions.is_empty() {
        String::new()
    } else {
        format!(", or only partitions that {what}: {partitions}")
    }
}

fn knows_time_of(chosen: &[&PartitionInfo]) -> bool {
    !chosen.is_empty() && chosen.iter().all(|partition| partition.time_limit.is_some())
}

fn time_limit(detail: fmt::Arguments<'_>) -> Violation {
    Violation::new("/resources/time_hours", "time_limit", detail)
}

fn reported_time(partition: &PartitionInfo) -> Option<String> {
    match partition.time_limit? {
        TimeLimit::Limited(limit) => {
            Some(format!("partition {} allows {}", partition.name, hours(limit.minutes())))
        }
        TimeLimit::Unlimited => None,
    }
}

fn hours(minutes: u32) -> f64 {
    f64::from(minutes) / 60.0
}

/// The names, cut after thirty.
fn names<'a>(partitions: impl Iterator<Item = &'a PartitionInfo>) -> String {
    const MOST: usize = 30;
    let mut names: Vec<&str> = partitions.map(|partition| partition.name.as_str()).take(MOST + 1).collect();
    if names.len() > MOST {
        names[MOST] = "…";
    }
    names.join(", ")
}

#[cfg(test)]
mod tests;

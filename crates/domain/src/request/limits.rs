//! What the partitions allow, held against a job: said when it is sent, and not after hours in the queue.

mod spare;

use slurm::{Partition, PartitionInfo, TimeLimit};

use crate::{clock::Timestamp, request::spec::JobSpec, violation::Violation};

/// TAO's packaged partitions, in any order. TAO treats them as queues of at most `max_time_hours`, whatever they allow.
const PACKAGED: [&str; 4] = ["polar", "polar3", "polar4", "grizzly"];

/// What is known of the limits of a cluster.
#[derive(Debug, Clone)]
pub struct PartitionLimits {
    /// The configured longest time limit, in hours: for TAO's packaged partitions, and for what is not known otherwise.
    pub max_time_hours: f64,
    /// What the cluster itself has said; none when it never has.
    pub said: Option<SaidLimits>,
}

/// What a cluster has said about its partitions.
#[derive(Debug, Clone)]
pub struct SaidLimits {
    /// All of them, hidden ones too.
    pub partitions: Vec<PartitionInfo>,
    /// Whether Slurm refuses a job that is beyond the limits of only one of its partitions.
    pub all_must_allow: bool,
    /// When it said so.
    pub at: Timestamp,
    /// Whether that was lately: a partition that is not among them may have been made since.
    pub fresh: bool,
}

/// Everything in a job that its partitions cannot give.
pub fn check(spec: &JobSpec, limits: &PartitionLimits) -> Vec<Violation> {
    let listed: Vec<Partition> = spec.partitions.iter().flat_map(slurm::PartitionList::iter).collect();
    let Some(said) = &limits.said else {
        return configured_time(spec, limits.max_time_hours).into_iter().collect();
    };
    if let Some(unknown) = said.unknown(&listed) {
        return vec![unknown];
    }
    let chosen = said.chosen(&listed);
    let configured = || configured_time(spec, limits.max_time_hours);
    let time = if is_packaged(&listed) {
        configured().or_else(|| said.time(spec, &chosen))
    } else if knows_time_of(&chosen) {
        said.time(spec, &chosen)
    } else {
        said.time(spec, &chosen).or_else(configured)
    };
    time.into_iter().chain(said.gpus(spec, &chosen)).collect()
}

fn is_packaged(listed: &[Partition]) -> bool {
    listed.len() == PACKAGED.len() && listed.iter().all(|name| PACKAGED.contains(&name.as_str()))
}

fn configured_time(spec: &JobSpec, max_time_hours: f64) -> Option<Violation> {
    let hours = hours(spec.resources.time.minutes());
    (hours > max_time_hours).then(|| {
        time_limit(format_args!(
            "asks for {hours} hours; this cluster allows {max_time_hours} (its max_time_hours): ask for less, or for a \
             partition that allows more"
        ))
    })
}

impl SaidLimits {
    fn unknown(&self, listed: &[Partition]) -> Option<Violation> {
        let known = |name: &Partition| self.partitions.iter().any(|partition| partition.name == *name);
        let unknown = listed.iter().find(|name| !known(name)).filter(|_| self.fresh)?;
        let names = names(self.partitions.iter());
        let detail = format!("the cluster has no partition `{unknown}`; it has {names}");
        Some(Violation::new("/backend_details/partition", "unknown_partition", detail))
    }

    /// The partitions the job may run in; the cluster's default one if it lists none.
    fn chosen(&self, listed: &[Partition]) -> Vec<&PartitionInfo> {
        let is_chosen = |partition: &&PartitionInfo| {
            if listed.is_empty() { partition.is_default } else { listed.contains(&partition.name) }
        };
        self.partitions.iter().filter(is_chosen).collect()
    }

    /// With `EnforcePartLimits=ALL` one partition that is too short is enough to be refused, else all have to be.
    fn time(&self, spec: &JobSpec, chosen: &[&PartitionInfo]) -> Option<Violation> {
        let asked = spec.resources.time;
        let allows = |partition: &PartitionInfo| match partition.time_limit {
            Some(TimeLimit::Limited(limit)) => asked <= limit,
            // What is not known refuses nothing.
            Some(TimeLimit::Unlimited) | None => true,
        };
        let short: Vec<&PartitionInfo> =
            chosen.iter().copied().filter(|partition| !allows(partition)).collect();
        let refused = if self.all_must_allow { !short.is_empty() } else { short.len() == chosen.len() };
        if !refused || short.is_empty() {
            return None;
        }
        let limits: Vec<String> = short.iter().filter_map(|partition| said_time(partition)).collect();
        let long = names(self.partitions.iter().filter(|partition| allows(partition)));
        let remedy = if long.is_empty() {
            String::new()
        } else {
            format!(", or name only partitions that allow it: {long}")
        };
        Some(time_limit(format_args!(
            "asks for {} hours; {} (sinfo, {}): ask for less{remedy}",
            hours(asked.minutes()),
            limits.join(", "),
            self.at.format("%Y-%m-%d %H:%M UTC"),
        )))
    }

    fn gpus(&self, spec: &JobSpec, chosen: &[&PartitionInfo]) -> Option<Violation> {
        let asked = spec.resources.gpus_per_node;
        let most = chosen.iter().filter_map(|partition| partition.most_gpus_per_node()).max()?;
        (asked > most).then(|| {
            let names = names(chosen.iter().copied());
            let detail = format!(
                "comes to {asked} GPUs on each node; no node of {names} has more than {most} (sinfo, {}): ask for less \
                 on each node (resources.gpus_per_node and num_nodes say it outright)",
                self.at.format("%Y-%m-%d %H:%M UTC")
            );
            Violation::new("/resources/num_gpus", "gpu_limit", detail)
        })
    }
}

fn knows_time_of(chosen: &[&PartitionInfo]) -> bool {
    !chosen.is_empty() && chosen.iter().all(|partition| partition.time_limit.is_some())
}

fn time_limit(detail: std::fmt::Arguments<'_>) -> Violation {
    Violation::new("/resources/time_hours", "time_limit", detail)
}

fn said_time(partition: &PartitionInfo) -> Option<String> {
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

/// The names, not more than a person reads.
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

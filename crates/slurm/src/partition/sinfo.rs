//! Parsing the partitions in the output of `sinfo` and `scontrol show partition`.

use super::{
    gres,
    info::{NodeGroup, PartitionInfo},
};
use crate::Partition;

impl PartitionInfo {
    /// Parses one row of `sinfo -o '%P|%a|%l|%L|%D|%t|%c|%m|%G'`: the partition without nodes, and one group of nodes.
    pub fn from_sinfo(text: &str) -> Option<(Self, NodeGroup)> {
        let fields: Vec<&str> = text.splitn(9, '|').map(str::trim).collect();
        let [name, availability, limit, default, count, state, cpus, memory, gres] = fields[..] else {
            return None;
        };
        let (gpus, gpu_types) = gres::gpus(gres);
        let group = NodeGroup {
            state: word(state)?,
            count: count.parse().ok()?,
            // A plus sign means that some nodes have more.
            cpus: cpus.trim_end_matches('+').parse().ok()?,
            memory_mib: memory.trim_end_matches('+').parse().ok()?,
            gpus,
            gpu_types,
        };
        let partition = Self {
            is_default: name.ends_with('*'),
            name: name.trim_end_matches('*').parse().ok()?,
            availability: word(availability)?,
            time_limit: limit.parse().ok(),
            default_time: default.parse().ok(),
            max_nodes: None,
            allow_accounts: None,
            nodes: Vec::new(),
        };
        Some((partition, group))
    }
}

/// A single word of Slurm's output, such as `idle*` or `n/a`.
fn word(text: &str) -> Option<String> {
    let is_word = (1..=40).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
    is_word.then(|| text.to_owned())
}

/// The limits of a partition that only `scontrol show partition --oneliner` prints.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionSettings {
    /// `MaxNodes`: the most nodes of a job; `None` for no limit.
    pub max_nodes: Option<u32>,
    /// `AllowAccounts`: the accounts that may use it; `None` for all.
    pub allow_accounts: Option<Vec<String>>,
}

impl PartitionSettings {
    /// Parses one line of `scontrol show partition --oneliner`.
    pub fn from_scontrol(text: &str) -> Option<(Partition, Self)> {
        let value = |key: &str| text.split(' ').find_map(|pair| pair.strip_prefix(key)?.strip_prefix('='));
        let accounts = value("AllowAccounts").filter(|accounts| *accounts != "ALL" && *accounts != "(null)");
        let accounts = accounts.map(|accounts| accounts.split(',').filter_map(word).take(1000).collect());
        let max_nodes = value("MaxNodes").and_then(|nodes| nodes.parse().ok());
        Some((value("PartitionName")?.parse().ok()?, Self { max_nodes, allow_accounts: accounts }))
    }
}

//! Parsing the partitions in the output of `sinfo` and `scontrol show partition`.

use std::collections::BTreeSet;

use super::{
    gres,
    info::{NodeGroup, PartitionInfo},
};
use crate::Partition;

/// `partitions.sh` cuts a longer row.
const LONGEST_ROW: usize = 4000;

impl PartitionInfo {
    /// Parses one row of `sinfo -o '%P|%a|%l|%L|%D|%t|%c|%m|%G|%f'`: the partition without nodes, and one group of nodes.
    pub fn from_sinfo(text: &str) -> Option<(Self, NodeGroup)> {
        let fields: Vec<&str> = text.splitn(10, '|').map(str::trim).collect();
        let [name, availability, limit, default, count, state, cpus, memory, gres, ref features @ ..] =
            fields[..]
        else {
            return None;
        };
        // The lists of a cut row have lost their ends.
        let is_whole = text.len() < LONGEST_ROW;
        let (gpus, gpu_types) = gres::gpus(gres);
        let group = NodeGroup {
            state: word(state)?,
            count: count.parse().ok()?,
            // A plus sign means that some nodes have more.
            cpus: cpus.trim_end_matches('+').parse().ok()?,
            memory_mib: memory.trim_end_matches('+').parse().ok()?,
            gpus,
            gpu_types,
            gres: is_whole.then(|| gres::amounts(gres)),
            features: features.first().filter(|_| is_whole).map(|features| feature_names(features)),
            some_have_more: cpus.ends_with('+') || memory.ends_with('+'),
        };
        let partition = Self {
            is_default: name.ends_with('*'),
            name: name.trim_end_matches('*').parse().ok()?,
            availability: word(availability)?,
            time_limit: limit.parse().ok(),
            default_time: default.parse().ok(),
            max_nodes: None,
            allow_accounts: None,
            associations: None,
            nodes: Vec::new(),
        };
        Some((partition, group))
    }
}

/// The features of sinfo's `%f`: names separated by commas, `(null)` for none.
fn feature_names(text: &str) -> BTreeSet<String> {
    text.split(',').filter(|name| *name != "(null)").filter_map(word_of_any_length).collect()
}

fn word_of_any_length(text: &str) -> Option<String> {
    let is_word = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
    is_word.then(|| text.to_owned())
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

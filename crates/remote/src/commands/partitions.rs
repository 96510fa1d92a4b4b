//! Reads the partitions of a cluster.

use std::{collections::HashMap, time::Duration};

use crate::{
    Call, ParseError, RawOutput, RemoteCommand, Repeat, answer::Answer, rpcs, stdin_writer::StdinWriter,
};
use slurm::{Association, Associations, NodeGroup, Partition, PartitionInfo, PartitionSettings};

const PROGRAM: &str = program!("preamble", "partitions");

/// sinfo may take 30 s and runs beside the other commands; the rest only reads files.
const DEADLINE: Duration = Duration::from_secs(40);

/// Reads all partitions, including hidden ones, because a job may name them, and the accounts and QOS of the user.
#[derive(Debug, Clone, Copy, Default)]
pub struct Partitions;

/// The partitions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionsAnswer {
    /// In the order of `slurm.conf`.
    pub partitions: Vec<PartitionInfo>,
    /// Whether Slurm refuses a job that exceeds the limits of one of its partitions (`EnforcePartLimits=ALL` in
    /// slurm.conf(5)). False if it is not known.
    pub all_must_allow: bool,
    /// The least number that no index of an array may have (`MaxArraySize` in slurm.conf(5)).
    pub max_array_size: Option<u32>,
    /// The number of malformed rows.
    pub dropped: usize,
}

impl RemoteCommand for Partitions {
    type Output = PartitionsAnswer;

    const NAME: &'static str = "partitions";
    const REPEAT: Repeat = Repeat::Safe;

    fn render(&self) -> Call {
        StdinWriter::default().call(PROGRAM, DEADLINE, super::STDOUT_BASE + 8 * 1024 * 1024)
    }

    fn rpcs(&self) -> u32 {
        rpcs::SHOW_PARTITION + rpcs::SHOW_CONFIG + rpcs::SACCTMGR + rpcs::SINFO
    }

    fn parse(&self, raw: &RawOutput) -> Result<Self::Output, ParseError> {
        let answer = Answer::read(Self::NAME, raw)?;
        let mut found = PartitionsAnswer {
            partitions: Vec::new(),
            all_must_allow: false,
            max_array_size: None,
            dropped: 0,
        };
        let mut described = HashMap::new();
        let (mut cluster, mut enforce, mut rows) = (String::new(), None, Vec::new());
        for mut line in answer.lines() {
            match line.tag {
                b"REFUSED" => return Err(line.failure()?.1.into()),
                b"ENFORCE" => found.all_must_allow = line.rest().trim().eq_ignore_ascii_case("all"),
                b"ARRAY" => found.max_array_size = line.rest().trim().parse().ok(),
                b"CLUSTER" => line.rest().trim().clone_into(&mut cluster),
                b"ACCOUNTS" => {
                    enforce = Some(line.rest().trim().to_owned()).filter(|words| !words.is_empty());
                }
                b"ASSOC" => rows.extend(Association::from_sacctmgr(&line.rest())),
                b"SHOW" => described.extend(PartitionSettings::from_scontrol(&line.rest())),
                b"ROW" => match PartitionInfo::from_sinfo(&line.rest()) {
                    Some((partition, group)) => add(&mut found.partitions, partition, group),
                    None => found.dropped += 1,
                },
                _ => return Err(line.malformed("an unknown kind of line")),
            }
        }
        // Every cluster has a partition. An empty list would refuse each job that names one.
        if found.partitions.is_empty() {
            return Err(answer.lacks("any partition"));
        }
        for partition in &mut found.partitions {
            if let Some(PartitionSettings { max_nodes, allow_accounts }) = described.remove(&partition.name) {
                (partition.max_nodes, partition.allow_accounts) = (max_nodes, allow_accounts);
            }
            partition.associations = associations(&partition.name, &cluster, enforce.as_deref(), &rows);
        }
        Ok(found)
    }
}

/// The associations for one partition. None at all means that they are not known: a user without any could run no job.
fn associations(
    partition: &Partition,
    cluster: &str,
    enforce: Option<&str>,
    rows: &[Association],
) -> Option<Associations> {
    let mut found = Associations::new(enforce?);
    let here = |row: &&Association| {
        row.cluster == cluster && row.partition.as_ref().is_none_or(|only| only == partition)
    };
    rows.iter().filter(here).for_each(|row| found.add(row));
    (!found.accounts.is_empty()).then_some(found)
}

fn add(partitions: &mut Vec<PartitionInfo>, partition: PartitionInfo, group: NodeGroup) {
    match partitions.iter_mut().find(|known| known.name == partition.name) {
        Some(known) => known.nodes.push(group),
        None => partitions.push(PartitionInfo { nodes: vec![group], ..partition }),
    }
}

#[cfg(test)]
#[path = "partitions_tests.rs"]
mod tests;

//! What the partitions of a cluster are.

use std::{collections::HashMap, time::Duration};

use crate::{
    Call, ParseError, RawOutput, RemoteCommand, Repeat, Subject, answer::Answer, stdin_writer::StdinWriter,
};
use slurm::PartitionSettings;
use slurm::{NodeGroup, PartitionInfo};

const PROGRAM: &str = concat!(
    include_str!("../programs/preamble.sh"),
    include_str!("../programs/say_file.sh"),
    include_str!("../programs/partitions.sh"),
);

/// sinfo gets 30 s and runs beside the others; what follows only reads files.
const DEADLINE: Duration = Duration::from_secs(40);

/// Asks for all partitions, hidden ones too: a job may name them.
#[derive(Debug, Clone, Copy, Default)]
pub struct Partitions;

/// What the partitions are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionsAnswer {
    /// In sinfo's order, which is that of `slurm.conf`.
    pub partitions: Vec<PartitionInfo>,
    /// Whether a job is refused that is beyond the limits of only one of its partitions (`EnforcePartLimits=ALL` in
    /// slurm.conf(5)). False when the site did not say.
    pub all_must_allow: bool,
    /// Rows that could not be read.
    pub dropped: usize,
}

impl RemoteCommand for Partitions {
    type Output = PartitionsAnswer;

    const NAME: &'static str = "partitions";
    const REPEAT: Repeat = Repeat::Safe;

    fn render(&self) -> Call {
        StdinWriter::new().call(PROGRAM, DEADLINE, super::STDOUT_BASE + 8 * 1024 * 1024)
    }

    fn parse(&self, raw: &RawOutput) -> Result<Self::Output, ParseError> {
        let answer = Answer::read(Self::NAME, raw)?;
        let mut found = PartitionsAnswer { partitions: Vec::new(), all_must_allow: false, dropped: 0 };
        let mut described = HashMap::new();
        for mut line in answer.lines() {
            match line.tag {
                b"REFUSED" => return Err(line.failure()?.1.into()),
                b"ENFORCE" => found.all_must_allow = line.rest().trim().eq_ignore_ascii_case("all"),
                b"SHOW" => described.extend(PartitionSettings::from_scontrol(&line.rest())),
                b"ROW" => match PartitionInfo::from_sinfo(&line.rest()) {
                    Some((partition, group)) => add(&mut found.partitions, partition, group),
                    None => found.dropped += 1,
                },
                _ => return Err(line.malformed("an unknown kind of line")),
            }
        }
        // There is no cluster without one. Believed, it would have every job refused that names a partition.
        if found.partitions.is_empty() {
            return Err(answer.lacks("any partition"));
        }
        for partition in &mut found.partitions {
            if let Some(PartitionSettings { max_nodes, allow_accounts }) = described.remove(&partition.name) {
                (partition.max_nodes, partition.allow_accounts) = (max_nodes, allow_accounts);
            }
        }
        Ok(found)
    }

    fn subjects(&self, _: Option<&PartitionsAnswer>) -> Vec<(Subject, Option<String>)> {
        Vec::new()
    }
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

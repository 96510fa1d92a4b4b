//! Which nodes Slurm does not trust.

use std::{collections::BTreeMap, time::Duration};

use crate::{
    Call, ParseError, RawOutput, RemoteCommand, Repeat, answer::Answer, rpcs, stdin_writer::StdinWriter,
};
use slurm::NodeName;

const PROGRAM: &str = program!("preamble", "node_health");

const DEADLINE: Duration = Duration::from_mins(1);

/// The words in the reason of a drained node that tell a fault from maintenance: those of Slurm itself (`slurmctld`,
/// `slurmd`) and of common health checks.
const FAULTS: [&str; 13] = [
    "not responding",
    "prolog error",
    "epilog error",
    "kill task failed",
    "batch job complete failure",
    "unexpectedly rebooted",
    "low realmemory",
    "gres/gpu count",
    "nhc:",
    "health",
    "xid",
    "ecc",
    "nvlink",
];

/// Asks about nodes by name.
#[derive(Debug, Clone, Default)]
pub struct NodeHealth {
    /// Which nodes.
    pub nodes: Vec<NodeName>,
}

/// What `sinfo` said; none when it did not answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeHealthAnswer {
    /// The nodes that are down, do not respond, or were drained for a fault, each with Slurm's word and reason.
    pub sick: Option<BTreeMap<NodeName, String>>,
}

impl RemoteCommand for NodeHealth {
    type Output = NodeHealthAnswer;

    const NAME: &'static str = "node_health";
    const REPEAT: Repeat = Repeat::Safe;

    fn render(&self) -> Call {
        let mut stdin = StdinWriter::default();
        stdin.field(self.nodes.len()).end_line();
        stdin.rows(&self.nodes);
        stdin.call(PROGRAM, DEADLINE, super::STDOUT_BASE + self.nodes.len() * 1000)
    }

    fn rpcs(&self) -> u32 {
        rpcs::SINFO
    }

    fn parse(&self, raw: &RawOutput) -> Result<Self::Output, ParseError> {
        let answer = Answer::read(Self::NAME, raw)?;
        let (mut answered, mut sick) = (false, BTreeMap::new());
        for mut line in answer.lines() {
            match line.tag {
                b"SINFO" => answered = line.value::<i32>()? == 0,
                b"NODE" => {
                    let row = line.rest();
                    let mut columns = row.splitn(3, '|');
                    let mut next = || columns.next().unwrap_or_default();
                    let (name, state, reason) = (next(), next(), next());
                    if let (Ok(name), Some(word)) = (name.parse::<NodeName>(), fault(state, reason))
                        && self.nodes.contains(&name)
                    {
                        sick.insert(name, word);
                    }
                }
                _ => return Err(line.malformed("an unknown kind of line")),
            }
        }
        Ok(NodeHealthAnswer { sick: answered.then_some(sick) })
    }
}

/// What is wrong with a node, if anything. `*` behind a state says that the node does not respond (sinfo(1), NODE
/// STATE CODES).
fn fault(state: &str, reason: &str) -> Option<String> {
    let plain = state.trim_end_matches(|c: char| !c.is_ascii_alphabetic());
    let printable: String = reason.chars().map(|c| if c.is_control() { ' ' } else { c }).take(100).collect();
    let why =
        if matches!(printable.as_str(), "" | "none") { String::new() } else { format!(" ({printable})") };
    let lower = reason.to_ascii_lowercase();
    match plain {
        "down" | "fail" | "failing" | "error" => Some(format!("{plain}{why}")),
        _ if state.contains('*') => Some(format!("not responding{why}")),
        "drained" | "draining" | "drain" if FAULTS.iter().any(|word| lower.contains(word)) => {
            Some(format!("{plain}{why}"))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use test_case::test_case;

    use super::*;

    #[test_case("idle", "none" => None)]
    #[test_case("mixed", "none" => None)]
    #[test_case("down", "test" => Some("down (test)".to_owned()))]
    #[test_case("down*", "Not responding" => Some("down (Not responding)".to_owned()))]
    #[test_case("idle*", "none" => Some("not responding".to_owned()))]
    #[test_case("drained", "kernel upgrade on Friday" => None ; "maintenance is no fault")]
    #[test_case("draining", "Kill task failed" => Some("draining (Kill task failed)".to_owned()))]
    #[test_case("drained", "NHC: check_nv_healthmon: GPU 3" => Some("drained (NHC: check_nv_healthmon: GPU 3)".to_owned()))]
    #[test_case("allocated+", "none" => None)]
    fn a_fault_is_told_from_maintenance(state: &str, reason: &str) -> Option<String> {
        fault(state, reason)
    }
}

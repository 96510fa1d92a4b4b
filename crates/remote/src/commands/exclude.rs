//! Sets the excluded nodes of jobs that wait.

use std::time::Duration;

use crate::{
    AttemptKey, Call, ParseError, RawOutput, RemoteCommand, Repeat, Subject, answer::Answer, rpcs,
    stdin_writer::StdinWriter, subject::subjects,
};
use slurm::{Failure, NodeName, SlurmJobId};

const PROGRAM: &str = program!("preamble", "exclude");

const DEADLINE: Duration = Duration::from_secs(100);

/// Sets the excluded nodes of jobs in the queue (`ExcNodeList` of scontrol(1)). Users may change their own jobs until
/// these start.
#[derive(Debug, Clone, Default)]
pub struct Exclude {
    /// The jobs, each with all its excluded nodes. The list replaces the earlier one.
    pub jobs: Vec<(SlurmJobId, AttemptKey, Vec<NodeName>)>,
}

/// The answer of scontrol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Excluded {
    /// For each job, in the order of `jobs`: why its list was not changed.
    pub failed: Vec<Option<Failure>>,
}

impl RemoteCommand for Exclude {
    type Output = Excluded;

    const NAME: &'static str = "exclude";
    const REPEAT: Repeat = Repeat::Safe;

    fn render(&self) -> Call {
        let mut stdin = StdinWriter::default();
        stdin.field(self.jobs.len()).end_line();
        for (index, (id, key, nodes)) in self.jobs.iter().enumerate() {
            let list: Vec<&str> = nodes.iter().map(NodeName::as_str).collect();
            stdin.field(index).field(id).field(&key.name).field(list.join(",")).end_line();
        }
        stdin.call(PROGRAM, DEADLINE, super::STDOUT_BASE + self.jobs.len() * super::encoded(2000))
    }

    fn rpcs(&self) -> u32 {
        rpcs::times(self.jobs.len(), rpcs::SQUEUE + rpcs::UPDATE)
    }

    fn parse(&self, raw: &RawOutput) -> Result<Self::Output, ParseError> {
        let answer = Answer::read(Self::NAME, raw)?;
        let mut failed: Vec<Option<Option<Failure>>> = vec![None; self.jobs.len()];
        for mut line in answer.lines() {
            let (b"DONE", index) = (line.tag, line.index(self.jobs.len())?) else {
                return Err(line.malformed("an unknown kind of line"));
            };
            let (code, failure) = line.failure()?;
            failed[index] = Some((code != 0).then_some(failure));
        }
        let all: Option<Vec<_>> = failed.into_iter().collect();
        Ok(Excluded { failed: all.ok_or_else(|| answer.lacks("the result of a job"))? })
    }

    fn subjects(&self, answer: Option<&Excluded>) -> Vec<(Subject, Option<String>)> {
        subjects(self.jobs.iter().map(|(_, key, _)| key.subject.clone()), |place| {
            Some(match answer?.failed.get(place)? {
                None => "changed".to_owned(),
                Some(failure) => format!("refused: {} ({})", failure.class, failure.rule_id),
            })
        })
    }
}

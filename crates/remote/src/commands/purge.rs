//! Removes the files of deleted jobs.

use std::time::Duration;

use uuid::Uuid;

use crate::{
    Call, ParseError, RawOutput, RemoteCommand, Repeat, Subject, answer::Answer, stdin_writer::StdinWriter,
    subject::subjects,
};
use slurm::{Failure, FailureClass, RemotePath};

const PROGRAM: &str = program!("preamble", "purge");

/// No job is begun after 90 s, and each may take 60 s.
const DEADLINE: Duration = Duration::from_secs(170);

/// Removes the results, logs, markers, specification and script of jobs: only files in this service's places with the job's
/// UUID in their names. Results and logs are removed only if this service created them, because a caller may choose a UUID
/// that others have used. A removal that takes too long continues in the next call.
#[derive(Debug, Clone, Default)]
pub struct Purge {
    /// The jobs, each with a base directory. A job with several base directories is listed several times.
    pub jobs: Vec<(RemotePath, Uuid)>,
}

/// The result of a purge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Purged {
    /// The jobs with files that are left, or may be, and why; by their place in `jobs`.
    pub left: Vec<(usize, Failure)>,
    /// Files with the UUID of a purged job that this service did not create; they stay. In lines.
    pub others: Vec<(usize, String)>,
}

impl RemoteCommand for Purge {
    type Output = Purged;

    const NAME: &'static str = "purge";
    const REPEAT: Repeat = Repeat::Safe;

    fn render(&self) -> Call {
        let mut stdin = StdinWriter::default();
        stdin.field(self.jobs.len()).end_line();
        for (index, (base, id)) in self.jobs.iter().enumerate() {
            stdin.field(index).field(base).field(id).end_line();
        }
        stdin.call(PROGRAM, DEADLINE, super::STDOUT_BASE + self.jobs.len() * super::encoded(1000))
    }

    fn rpcs(&self) -> u32 {
        0
    }

    fn parse(&self, raw: &RawOutput) -> Result<Self::Output, ParseError> {
        let answer = Answer::read(Self::NAME, raw)?;
        let (mut left, mut others, mut gone) = (vec![], vec![], vec![false; self.jobs.len()]);
        for mut line in answer.lines() {
            match line.tag {
                b"GONE" => gone[line.index(self.jobs.len())?] = true,
                b"LEFT" => {
                    let index = line.index(self.jobs.len())?;
                    let text = line.blob_text()?;
                    left.push((index, Failure::known(FailureClass::NotDone, "purge", &text)));
                    gone[index] = true;
                }
                b"OTHERS" => others.push((line.index(self.jobs.len())?, line.blob_text()?)),
                _ => return Err(line.malformed("an unknown kind of line")),
            }
        }
        if gone.contains(&false) {
            return Err(answer.lacks("the result of a job"));
        }
        Ok(Purged { left, others })
    }

    fn subjects(&self, answer: Option<&Purged>) -> Vec<(Subject, Option<String>)> {
        subjects(self.jobs.iter().map(|(_, job)| Subject::Job(*job)), |place| {
            let left = answer?.left.iter().any(|(left, _)| *left == place);
            let words = if left { "something is left" } else { "removed" };
            Some(words.to_owned())
        })
    }
}

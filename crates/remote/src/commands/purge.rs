//! Removing everything that jobs have left behind.

use std::time::Duration;

use uuid::Uuid;

use crate::{
    Call, ParseError, RawOutput, RemoteCommand, Repeat, Subject, answer::Answer, stdin_writer::StdinWriter,
};
use slurm::{Failure, FailureClass, RemotePath};

const PROGRAM: &str = concat!(include_str!("../programs/preamble.sh"), include_str!("../programs/purge.sh"));

/// 90 s after which nothing new is begun, and 60 s for one job.
const DEADLINE: Duration = Duration::from_secs(170);

/// Removes the results, logs, marks, specification and script of jobs: only what bears the job's UUID in its name and
/// lies where this service puts it. Of results and logs only what it has made itself, since others may have used the UUID
/// before. What takes too long goes on in the next call.
#[derive(Debug, Clone, Default)]
pub struct Purge {
    /// Which jobs, each below its base directory. One that had several base directories is here several times.
    pub jobs: Vec<(RemotePath, Uuid)>,
}

/// What became of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Purged {
    /// The jobs of which something is left, or may be, and why; by their place in the question.
    pub left: Vec<(usize, Failure)>,
    /// What bears the UUID of a job that has gone and was not made by this service, so it stays; in lines.
    pub others: Vec<(usize, String)>,
}

impl RemoteCommand for Purge {
    type Output = Purged;

    const NAME: &'static str = "purge";
    const REPEAT: Repeat = Repeat::Safe;

    fn render(&self) -> Call {
        let mut stdin = StdinWriter::new();
        stdin.field(self.jobs.len()).end_line();
        for (index, (base, id)) in self.jobs.iter().enumerate() {
            stdin.field(index).field(base).field(id).end_line();
        }
        stdin.call(PROGRAM, DEADLINE, super::STDOUT_BASE + self.jobs.len() * super::encoded(1000))
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
            return Err(answer.lacks("what became of a job's files"));
        }
        Ok(Purged { left, others })
    }

    fn subjects(&self, answer: Option<&Purged>) -> Vec<(Subject, Option<String>)> {
        let outcome = |place: usize| {
            let left = answer?.left.iter().any(|(left, _)| *left == place);
            let words = if left { "something is left" } else { "removed" };
            Some(words.to_owned())
        };
        let jobs = self.jobs.iter().enumerate();
        jobs.map(|(place, (_, job))| (Subject::Job(*job), outcome(place))).collect()
    }
}

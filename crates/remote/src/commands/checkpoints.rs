//! Finds the newest checkpoint of jobs that resume.

use std::time::Duration;

use crate::{
    Call, ParseError, RawOutput, RemoteCommand, Repeat, Subject, answer::Answer, stdin_writer::StdinWriter,
    subject::subjects,
};
use slurm::RemotePath;
use uuid::Uuid;

const PROGRAM: &str = program!("preamble", "checkpoints");

/// 40 s for the search.
const DEADLINE: Duration = Duration::from_mins(1);

/// Finds checkpoints by the names that TAO's container uses: any `*.pth`, `*.ckpt`, `*.tlt` in the directory
/// itself, and `checkpoint*.pth`, `model*.pth`, `latest*.pth`, `best*.pth`, `epoch*.pth` below it. Empty files do
/// not count, nor do files in directories named `ptm` or `inputs`, which hold the job's inputs.
#[derive(Debug, Clone, Default)]
pub struct Checkpoints {
    /// The jobs, each with its results directory.
    pub jobs: Vec<(Uuid, RemotePath)>,
}

impl RemoteCommand for Checkpoints {
    /// The newest checkpoint of each job, in the order of `jobs`; none if there is none, or it was not found in time.
    type Output = Vec<Option<RemotePath>>;

    const NAME: &'static str = "checkpoints";
    const REPEAT: Repeat = Repeat::Safe;

    fn render(&self) -> Call {
        let mut stdin = StdinWriter::default();
        stdin.field(self.jobs.len()).end_line();
        for (index, (_, dir)) in self.jobs.iter().enumerate() {
            stdin.field(index).field(dir).end_line();
        }
        stdin.call(PROGRAM, DEADLINE, super::STDOUT_BASE + self.jobs.len() * super::encoded(5000))
    }

    fn rpcs(&self) -> u32 {
        0
    }

    fn parse(&self, raw: &RawOutput) -> Result<Self::Output, ParseError> {
        let mut newest = vec![None; self.jobs.len()];
        for mut line in Answer::read(Self::NAME, raw)?.lines() {
            if line.tag != b"NEWEST" {
                return Err(line.malformed("an unknown kind of line"));
            }
            let index = line.index(newest.len())?;
            // A name that is not a valid path could not be passed to the job.
            newest[index] = line.blob_text()?.parse().ok();
        }
        Ok(newest)
    }

    fn subjects(&self, answer: Option<&Vec<Option<RemotePath>>>) -> Vec<(Subject, Option<String>)> {
        subjects(self.jobs.iter().map(|(job, _)| Subject::Job(*job)), |place| {
            let word = if answer?.get(place)?.is_some() { "found" } else { "none" };
            Some(word.to_owned())
        })
    }
}

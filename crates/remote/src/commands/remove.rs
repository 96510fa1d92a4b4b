//! Removing files that nobody needs any more.

use std::{collections::BTreeSet, time::Duration};

use crate::{
    Call, ParseError, RawOutput, RemoteCommand, Repeat, Subject, answer::Answer, stdin_writer::StdinWriter,
};
use slurm::{RemotePath, SlurmJobId};
use uuid::Uuid;

const PROGRAM: &str = concat!(
    include_str!("../programs/preamble.sh"),
    include_str!("../programs/remove_file.sh"),
    include_str!("../programs/remove.sh"),
);

/// 30 s after which nothing new is begun, and 15 s for one file.
const DEADLINE: Duration = Duration::from_mins(1);

/// Removes private files of attempts: the secrets of a submission that was refused, for instance.
#[derive(Debug, Clone, Default)]
pub struct Remove {
    /// State directories of attempts that never reached Slurm and never shall: they are claimed for nobody, so that a copy
    /// of which Slurm hears later than anybody expects finds its attempt taken. The files of one that a Slurm job holds
    /// by then are kept.
    pub close: Vec<RemotePath>,
    /// Which files.
    pub files: Vec<StagedSecret>,
}

/// A file that holds a secret.
#[derive(Debug, Clone)]
pub struct StagedSecret {
    /// The job whose file it is.
    pub job: Uuid,
    /// The state directory of the attempt that it was staged for. Once there is one of a later attempt, the file is that
    /// one's, and is kept.
    pub state_dir: RemotePath,
    /// Where it is. A directory is not removed.
    pub path: RemotePath,
}

/// What became of the files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Removed {
    /// The places in the question of those that are not surely gone; while its directory is missing, a file may come
    /// back with it.
    pub kept: Vec<usize>,
    /// The attempts, by their places in the question, that were not closed because a Slurm job holds them.
    pub held: Vec<(usize, SlurmJobId)>,
}

impl RemoteCommand for Remove {
    type Output = Removed;

    const NAME: &'static str = "remove";
    const REPEAT: Repeat = Repeat::Safe;

    fn render(&self) -> Call {
        let mut stdin = StdinWriter::new();
        stdin.field(self.close.len()).field(self.files.len()).end_line();
        for dir in &self.close {
            stdin.field(dir).end_line();
        }
        for file in &self.files {
            stdin.field(&file.state_dir).field(&file.path).end_line();
        }
        stdin.call(PROGRAM, DEADLINE, super::STDOUT_BASE + self.close.len() * 32 + self.files.len() * 16)
    }

    fn parse(&self, raw: &RawOutput) -> Result<Self::Output, ParseError> {
        let answer = Answer::read(Self::NAME, raw)?;
        let (mut kept, mut held) = (Vec::new(), Vec::new());
        for mut line in answer.lines() {
            match line.tag {
                b"KEPT" => kept.push(line.index(self.files.len())?),
                b"HELD" => {
                    let place = line.index(self.close.len())?;
                    held.push((place, line.value()?));
                }
                _ => return Err(line.malformed("an unknown kind of line")),
            }
        }
        Ok(Removed { kept, held })
    }

    fn subjects(&self, _: Option<&Removed>) -> Vec<(Subject, Option<String>)> {
        let jobs: BTreeSet<_> = self.files.iter().map(|file| file.job).collect();
        jobs.into_iter().map(|job| (Subject::Job(job), None)).collect()
    }
}

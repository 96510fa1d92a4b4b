//! Removes files with secrets.

use std::{collections::BTreeSet, time::Duration};

use crate::{
    Call, ParseError, RawOutput, RemoteCommand, Repeat, Subject, answer::Answer, stdin_writer::StdinWriter,
};
use slurm::{RemotePath, SlurmJobId};
use uuid::Uuid;

const PROGRAM: &str = program!("preamble", "remove_file", "remove");

/// No file is begun after 30 s, and each may take 15 s.
const DEADLINE: Duration = Duration::from_mins(1);

/// Removes files with secrets of attempts, for instance after a refused submission.
#[derive(Debug, Clone, Default)]
pub struct Remove {
    /// State directories of attempts that never reached Slurm and never will. Their claim is taken, so that a late Slurm job
    /// of the attempt does not run. The files of an attempt whose claim cannot be taken are kept.
    pub close: Vec<RemotePath>,
    /// The files.
    pub files: Vec<StagedSecret>,
}

/// A file that holds a secret.
#[derive(Debug, Clone)]
pub struct StagedSecret {
    /// The job whose file it is.
    pub job: Uuid,
    /// The state directory of the attempt that it was staged for. If a later attempt has one, the file belongs to that
    /// attempt and is kept.
    pub state_dir: RemotePath,
    /// Its path. A directory is not removed.
    pub path: RemotePath,
}

/// The result of a removal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Removed {
    /// The places in `files` of those that may still exist, and of all of an attempt that is not closed. While its directory is
    /// missing, a file may come back with it.
    pub kept: Vec<usize>,
    /// The attempts that a Slurm job holds, by their places in `close`.
    pub held: Vec<(usize, SlurmJobId)>,
}

impl RemoteCommand for Remove {
    type Output = Removed;

    const NAME: &'static str = "remove";
    const REPEAT: Repeat = Repeat::Safe;

    fn render(&self) -> Call {
        let mut stdin = StdinWriter::default();
        stdin.field(self.close.len()).field(self.files.len()).end_line();
        stdin.rows(&self.close);
        for file in &self.files {
            stdin.field(&file.state_dir).field(&file.path).end_line();
        }
        stdin.call(PROGRAM, DEADLINE, super::STDOUT_BASE + self.close.len() * 32 + self.files.len() * 16)
    }

    fn rpcs(&self) -> u32 {
        0
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

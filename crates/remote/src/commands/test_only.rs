//! Tests a script with Slurm without a submission.

use std::time::Duration;

use crate::{
    Call, ParseError, RawOutput, RemoteCommand, Repeat, answer::Answer, rpcs, stdin_writer::StdinWriter,
};
use slurm::{Failure, RemotePath, failure};

const PROGRAM: &str = program!("preamble", "test_only");

/// sbatch may take 17 s, and the file system 11 s at the same time.
const DEADLINE: Duration = Duration::from_secs(22);

/// Tests whether Slurm accepts a script (`sbatch --test-only`), and whether paths exist (`test -e`).
#[derive(Debug, Clone)]
pub struct TestOnly {
    /// The batch script; if none, only the paths are checked.
    pub script: Option<String>,
    /// The paths that must exist.
    pub paths: Vec<RemotePath>,
}

/// The answer of the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestOnlyAnswer {
    /// The verdict of sbatch; none without a script.
    pub script: Option<TestVerdict>,
    /// The paths that do not exist.
    pub missing: Vec<RemotePath>,
    /// The paths that could not be checked in time.
    pub unknown: Vec<RemotePath>,
}

/// The verdict of sbatch on a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TestVerdict {
    /// Accepted, with sbatch's text, such as when and where the job would start.
    Accepted(String),
    /// Refused, or sbatch failed.
    Refused(Failure),
}

impl RemoteCommand for TestOnly {
    type Output = TestOnlyAnswer;

    const NAME: &'static str = "test_only";
    const REPEAT: Repeat = Repeat::Safe;

    fn render(&self) -> Call {
        let script = self.script.as_deref().unwrap_or_default().as_bytes();
        let mut stdin = StdinWriter::default();
        stdin.field(self.paths.len()).field(script.len()).end_line();
        stdin.rows(&self.paths);
        stdin.blob(script);
        stdin.call(PROGRAM, DEADLINE, super::STDOUT_BASE + self.paths.len().saturating_mul(32))
    }

    fn rpcs(&self) -> u32 {
        self.script.as_ref().map_or(0, |_| rpcs::TEST_ONLY)
    }

    fn parse(&self, raw: &RawOutput) -> Result<Self::Output, ParseError> {
        let answer = Answer::read(Self::NAME, raw)?;
        let mut script = None;
        let mut there = vec![None; self.paths.len()];
        for mut line in answer.lines() {
            match line.tag {
                b"SBATCH" => script = Some(verdict(line.value()?, &line.blob_text()?)),
                b"THERE" => there[line.index(self.paths.len())?] = Some(true),
                b"MISSING" => there[line.index(self.paths.len())?] = Some(false),
                _ => return Err(line.malformed("an unknown kind of line")),
            }
        }
        if script.is_none() && self.script.as_ref().is_some_and(|script| !script.is_empty()) {
            return Err(answer.lacks("the verdict on the script"));
        }
        let paths = |state: Option<bool>| {
            let pairs = self.paths.iter().zip(&there).filter(move |(_, found)| **found == state);
            pairs.map(|(path, _)| path.clone()).collect()
        };
        Ok(TestOnlyAnswer { script, missing: paths(Some(false)), unknown: paths(None) })
    }
}

/// sbatch prints the expected start on stderr (seen on 22.05 and 24.11).
fn verdict(code: i32, stderr: &str) -> TestVerdict {
    let failure = failure::of_exit(code, stderr);
    if code == 0 { TestVerdict::Accepted(failure.excerpt) } else { TestVerdict::Refused(failure) }
}

//! What Slurm would say to a script, before anything is submitted.

use std::time::Duration;

use crate::{
    Call, ParseError, RawOutput, RemoteCommand, Repeat, Subject, answer::Answer, stdin_writer::StdinWriter,
};
use slurm::{Failure, RemotePath, failure};

const PROGRAM: &str =
    concat!(include_str!("../programs/preamble.sh"), include_str!("../programs/test_only.sh"),);

/// sbatch gets 17 s, and the file system 11 s beside it.
const DEADLINE: Duration = Duration::from_secs(22);

/// Asks whether Slurm would take a script (`sbatch --test-only`), and whether paths exist (`test -e`).
#[derive(Debug, Clone)]
pub struct TestOnly {
    /// The batch script; without one only the paths are looked at.
    pub script: Option<String>,
    /// What must be there.
    pub paths: Vec<RemotePath>,
}

/// What the cluster says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestOnlyAnswer {
    /// What sbatch says to the script; none without one.
    pub script: Option<TestVerdict>,
    /// The paths that are not there.
    pub missing: Vec<RemotePath>,
    /// The paths that the file system did not tell about in time.
    pub unknown: Vec<RemotePath>,
}

/// What sbatch says to a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TestVerdict {
    /// It would take it; its own words, such as when and where the job would start.
    Accepted(String),
    /// It would not, or could not say.
    Refused(Failure),
}

impl RemoteCommand for TestOnly {
    type Output = TestOnlyAnswer;

    const NAME: &'static str = "test_only";
    const REPEAT: Repeat = Repeat::Safe;

    fn render(&self) -> Call {
        let script = self.script.as_deref().unwrap_or_default().as_bytes();
        let mut stdin = StdinWriter::new();
        stdin.field(self.paths.len()).field(script.len()).end_line();
        for path in &self.paths {
            stdin.field(path).end_line();
        }
        stdin.blob(script);
        stdin.call(PROGRAM, DEADLINE, super::STDOUT_BASE + self.paths.len().saturating_mul(32))
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
            return Err(answer.lacks("nothing about the script"));
        }
        let those = |wanted: Option<bool>| {
            let pairs = self.paths.iter().zip(&there).filter(move |(_, found)| **found == wanted);
            pairs.map(|(path, _)| path.clone()).collect()
        };
        Ok(TestOnlyAnswer { script, missing: those(Some(false)), unknown: those(None) })
    }

    fn subjects(&self, _: Option<&TestOnlyAnswer>) -> Vec<(Subject, Option<String>)> {
        Vec::new()
    }
}

/// sbatch says where the job would start on stderr, too (seen on 22.05 and 24.11).
fn verdict(code: i32, stderr: &str) -> TestVerdict {
    let failure = failure::of_exit(code, stderr);
    if code == 0 { TestVerdict::Accepted(failure.excerpt) } else { TestVerdict::Refused(failure) }
}

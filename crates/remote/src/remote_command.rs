//! A remote command as a value: what to run, what to feed it, how to read what came back.

use std::{fmt, time::Duration};

use slurm::{Failure, FailureClass};

/// Something to run on a login node, and the meaning of its answer.
///
/// `render` and `parse` are both pure, so a command can be sent again, recorded, or answered by a fake.
pub trait RemoteCommand {
    /// What a good answer says.
    type Output;

    /// What to run.
    fn render(&self) -> Call;

    /// What the answer means. An answer that ended early is [`ParseError::Incomplete`], never a short output.
    fn parse(&self, raw: &RawOutput) -> Result<Self::Output, ParseError>;
}

/// One program run, to be carried out as `bash --noprofile --norc -c PROGRAM` with `stdin` fed to it.
///
/// The program is a constant of this crate: no data is ever part of its text. All data go in by stdin, because
/// 10,000 jobs do not fit into an argument list and because text on stdin cannot become code.
#[derive(Clone, PartialEq, Eq)]
pub struct Call {
    /// The shell text.
    pub program: String,
    /// What the program reads. May hold secrets: it is not shown by `Debug`.
    pub stdin: Vec<u8>,
    /// After this long the far side must be done, because every slow step is bounded there too. A caller that gives
    /// up earlier does not know what happened.
    pub deadline: Duration,
    /// More bytes than this on stdout are not an answer.
    pub stdout_limit: usize,
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call")
            .field("program_bytes", &self.program.len())
            .field("stdin_bytes", &self.stdin.len())
            .field("deadline", &self.deadline)
            .field("stdout_limit", &self.stdout_limit)
            .finish()
    }
}

/// What came back, as delivered by a transport that has checked its own trailer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RawOutput {
    /// All of stdout.
    pub stdout: Vec<u8>,
    /// All of stderr, or its end.
    pub stderr: Vec<u8>,
    /// What the program returned.
    pub exit_code: i32,
}

/// An answer that is not an output.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// The command ran, and said that it failed.
    #[error(transparent)]
    Failed(#[from] Failure),
    /// The end of the answer is missing, so what it says is not all that happened.
    #[error("the answer to {command} ended early: exit code {exit_code}, {lines} lines, stderr {stderr:?}")]
    Incomplete {
        /// Which command.
        command: &'static str,
        /// What the program returned, if it did.
        exit_code: i32,
        /// How many lines did arrive.
        lines: usize,
        /// The end of stderr, printable, at most 400 characters.
        stderr: String,
    },
    /// The answer is whole, but not in our own framing.
    #[error("the answer to {command} is not understood at line {line}: {reason}")]
    Malformed {
        /// Which command.
        command: &'static str,
        /// The line, counted from 1.
        line: usize,
        /// What was expected.
        reason: &'static str,
    },
}

impl ParseError {
    /// What to do about it. Whatever was not understood may have had its effect.
    pub fn class(&self) -> FailureClass {
        match self {
            Self::Failed(failure) => failure.class,
            Self::Incomplete { .. } | Self::Malformed { .. } => FailureClass::Ambiguous,
        }
    }
}

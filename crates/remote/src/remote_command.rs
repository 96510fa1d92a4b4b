//! A remote command as a value: what to run, what goes to its stdin, and how to read the answer.

use std::{any::Any, fmt, time::Duration};

use serde::Serialize;
use slurm::{Failure, FailureClass};
use strum::{Display, EnumString, IntoStaticStr};

use crate::Subject;

/// A program to run on a login node, and the meaning of its answer.
///
/// `render` and `parse` are pure, so a command can be repeated, recorded, or answered by a fake.
///
/// To add a command:
///
/// 1. Write the program, `programs/disk_usage.sh`. It starts from `preamble.sh`, reads its data from stdin and prints
///    tagged lines.
/// 2. Write `commands/disk_usage.rs`: a struct with the question, a type for the answer, and
///    `const PROGRAM: &str = program!("preamble", "disk_usage")`.
/// 3. Implement this trait. `NAME` is its class in timelines and metrics; `REPEAT` is `Safe` if running it twice does no
///    harm; `subjects` returns the typed ids that the struct holds.
/// 4. In `render`, write each value with `StdinWriter` and end with `stdin.call(PROGRAM, DEADLINE, limit)`. `rpcs` returns what
///    its commands of Slurm cost, by the table in `rpcs.rs`.
/// 5. In `parse`, read `Answer::read(Self::NAME, raw)?` line by line. An unknown tag is `line.malformed(…)`.
/// 6. Add `mod disk_usage;` and `pub use disk_usage::*;` to `commands.rs`.
/// 7. Call it: `link.call(&DiskUsage { … }).await`. Timeline, metrics, traces, retry on another login host and the API's
///    `?class=disk_usage` need nothing more.
/// 8. Test the program in `tests/programs/` with the fake `squeue`, `sacct` and `sbatch`.
pub trait RemoteCommand: Any + Clone + Send + Sync {
    /// What a good answer says.
    type Output: Send + 'static;

    /// Its class in timelines, metrics and traces: lowercase letters and `_`.
    const NAME: &'static str;

    /// Whether it may run again after its answer was lost.
    const REPEAT: Repeat;

    /// What to run.
    fn render(&self) -> Call;

    /// The most requests that it makes of Slurm's daemons. Each counts against the RPC budget of the cluster.
    fn rpcs(&self) -> u32;

    /// The requests that it made, by its answer.
    fn rpcs_made(&self, _answer: &Self::Output) -> u32 {
        self.rpcs()
    }

    /// Whether Slurm answered that there are too many requests.
    fn is_rate_limited(&self, _answer: &Self::Output) -> bool {
        false
    }

    /// What the answer means. An answer that ended early is [`ParseError::Incomplete`], never a short output.
    fn parse(&self, raw: &RawOutput) -> Result<Self::Output, ParseError>;

    /// Whose timelines it belongs to, each with its outcome if there is an answer; none by default. The outcome is a few
    /// words of ours: never text of a caller or of a cluster.
    fn subjects(&self, _answer: Option<&Self::Output>) -> Vec<(Subject, Option<String>)> {
        Vec::new()
    }

    /// How many jobs it is for.
    fn jobs(&self) -> usize {
        self.subjects(None).len()
    }
}

/// Whether a command may run again, perhaps on another login host, after its answer was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repeat {
    /// It only reads, or a second run changes nothing more.
    Safe,
    /// The caller has to find out what it did.
    Never,
}

/// One program to run as `bash --noprofile --norc -c PROGRAM`, with `stdin`.
///
/// All data goes through stdin: 10,000 jobs do not fit into an argument list, and text on stdin cannot become code.
#[derive(Clone, PartialEq, Eq)]
pub struct Call {
    /// The shell text, a constant.
    pub program: &'static str,
    /// What the program reads. May hold secrets, so `Debug` does not show it.
    pub stdin: Vec<u8>,
    /// After this long the program has ended, because it bounds each of its slow steps. A caller that gives up earlier
    /// does not know what happened.
    pub deadline: Duration,
    /// The most bytes of stdout that count as an answer.
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

/// What a program returned, delivered by a transport that has checked its own trailer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RawOutput {
    /// All of stdout.
    pub stdout: Vec<u8>,
    /// All of stderr, or its end.
    pub stderr: Vec<u8>,
    /// The exit code of the program.
    pub exit_code: i32,
}

/// An answer that is not an output.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// The command ran and reported that it failed.
    #[error(transparent)]
    Failed(#[from] Failure),
    /// The end of the answer is missing, so more may have happened than it says.
    #[error("the answer to {command} ended early: exit code {exit_code}, {lines} lines, stderr {stderr:?}")]
    Incomplete {
        /// Which command.
        command: &'static str,
        /// The exit code of the program, if it had one.
        exit_code: i32,
        /// How many lines arrived.
        lines: usize,
        /// The end of stderr, printable, at most 400 characters.
        stderr: String,
    },
    /// The answer is complete, but does not follow our format.
    #[error("the answer to {command} is malformed at line {line}: {reason}")]
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
    /// How to go on. A command whose answer cannot be read may have had its effect.
    pub fn class(&self) -> FailureClass {
        match self {
            Self::Failed(failure) => failure.class,
            Self::Incomplete { .. } | Self::Malformed { .. } => FailureClass::Ambiguous,
        }
    }
}

/// How a remote command went.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Serialize, utoipa::ToSchema, Display, EnumString, IntoStaticStr,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum CommandResult {
    /// The cluster answered, and the answer was understood.
    Ok,
    /// The command was certainly not sent: no login host accepted the connection, or no session was free.
    NotSent,
    /// The command was certainly not sent: no login host accepts the service's key.
    AuthRequired,
    /// The answer was lost. The command may have had its effect.
    Lost,
    /// The command reports that it had no effect. It can be retried.
    NotDone,
    /// The answer was cut off or not understood. The command may have had its effect.
    Ambiguous,
    /// The command would fail again.
    Permanent,
    /// The cluster has no room at present.
    Capacity,
    /// Slurm or the cluster is broken.
    Infra,
}

impl From<FailureClass> for CommandResult {
    fn from(class: FailureClass) -> Self {
        match class {
            FailureClass::NotDone => Self::NotDone,
            FailureClass::Ambiguous => Self::Ambiguous,
            FailureClass::Permanent => Self::Permanent,
            FailureClass::Capacity => Self::Capacity,
            FailureClass::Infra => Self::Infra,
        }
    }
}

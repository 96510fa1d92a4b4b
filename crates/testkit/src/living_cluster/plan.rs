//! What a job does when it runs, and how it ends: drawn when Slurm takes it.

use chrono::TimeDelta;
use slurm::SlurmState;

use crate::dice::Dice;

/// A word in a status file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Word {
    Started,
    Running,
    Success,
    Failure,
}

impl Word {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Started => "STARTED",
            Self::Running => "RUNNING",
            Self::Success => "SUCCESS",
            Self::Failure => "FAILURE",
        }
    }
}

/// How one run ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Ending {
    /// By itself, with this code and this last line of its log.
    Exit { code: u8, log: &'static str },
    /// By Slurm, in this state; it may go back into the queue.
    Ended { state: SlurmState, requeue: bool },
    /// Not at all: it holds its nodes until somebody cancels it.
    Hangs,
    /// Slurm forgets it, in the queue and in accounting. With `marked`, its exit record says how it ended.
    Lost { marked: bool },
}

/// One run of a job.
#[derive(Debug, Clone)]
pub(super) struct Run {
    /// In the queue.
    pub(super) wait: TimeDelta,
    /// From its start.
    pub(super) length: TimeDelta,
    /// What it writes, and when after its start.
    pub(super) lines: Vec<(TimeDelta, Word)>,
    /// Whether it begins the file anew.
    pub(super) rewrites: bool,
    pub(super) ending: Ending,
}

const USER: &str = "ValueError: num_classes must be 20\n";
const INFRA: &str =
    "NCCL WARN NET/IB : Got completion from peer with status=12, transport retry counter exceeded\n";

/// Draws a run. From the fourth attempt on a job fails for no reason of the infrastructure any more, so that every
/// history ends.
pub(super) fn draw(dice: &mut Dice, runs_before: u32) -> Run {
    let exit = |code, log| Ending::Exit { code, log };
    let ended = |state, requeue| Ending::Ended { state, requeue };
    let (ending, word) = match dice.below(if runs_before < 3 { 100 } else { 62 }) {
        0..=31 => (exit(0, ""), Some(Word::Success)),
        32..=37 => (exit(0, ""), None),
        38..=41 => (exit(0, ""), Some(Word::Failure)),
        42..=46 => (exit(1, USER), Some(Word::Failure)),
        47..=49 => (ended(SlurmState::Timeout, false), None),
        50 => (ended(SlurmState::Timeout, false), Some(Word::Success)),
        51..=52 => (ended(SlurmState::OutOfMemory, false), None),
        53..=55 => (ended(SlurmState::Cancelled, false), None),
        56..=57 => (Ending::Hangs, Some(Word::Success)),
        58 => (Ending::Hangs, Some(Word::Failure)),
        59 => (Ending::Lost { marked: true }, Some(Word::Success)),
        60 => (Ending::Lost { marked: false }, None),
        61 => (exit(0, ""), Some(Word::Running)),
        62..=67 => (exit(1, INFRA), None),
        68..=70 => (exit(1, INFRA), Some(Word::Failure)),
        71..=73 => (exit(1, INFRA), Some(Word::Success)),
        74..=78 => (ended(SlurmState::NodeFail, false), None),
        79..=81 => (ended(SlurmState::NodeFail, false), Some(Word::Success)),
        82..=87 => (ended(SlurmState::NodeFail, true), None),
        88..=91 => (ended(SlurmState::NodeFail, true), Some(Word::Success)),
        92..=93 => (ended(SlurmState::NodeFail, true), Some(Word::Failure)),
        94..=96 => (ended(SlurmState::Preempted, true), None),
        97 => (ended(SlurmState::Preempted, true), Some(Word::Success)),
        _ => (ended(SlurmState::Preempted, false), None),
    };
    let wait = if dice.chance(300) { TimeDelta::zero() } else { dice.seconds(0, 60) };
    let length = if dice.chance(200) { dice.millis(10, 2000) } else { dice.seconds(2, 120) };
    let mut lines = Vec::new();
    if dice.chance(800) {
        lines.push((length / 10, Word::Started));
        let epochs = dice.below(4);
        let step = |epoch: u64| length / 10 + length * i32::try_from(epoch).unwrap_or(0) / 8;
        lines.extend((1..=epochs).map(|epoch| (step(epoch), Word::Running)));
    }
    lines.extend(word.map(|word| (length * 9 / 10, word)));
    Run { wait, length, lines, rewrites: runs_before > 0 && dice.chance(200), ending }
}

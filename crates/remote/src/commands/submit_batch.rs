//! Submits jobs so that a repeated submission does no harm.

mod answers;
mod staging;
mod submission;

use std::time::Duration;

use crate::{
    Call, ParseError, RawOutput, RemoteCommand, Repeat, Subject, answer::Answer, rpcs,
    stdin_writer::StdinWriter, subject::subjects,
};

pub use answers::{How, SubmitAnswer};
pub use submission::{StagedFile, Submission};

use answers::entry_answer;
use staging::{Dirs, archive, columns, waves};

const PROGRAM: &str = program!("site_env", "preamble", "stage_files", "earlier_sends", "submit_batch");

/// Claims, stages and submits each entry; the answers have the order of the entries.
///
/// An entry with a saved Slurm id is answered with it. An entry with an earlier claim is looked for by its name, and not
/// submitted while its outcome is uncertain. Entries begin in order, and up to six sbatch run at the same time: two for the
/// first wave, four for the second.
#[derive(Debug, Clone)]
pub struct SubmitBatch {
    /// The entries, each with its own state directory.
    pub entries: Vec<Submission>,
    /// Entries that have not begun after this time are answered with [`SubmitAnswer::Skipped`]. Whole seconds.
    pub begin_within: Duration,
    /// Whether to remove temporary files that killed calls have left beside the files of these entries a day ago or earlier.
    pub sweep: bool,
}

impl SubmitBatch {
    /// After this long no sbatch of a call is still running: none begins after 25 s, and each may take 155 s. sbatch may sleep
    /// and retry by itself for up to 120 s (`sbatch.c`).
    pub const DEADLINE: Duration = Duration::from_secs(185);

    /// A batch whose entries begin within 20 seconds.
    pub fn new(entries: Vec<Submission>) -> Self {
        Self { entries, begin_within: Duration::from_secs(20), sweep: true }
    }
}

impl RemoteCommand for SubmitBatch {
    type Output = Vec<SubmitAnswer>;

    const NAME: &'static str = "submit";
    const REPEAT: Repeat = Repeat::Never;

    fn render(&self) -> Call {
        let dirs = Dirs::of(&self.entries);
        let waves: Vec<_> = waves(&self.entries).map(|wave| (wave.len(), archive(wave))).collect();
        let header = columns(&self.entries, &dirs, &waves);
        let mut stdin = StdinWriter::default();
        stdin.field(header.len()).field(self.begin_within.as_secs()).field(u8::from(self.sweep)).end_line();
        stdin.blob(&header);
        for (_, archive) in &waves {
            stdin.blob(archive).field("whole").end_line();
        }
        stdin.call(
            PROGRAM,
            Self::DEADLINE,
            super::STDOUT_BASE
                + self.entries.len() * super::encoded(4096)
                // A missing input is answered with its place, a number.
                + self.entries.iter().map(|entry| entry.inputs.len() * 6).sum::<usize>(),
        )
    }

    fn rpcs(&self) -> u32 {
        self.lookups() + rpcs::times(self.entries.len(), rpcs::SBATCH)
    }

    fn rpcs_made(&self, answers: &Vec<SubmitAnswer>) -> u32 {
        let sent = answers.iter().filter(|answer| answer.may_have_run_sbatch()).count();
        let looked_up = answers.iter().any(SubmitAnswer::was_looked_up);
        let lookups = if looked_up { rpcs::SQUEUE } else { self.lookups() };
        lookups + rpcs::times(sent, rpcs::SBATCH)
    }

    fn is_rate_limited(&self, answers: &Vec<SubmitAnswer>) -> bool {
        let is_limited = |answer: &SubmitAnswer| matches!(answer, SubmitAnswer::Refused { failure, .. } if failure.is_rate_limited());
        answers.iter().any(is_limited)
    }

    fn parse(&self, raw: &RawOutput) -> Result<Self::Output, ParseError> {
        let answer = Answer::read(Self::NAME, raw)?;
        let mut answers: Vec<Option<SubmitAnswer>> = vec![None; self.entries.len()];
        for line in answer.lines() {
            let (index, one) = entry_answer(line, &self.entries)?;
            if answers[index].replace(one).is_some() {
                return Err(line.malformed("a second answer to one entry"));
            }
        }
        answers.into_iter().collect::<Option<_>>().ok_or_else(|| answer.lacks("the answer to an entry"))
    }

    fn subjects(&self, answer: Option<&Vec<SubmitAnswer>>) -> Vec<(Subject, Option<String>)> {
        let own = self.entries.iter().map(|entry| entry.key.subject.clone());
        subjects(own, |place| Some(answer?.get(place)?.outcome()))
    }
}

impl SubmitBatch {
    /// The requests of the squeue that looks for earlier submissions, if there may be any.
    fn lookups(&self) -> u32 {
        if self.entries.iter().any(|entry| entry.send > 1) { rpcs::SQUEUE } else { 0 }
    }
}

//! Finds out why Slurm requeued jobs.

use std::{collections::HashMap, time::Duration};

use crate::{
    AttemptKey, Call, ParseError, RawOutput, RemoteCommand, Repeat, Subject, answer::Answer, rpcs,
    stdin_writer::StdinWriter, subject::subjects,
};
use slurm::{SlurmJobId, SlurmState};

const PROGRAM: &str = program!("preamble", "requeued");

const DEADLINE: Duration = Duration::from_mins(1);

/// Reads from accounting how the last run of each job ended: squeue shows only that the job waits again.
#[derive(Debug, Clone, Default)]
pub struct Requeued {
    /// The jobs, with their names.
    pub jobs: Vec<(SlurmJobId, AttemptKey)>,
}

/// The end of a run before the present one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EarlierRun {
    /// Slurm's state at its end.
    pub state: SlurmState,
    /// In Slurm's notation.
    pub nodes: String,
}

impl RemoteCommand for Requeued {
    /// The last run that ended, for each job with one in accounting.
    type Output = HashMap<SlurmJobId, EarlierRun>;

    const NAME: &'static str = "requeued";
    const REPEAT: Repeat = Repeat::Safe;

    fn render(&self) -> Call {
        let mut stdin = StdinWriter::default();
        stdin.field(self.jobs.len()).end_line();
        for (id, _) in &self.jobs {
            stdin.field(id).end_line();
        }
        stdin.call(PROGRAM, DEADLINE, super::STDOUT_BASE + self.jobs.len() * 200_000)
    }

    fn rpcs(&self) -> u32 {
        rpcs::SACCT
    }

    fn parse(&self, raw: &RawOutput) -> Result<Self::Output, ParseError> {
        let mut runs = HashMap::new();
        for mut line in Answer::read(Self::NAME, raw)?.lines() {
            match line.tag {
                b"SACCT" => {
                    let code: i32 = line.value()?;
                    if code != 0 {
                        return Err(slurm::failure::of_exit(code, &line.blob_text()?).into());
                    }
                }
                b"RUN" => {
                    let row = line.rest();
                    let mut columns = row.splitn(4, '\u{1f}');
                    let mut next = || columns.next().unwrap_or_default();
                    let (id, state, nodes, name) = (next(), next(), next(), next());
                    let Ok(id) = id.parse::<SlurmJobId>() else { continue };
                    let Ok(state) = state.parse::<SlurmState>();
                    let ours = self.jobs.iter().any(|(job, key)| *job == id && key.as_str() == name);
                    // Rows come in the order of the runs; the present run has not ended.
                    if ours && (state.is_final() || state == SlurmState::Requeued) {
                        runs.insert(id, EarlierRun { state, nodes: nodes.to_owned() });
                    }
                }
                _ => return Err(line.malformed("an unknown kind of line")),
            }
        }
        Ok(runs)
    }

    fn subjects(&self, answer: Option<&Self::Output>) -> Vec<(Subject, Option<String>)> {
        subjects(self.jobs.iter().map(|(_, key)| key.subject.clone()), |place| {
            let (id, _) = self.jobs.get(place)?;
            let words = if answer?.contains_key(id) { "known" } else { "not known" };
            Some(words.to_owned())
        })
    }
}

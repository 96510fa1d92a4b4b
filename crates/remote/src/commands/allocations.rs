//! Reads what Slurm accounts for.

use std::{collections::HashMap, time::Duration};

use crate::{
    AttemptKey, Call, ParseError, RawOutput, RemoteCommand, Repeat, Subject, answer::Answer, rpcs,
    stdin_writer::StdinWriter, subject::subjects,
};
use slurm::{Allocation, SlurmJobId};

const PROGRAM: &str = program!("preamble", "allocations");

const DEADLINE: Duration = Duration::from_secs(90);

/// The most rows of an answer, and the bytes of one.
const MOST_ROWS: usize = 100_000;
const BYTES_PER_ROW: usize = 250;

/// Reads from accounting each time that jobs held nodes.
#[derive(Debug, Clone, Default)]
pub struct Allocations {
    /// The Slurm jobs, with their names: accounting may have another job with the same id.
    pub jobs: Vec<(SlurmJobId, AttemptKey)>,
}

/// What accounting has of one job.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Accounted {
    /// Each run of a job with its name, also those that have not ended or never began.
    pub runs: Vec<Allocation>,
    /// Whether there may be more.
    pub cut: bool,
}

impl Accounted {
    /// Whether accounting knows the job and has the end of all its runs. A run that has just ended may still be missing.
    pub fn is_over(&self) -> bool {
        !self.cut && !self.runs.is_empty() && self.runs.iter().all(Allocation::is_over)
    }
}

impl RemoteCommand for Allocations {
    /// In the order of the jobs.
    type Output = Vec<Accounted>;

    const NAME: &'static str = "allocations";
    const REPEAT: Repeat = Repeat::Safe;

    fn render(&self) -> Call {
        let mut stdin = StdinWriter::default();
        stdin.field(self.jobs.len()).field(MOST_ROWS).end_line();
        for (id, _) in &self.jobs {
            stdin.field(id).end_line();
        }
        stdin.call(PROGRAM, DEADLINE, super::STDOUT_BASE + MOST_ROWS * BYTES_PER_ROW)
    }

    fn rpcs(&self) -> u32 {
        rpcs::SACCT
    }

    fn parse(&self, raw: &RawOutput) -> Result<Self::Output, ParseError> {
        let mut places: HashMap<&str, Vec<usize>> = HashMap::new();
        for (place, (_, key)) in self.jobs.iter().enumerate() {
            places.entry(key.as_str()).or_default().push(place);
        }
        let mut answers = vec![Accounted::default(); self.jobs.len()];
        for mut line in Answer::read(Self::NAME, raw)?.lines() {
            match line.tag {
                b"SACCT" => {
                    let code: i32 = line.value()?;
                    if code != 0 {
                        return Err(slurm::failure::of_exit(code, &line.blob_text()?).into());
                    }
                }
                b"RUN" => {
                    let Some(run) = Allocation::read(&line.rest()) else { continue };
                    // By name alone: the tasks of an array have ids of their own. An attempt may have had two Slurm jobs.
                    for place in places.get(run.name.as_str()).into_iter().flatten() {
                        answers[*place].runs.push(run.clone());
                    }
                }
                b"CUT" => answers.iter_mut().for_each(|answer| answer.cut = true),
                _ => return Err(line.malformed("an unknown kind of line")),
            }
        }
        Ok(answers)
    }

    fn subjects(&self, answer: Option<&Self::Output>) -> Vec<(Subject, Option<String>)> {
        subjects(self.jobs.iter().map(|(_, key)| key.subject.clone()), |place| {
            let words = if answer?.get(place)?.is_over() { "known" } else { "not known yet" };
            Some(words.to_owned())
        })
    }
}

//! The result of each entry, from the lines that the program writes.

use slurm::{Failure, FailureClass, RemotePath, SlurmJobId};

use super::submission::Submission;
use crate::{ParseError, answer::Line};

/// The result of one entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SubmitAnswer {
    /// Slurm has the job.
    Submitted {
        /// Its id.
        id: SlurmJobId,
        /// How the id was found.
        how: How,
        /// Other jobs of the same name, to cancel. Their scripts stop because the claim is taken.
        extra: Vec<SlurmJobId>,
    },
    /// sbatch failed. The claim stays, so the next submission must clear it.
    Refused {
        /// The failure. [`FailureClass::Ambiguous`] if sbatch may have submitted the job.
        failure: Failure,
        /// Its exit code; 124 and 137 mean our time limit.
        rc: i32,
    },
    /// Inputs are missing or unreadable. Nothing was staged or submitted.
    MissingInputs {
        /// All missing inputs.
        paths: Vec<RemotePath>,
    },
    /// A file or directory could not be written, or an input could not be checked. Nothing was submitted.
    StageFailed(Failure),
    /// Another call has claimed the entry, and no job of it was found, or squeue did not answer.
    Uncertain,
    /// There was no time left for it. Nothing was submitted.
    Skipped,
}

/// How an id was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::Display, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum How {
    /// This call submitted it.
    New,
    /// An earlier call submitted it and saved its id.
    Replay,
    /// An earlier call submitted it and its reply was lost: it was found by its name or its claim.
    Adopted,
}

impl SubmitAnswer {
    pub(super) fn may_have_run_sbatch(&self) -> bool {
        matches!(self, Self::Submitted { how: How::New, .. } | Self::Refused { .. })
    }

    /// Whether squeue was asked about an earlier submission.
    pub(super) fn was_looked_up(&self) -> bool {
        matches!(self, Self::Submitted { how: How::Adopted, .. } | Self::Uncertain)
    }

    /// In a few words, for the timeline.
    pub(super) fn outcome(&self) -> String {
        match self {
            Self::Submitted { id, .. } => format!("submitted as {id}"),
            Self::Refused { failure, rc } => {
                format!("refused: {} ({}), sbatch returned {rc}", failure.class, failure.rule_id)
            }
            Self::MissingInputs { paths } => format!("{} inputs are missing", paths.len()),
            Self::StageFailed(failure) => format!("not staged: {} ({})", failure.class, failure.rule_id),
            Self::Uncertain => "uncertain".to_owned(),
            Self::Skipped => "skipped".to_owned(),
        }
    }
}

pub(super) fn entry_answer(
    mut line: Line<'_>,
    entries: &[Submission],
) -> Result<(usize, SubmitAnswer), ParseError> {
    let tag = line.tag;
    let index = line.index(entries.len())?;
    let answer = match tag {
        b"OK" => submitted(line)?,
        b"REFUSED" => {
            let (rc, mut failure) = line.failure()?;
            if rc == 0 {
                failure =
                    Failure::known(FailureClass::Ambiguous, "no-job-id", "sbatch succeeded without a job id");
            }
            SubmitAnswer::Refused { failure, rc }
        }
        b"MISSING" => missing(line, &entries[index].inputs)?,
        b"STAGE_FAILED" | b"UNREADABLE" => SubmitAnswer::StageFailed(stage_failure(&line.blob_text()?)),
        b"UNCERTAIN" => SubmitAnswer::Uncertain,
        b"SKIPPED" => SubmitAnswer::Skipped,
        _ => return Err(line.malformed("an unknown kind of answer")),
    };
    Ok((index, answer))
}

fn submitted(mut line: Line<'_>) -> Result<SubmitAnswer, ParseError> {
    let id = line.value()?;
    let how = match line.word()? {
        b"new" => How::New,
        b"replay" => How::Replay,
        b"adopted" => How::Adopted,
        _ => return Err(line.malformed("an unknown way to an id")),
    };
    let extra = line.rest();
    let extra = extra.split(',').filter(|text| *text != "-").map(str::parse).collect::<Result<_, _>>();
    Ok(SubmitAnswer::Submitted { id, how, extra: extra.map_err(|_| line.malformed("a job id is expected"))? })
}

/// The program names inputs by their places, so its output never becomes a path.
fn missing(line: Line<'_>, inputs: &[RemotePath]) -> Result<SubmitAnswer, ParseError> {
    let place = |text: &str| text.parse::<usize>().ok().and_then(|place| inputs.get(place).cloned());
    let paths = line.rest().split(',').map(place).collect::<Option<Vec<_>>>();
    let paths = paths.ok_or_else(|| line.malformed("the place of an input is expected"))?;
    Ok(SubmitAnswer::MissingInputs { paths })
}

/// Nothing was submitted. A failure of the cluster itself keeps its class, because it affects more than this entry.
fn stage_failure(text: &str) -> Failure {
    let failure = slurm::failure::classify(text);
    if failure.class == FailureClass::Infra {
        failure
    } else {
        Failure { class: FailureClass::NotDone, rule_id: "staging", ..failure }
    }
}

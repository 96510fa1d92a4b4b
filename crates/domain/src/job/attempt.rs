//! One intent to submit a job to Slurm.

use std::{fmt, num::NonZeroU32};

use remote::{AttemptKey, Subject};
use slurm::{ExitCode, InvalidName, JobName, NodeName, RemotePath, SlurmJobId, SlurmState};
use strum::{Display, EnumString, IntoStaticStr};

use crate::{
    clock::Timestamp,
    conversion::LaunchImage,
    job::{id::JobId, submit_fence::SubmitFence},
    progress::status_files::StatusFiles,
};

/// Attempts of a job are numbered from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AttemptNo(NonZeroU32);

impl AttemptNo {
    pub const FIRST: Self = Self(NonZeroU32::MIN);

    pub fn new(number: u32) -> Option<Self> {
        NonZeroU32::new(number).map(Self)
    }

    pub const fn get(self) -> u32 {
        self.0.get()
    }

    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl fmt::Display for AttemptNo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// One attempt, from the intent to its end.
#[derive(Debug, Clone)]
pub struct Attempt {
    pub no: AttemptNo,
    /// The attempt's unique Slurm job name: it finds a submission whose answer was lost.
    pub token: JobName,
    /// The base directory that everything of the attempt lies below: the configured one may change later.
    pub job_dir: RemotePath,
    pub slurm_id: Option<SlurmJobId>,
    pub slurm_state: Option<SlurmState>,
    pub exit: Option<ExitCode>,
    /// The nodes in Slurm's own compressed notation, such as `node[01-03]`.
    pub nodes: Option<String>,
    pub reason: Option<String>,
    pub partition: Option<String>,
    /// How far the job's status files were read, by this attempt and those before.
    pub status: StatusFiles,
    pub intended_at: Timestamp,
    pub fence: SubmitFence,
    pub submitted_at: Option<Timestamp>,
    /// Since when it is in Slurm's queue, as Slurm says it, or was before it last began: a requeue counts anew.
    pub queued_since: Option<Timestamp>,
    /// When Slurm expects to start it, if it waits and Slurm says so.
    pub estimated_start: Option<Timestamp>,
    pub started_at: Option<Timestamp>,
    pub ended_at: Option<Timestamp>,
    /// Submissions that surely had no effect, in a row: they set the pace of the next.
    pub setbacks: u32,
    /// Nodes that Slurm was told to keep away from.
    pub excluded: Vec<NodeName>,
    /// How often Slurm has put it back into its queue after it had started.
    pub requeues: u32,
    /// Slurm has put it back into its queue, and why is not known yet.
    pub requeue_unexplained: bool,
    /// What became of it; none while it is not over.
    pub verdict: Option<Verdict>,
    /// What it is launched with, if that was decided for this attempt; else the image of the job.
    pub image: Option<LaunchImage>,
}

/// What became of an attempt, and why it was or was not made again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    pub at: Timestamp,
    pub outcome: Outcome,
    /// A sentence for a person.
    pub why: String,
    /// The rule that decided about another attempt, if it was one.
    pub rule: Option<String>,
    /// The line of the log that the rule matched.
    pub line: Option<String>,
}

/// How an attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Display, EnumString, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Outcome {
    Done,
    Error,
    Canceled,
    /// Its owner paused the job.
    Paused,
    /// It failed, and the job was sent again.
    Retried,
}

impl Attempt {
    /// The intent, before anything remote happened.
    pub(crate) fn intended(
        job: JobId,
        no: AttemptNo,
        job_dir: RemotePath,
        now: Timestamp,
    ) -> Result<Self, InvalidName> {
        Ok(Self {
            no,
            token: token(job, no).parse()?,
            job_dir,
            slurm_id: None,
            slurm_state: None,
            exit: None,
            nodes: None,
            reason: None,
            partition: None,
            status: StatusFiles::default(),
            intended_at: now,
            fence: SubmitFence::default(),
            submitted_at: None,
            queued_since: None,
            estimated_start: None,
            started_at: None,
            ended_at: None,
            setbacks: 0,
            excluded: Vec::new(),
            requeues: 0,
            requeue_unexplained: false,
            verdict: None,
            image: None,
        })
    }
}

impl Attempt {
    /// Whether it is under way: the next submission belongs to it.
    pub fn is_open(&self) -> bool {
        self.verdict.is_none()
    }

    /// The attempt of `job` as remote commands name it.
    pub fn key(&self, job: JobId) -> AttemptKey {
        key(job, self.no, &self.token)
    }

    /// Whether a submission was sent of which nobody knows yet what became of it.
    pub fn is_unanswered(&self) -> bool {
        self.fence.is_unanswered() && self.slurm_id.is_none()
    }
}

/// Where the files of an attempt lie, and nothing else about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptPlace {
    pub no: AttemptNo,
    /// As [`Attempt::token`].
    pub token: JobName,
    /// As [`Attempt::job_dir`].
    pub job_dir: RemotePath,
    pub slurm_id: Option<SlurmJobId>,
}

impl From<&Attempt> for AttemptPlace {
    fn from(attempt: &Attempt) -> Self {
        let Attempt { no, token, job_dir, slurm_id, .. } = attempt;
        Self { no: *no, token: token.clone(), job_dir: job_dir.clone(), slurm_id: *slurm_id }
    }
}

impl AttemptPlace {
    /// The attempt of `job` as remote commands name it.
    pub fn key(&self, job: JobId) -> AttemptKey {
        key(job, self.no, &self.token)
    }
}

fn key(job: JobId, no: AttemptNo, token: &JobName) -> AttemptKey {
    AttemptKey { subject: Subject::Attempt { job: job.get(), no: no.get() }, name: token.clone() }
}

/// The first attempt has the name that TAO gives its jobs, so that people find them by it.
pub(crate) fn token(job: JobId, no: AttemptNo) -> String {
    if no == AttemptNo::FIRST { format!("tao-job-{job}") } else { format!("tao-job-{job}-r{no}") }
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use uuid::Uuid;

    use super::*;

    #[test]
    fn the_first_token_is_taos_name_and_later_ones_say_their_number() {
        let job = JobId::new(Uuid::nil());
        let second = AttemptNo::FIRST.next();
        let name = |no| {
            Attempt::intended(job, no, "/lustre/tao".parse().unwrap(), DateTime::UNIX_EPOCH)
                .unwrap()
                .token
                .to_string()
        };
        assert_eq!(name(AttemptNo::FIRST), "tao-job-00000000-0000-0000-0000-000000000000");
        assert_eq!(name(second), "tao-job-00000000-0000-0000-0000-000000000000-r2");
    }
}

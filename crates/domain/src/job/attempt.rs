//! One attempt to run a job in Slurm.

use remote::{AttemptKey, Subject};
use serde::{Deserialize, Serialize};
use slurm::{InvalidName, JobName, NodeName, RemotePath, SlurmJobId, TaskSet};
use strum::{Display, EnumString, IntoStaticStr};

use crate::{
    clock::Timestamp,
    image::{ImageRef, LaunchImage},
    job::{
        identity::{AttemptNo, JobId, Origin},
        submit_fence::SubmitFence,
    },
};

/// One attempt, from its intent to its end.
#[derive(Debug, Clone, PartialEq)]
pub struct Attempt {
    pub no: AttemptNo,
    /// The attempt's unique Slurm job name: it finds a submission whose reply was lost.
    pub token: JobName,
    /// The base directory of the attempt's files. The configured directory may change later.
    pub job_dir: RemotePath,
    pub slurm_id: Option<SlurmJobId>,
    /// The tasks that it carries. Each of them has a [`Run`](crate::Run).
    pub tasks: TaskSet,
    /// The task that index 0 of its Slurm array stands for.
    pub base: u32,
    pub intended_at: Timestamp,
    pub fence: SubmitFence,
    pub submitted_at: Option<Timestamp>,
    /// Consecutive submissions that certainly had no effect: they set the wait before the next.
    pub setbacks: u32,
    /// Nodes that the submission excludes.
    pub excluded: Vec<NodeName>,
    /// How many requeues of its runs are explained.
    pub explained_requeues: u32,
    /// The attempt that it may have queued ahead was closed, so the job's next attempt has another number.
    pub ahead_closed: bool,
    /// How it ended; absent while it is open.
    pub verdict: Option<Verdict>,
    /// What it starts in the place of images that the job requests.
    pub images: Vec<LaunchImage>,
}

/// How an attempt ended, and why the job was or was not retried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    pub at: Timestamp,
    pub outcome: Outcome,
    /// A sentence for a person.
    pub why: String,
    /// The diagnosis rule behind the retry decision, if one matched.
    pub rule: Option<String>,
    /// The log line that the rule matched.
    pub line: Option<String>,
}

impl Verdict {
    pub(crate) fn new(outcome: Outcome, why: &str, now: Timestamp) -> Self {
        Self { at: now, outcome, why: why.to_owned(), rule: None, line: None }
    }
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
    /// It failed, and the job was retried.
    Retried,
}

impl Outcome {
    /// Whether the job ended with the attempt.
    pub(crate) const fn is_final(self) -> bool {
        matches!(self, Self::Done | Self::Error | Self::Canceled)
    }
}

/// An attempt that failed because of the infrastructure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PastFailure {
    pub attempt: u32,
    /// The task that failed; 0 without an array.
    #[serde(default)]
    pub task: u32,
    pub slurm_id: Option<SlurmJobId>,
    /// The diagnosis rule, or Slurm's state: two failures with one signature are one fault.
    pub signature: String,
    /// The nodes at fault; empty when it could be any of several.
    pub nodes: Vec<NodeName>,
    pub at: Timestamp,
    /// Slurm requeued the job after it, so it uses no retry.
    #[serde(default)]
    pub requeued: bool,
    /// The failure no longer excludes its nodes.
    #[serde(default)]
    pub allowed_again: bool,
}

impl PastFailure {
    /// A failure that has just ended an attempt.
    pub(crate) const fn of(
        attempt: &Attempt,
        task: u32,
        signature: String,
        nodes: Vec<NodeName>,
        at: Timestamp,
    ) -> Self {
        let (no, slurm_id) = (attempt.no.get(), attempt.slurm_id);
        Self { attempt: no, task, slurm_id, signature, nodes, at, requeued: false, allowed_again: false }
    }
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
            token: Origin { job, no }.name().parse()?,
            job_dir,
            slurm_id: None,
            tasks: TaskSet::single(),
            base: 0,
            intended_at: now,
            fence: SubmitFence::default(),
            submitted_at: None,
            setbacks: 0,
            excluded: Vec::new(),
            explained_requeues: 0,
            ahead_closed: false,
            verdict: None,
            images: Vec::new(),
        })
    }

    /// What it starts in the place of an image that the job requests.
    pub fn launched(&self, requested: &ImageRef) -> Option<&ImageRef> {
        self.images.iter().find(|launch| launch.requested == *requested).map(|launch| &launch.image)
    }

    /// Whether it has not ended: the next submission belongs to it.
    pub fn is_open(&self) -> bool {
        self.verdict.is_none()
    }

    /// The attempt of `job` as remote commands name it.
    pub fn key(&self, job: JobId) -> AttemptKey {
        key(job, self.no, &self.token)
    }

    /// Whether the outcome of a submission is not known.
    pub fn is_uncertain(&self) -> bool {
        self.fence.is_uncertain() && self.slurm_id.is_none()
    }
}

/// What locates the files of an attempt, or of one task of its array.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptPlace {
    pub no: AttemptNo,
    /// As [`Attempt::token`].
    pub token: JobName,
    /// As [`Attempt::job_dir`].
    pub job_dir: RemotePath,
    pub slurm_id: Option<SlurmJobId>,
    /// The task's index in the Slurm array.
    pub index: Option<u32>,
}

impl From<&Attempt> for AttemptPlace {
    fn from(attempt: &Attempt) -> Self {
        let Attempt { no, token, job_dir, slurm_id, .. } = attempt;
        Self { no: *no, token: token.clone(), job_dir: job_dir.clone(), slurm_id: *slurm_id, index: None }
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

//! The attempt that a job's newest attempt has queued ahead (`restart.prequeue`).
//!
//! The batch script queues it when it begins, so the database does not know whether it is there. After a planned end the job's next
//! attempt has its number, and the submission finds its Slurm job. After every other end it is closed, so that it can never
//! run, and its number is skipped.

use remote::{AttemptKey, Subject};
use slurm::{RemotePath, SlurmJobId};

use crate::{
    clock::Timestamp,
    image::LaunchImage,
    job::{
        attempt::{Attempt, Outcome, Verdict},
        identity::{AttemptNo, Origin},
        paths::JobPaths,
        status::Status,
        stored::{DesiredState, Job},
    },
};

impl Job {
    /// The number of the attempt that may be queued ahead.
    pub(crate) fn number_ahead(&self) -> Option<AttemptNo> {
        let attempt = self.attempt.as_ref().filter(|attempt| attempt.slurm_id.is_some())?;
        self.spec.restart.prequeue.then(|| attempt.no.next())
    }

    /// That attempt as remote commands name it.
    pub fn key_ahead(&self) -> Option<AttemptKey> {
        let origin = Origin { job: self.id, no: self.number_ahead()? };
        let subject = Subject::Attempt { job: self.id.get(), no: origin.no.get() };
        Some(AttemptKey { subject, name: origin.name().parse().ok()? })
    }

    /// The state directory of that attempt.
    pub fn state_ahead(&self) -> Option<RemotePath> {
        let base = &self.attempt.as_ref()?.job_dir;
        JobPaths::state_below(base, self.id, self.number_ahead()?).ok()
    }

    /// Whether the job goes on with that attempt, if Slurm has it.
    pub fn goes_on_ahead(&self) -> bool {
        self.number_ahead().is_some() && !self.closes_ahead()
    }

    /// The images of that attempt, if the job goes on with it and it has some.
    pub fn images_ahead(&self) -> Option<&[LaunchImage]> {
        let images = self.attempt.as_ref().filter(|_| self.goes_on_ahead()).map(|attempt| &*attempt.images);
        images.filter(|images| !images.is_empty())
    }

    /// Slurm had the newest attempt already, with the script of `queued_by`. So what the service has just decided about nodes does
    /// not count.
    pub fn takes_over(&mut self, queued_by: &Attempt) {
        if let Some(attempt) = &mut self.attempt {
            attempt.excluded.clone_from(&queued_by.excluded);
        }
        if let (DesiredState::Run, Some(id)) =
            (self.desired, self.attempt.as_ref().and_then(|attempt| attempt.slurm_id))
        {
            self.message = format!("Goes on as Slurm job {id}, which was queued ahead.");
        }
    }

    /// Whether that attempt has to be closed before this job is stored.
    pub fn closes_ahead(&self) -> bool {
        self.attempt.as_ref().is_some_and(|attempt| attempt.ahead_closed)
    }

    /// The job, when the service has tried to close that attempt and does not know whether it has: it is never kept again.
    #[must_use]
    pub fn closing_ahead(&self) -> Self {
        let mut job = self.clone();
        if let Some(attempt) = &mut job.attempt {
            attempt.ahead_closed = true;
        }
        job
    }

    /// Waits for the next attempt, which is the one that was queued ahead if there is one, unless the service has tried to close that.
    pub(crate) fn await_ahead(&mut self, verdict: Verdict, message: String) {
        let is_closing = self.closes_ahead();
        self.await_retry(verdict, message);
        if let Some(attempt) = &mut self.attempt {
            attempt.ahead_closed = is_closing;
        }
    }

    /// The job, when that attempt has begun as Slurm job `id` and so cannot be closed: the job goes on with it.
    #[must_use]
    pub fn gone_on(&self, id: SlurmJobId, now: Timestamp) -> Self {
        let why = format!("Slurm has begun the attempt that was queued ahead, as job {id}.");
        let mut job = self.clone();
        job.await_retry(Verdict::new(Outcome::Retried, &why, now), why.clone());
        if let Some(attempt) = &mut job.attempt {
            attempt.ahead_closed = false;
        }
        job.status = match job.desired {
            DesiredState::Run => Status::Pending,
            DesiredState::Pause => Status::Pausing,
            DesiredState::Cancel | DesiredState::Delete => Status::Canceling,
        };
        job
    }

    /// The job in the attempt that was queued ahead, when that has begun after all. Its Slurm job is not known yet.
    pub fn in_attempt_ahead(&self, now: Timestamp) -> Option<Self> {
        let base = self.attempt.as_ref()?.job_dir.clone();
        let mut attempt = Attempt::intended(self.id, self.number_ahead()?, base, now).ok()?;
        attempt.fence.begin();
        let mut job = self.clone();
        job.begin_attempt(attempt);
        Some(job)
    }
}

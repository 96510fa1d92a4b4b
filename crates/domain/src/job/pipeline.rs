//! A pipeline as it is stored, and its status, which follows from its jobs.

use std::collections::BTreeMap;

use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    clock::Timestamp,
    job::{
        identity::PipelineId,
        status::Status,
        stored::{Job, Owner},
    },
    request::text::Label,
};

/// Jobs that were stored together. They name it in their specifications.
#[derive(Debug, Clone, PartialEq)]
pub struct Pipeline {
    pub id: PipelineId,
    pub owner: Owner,
    pub name: Option<Label>,
    pub labels: BTreeMap<String, String>,
    pub created_at: Timestamp,
}

/// How many jobs of a pipeline are in which state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct PipelineCounts {
    /// All jobs that are not deleted.
    pub total: u32,
    /// Those that wait, and those that are paused.
    pub pending: u32,
    /// Those that run.
    pub running: u32,
    /// Those that succeeded.
    pub done: u32,
    /// Those that failed.
    pub error: u32,
    /// Those that their owner, or somebody on the cluster, has canceled.
    pub canceled: u32,
    /// Those that were never submitted, because a job that they need did not become what they waited for.
    pub skipped: u32,
    /// Those that have begun to run, or have ended.
    #[serde(skip)]
    pub begun: u32,
}

impl PipelineCounts {
    pub fn of<'a>(jobs: impl IntoIterator<Item = &'a Job>) -> Self {
        let mut counts = Self::default();
        for job in jobs {
            counts.add(job.status, job.is_skipped, job.started_at.is_some(), 1);
        }
        counts
    }

    /// Counts jobs with this status.
    pub const fn add(&mut self, status: Status, is_skipped: bool, has_begun: bool, jobs: u32) {
        self.total += jobs;
        if has_begun || status.is_final() {
            self.begun += jobs;
        }
        *match status {
            Status::Done => &mut self.done,
            Status::Error => &mut self.error,
            Status::Canceled if is_skipped => &mut self.skipped,
            Status::Canceled => &mut self.canceled,
            Status::Running | Status::Started => &mut self.running,
            Status::Pending | Status::Canceling | Status::Pausing | Status::Paused | Status::Resuming => {
                &mut self.pending
            }
        } += jobs;
    }

    /// The status of the whole: `Running` from the first job that begins or ends until the last has ended. A skipped job is no failure:
    /// it may be there for a failure that did not come.
    pub const fn status(&self) -> Status {
        if self.pending + self.running > 0 {
            if self.begun > 0 { Status::Running } else { Status::Pending }
        } else if self.error > 0 {
            Status::Error
        } else if self.canceled > 0 || self.done == 0 {
            Status::Canceled
        } else {
            Status::Done
        }
    }
}

#[cfg(test)]
mod tests {
    use test_case::test_case;

    use super::*;

    const fn counts(jobs: [u32; 6]) -> PipelineCounts {
        let [pending, running, done, error, canceled, skipped] = jobs;
        let begun = running + done + error + canceled + skipped;
        PipelineCounts { total: pending + begun, pending, running, done, error, canceled, skipped, begun }
    }

    #[test]
    fn a_pipeline_whose_only_job_is_canceled_while_it_runs_does_not_go_back() {
        let mut counts = PipelineCounts::default();
        counts.add(Status::Canceling, false, true, 1);
        assert_eq!((counts.pending, counts.status()), (1, Status::Running));
    }

    #[test_case([2, 0, 0, 0, 0, 0] => Status::Pending)]
    #[test_case([1, 1, 0, 0, 0, 0] => Status::Running)]
    #[test_case([1, 0, 1, 0, 0, 0] => Status::Running; "between two jobs")]
    #[test_case([1, 0, 0, 1, 0, 1] => Status::Running; "a clean-up is to come")]
    #[test_case([0, 0, 2, 0, 0, 0] => Status::Done)]
    #[test_case([0, 0, 2, 0, 0, 1] => Status::Done; "what was for a failure is skipped")]
    #[test_case([0, 0, 1, 1, 0, 1] => Status::Error; "a clean-up does not heal")]
    #[test_case([0, 0, 1, 0, 1, 1] => Status::Canceled)]
    #[test_case([0, 0, 0, 0, 0, 2] => Status::Canceled; "a job outside failed")]
    fn the_status_follows_from_the_jobs(jobs: [u32; 6]) -> Status {
        counts(jobs).status()
    }
}

//! The subjects of a command: the jobs that it is for.

use slurm::JobName;
use uuid::Uuid;

/// What a command is for. Its timeline gets an entry.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Subject {
    /// One attempt of a job.
    Attempt {
        /// The job.
        job: Uuid,
        /// The number of the attempt, from 1.
        no: u32,
    },
    /// A job as a whole.
    Job(Uuid),
    /// The cluster: the timelines of all jobs that Slurm has there.
    Cluster,
}

/// A Slurm job of ours: what it runs, and its name in Slurm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptKey {
    /// The attempt of a job.
    pub subject: Subject,
    /// Unique among the attempts of all clusters. A lost submission is found by it.
    pub name: JobName,
}

impl AttemptKey {
    pub(crate) fn as_str(&self) -> &str {
        self.name.as_str()
    }
}

/// Each subject with its outcome, which depends on its place.
pub(crate) fn subjects(
    subjects: impl IntoIterator<Item = Subject>,
    outcome: impl Fn(usize) -> Option<String>,
) -> Vec<(Subject, Option<String>)> {
    subjects.into_iter().enumerate().map(|(place, subject)| (subject, outcome(place))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cancel, Canceled, How, RemoteCommand, SubmitAnswer, SubmitBatch};
    use slurm::SlurmJobId;

    const ID: Uuid = Uuid::from_u128(7);

    fn key(subject: Subject, name: &str) -> AttemptKey {
        AttemptKey { subject, name: name.parse().unwrap() }
    }

    #[test]
    fn each_job_of_a_batch_has_its_own_outcome_and_no_text_of_slurm() {
        let path = || "/s".parse().unwrap();
        let entry = |no| crate::Submission {
            key: key(Subject::Attempt { job: ID, no }, "tao-job-x"),
            state_dir: path(),
            files: Vec::new(),
            script_path: path(),
            make_dirs: Vec::new(),
            results_dir: path(),
            inputs: Vec::new(),
            base_dir: path(),
            send: 1,
            cleared: 0,
        };
        let failure =
            slurm::classify("sbatch: error: hunter2: Batch job submission failed: Invalid qos specification");
        let id = SlurmJobId::new(7).unwrap();
        let answers = vec![
            SubmitAnswer::Submitted { id, how: How::New, extra: Vec::new() },
            SubmitAnswer::Refused { failure, rc: 1 },
        ];
        let batch = SubmitBatch::new(vec![entry(1), entry(2)]);
        let [(first, taken), (second, refused)] = <[_; 2]>::try_from(batch.subjects(Some(&answers))).unwrap();
        assert_eq!(first, Subject::Attempt { job: ID, no: 1 });
        assert_eq!(second, Subject::Attempt { job: ID, no: 2 });
        assert_eq!(taken.as_deref(), Some("submitted as 7"));
        let refused = refused.unwrap();
        assert!(refused.starts_with("refused: permanent") && !refused.contains("hunter2"), "{refused}");
    }

    #[test]
    fn a_cancellation_is_for_jobs_by_their_ids_and_by_their_names() {
        let [attempt, other] = [2, 1].map(|no| Subject::Attempt { job: ID, no });
        let command = Cancel {
            jobs: vec![(SlurmJobId::new(7).unwrap(), key(attempt.clone(), "tao-job-x-r2"))],
            tasks: Vec::new(),
            names: vec![key(other.clone(), "tao-job-x")],
        };
        let canceled = || Some("canceled".to_owned());
        let subjects = command.subjects(Some(&Canceled { refused: None }));
        assert_eq!(subjects, [(attempt, canceled()), (other, canceled())]);
    }
}

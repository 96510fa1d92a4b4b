//! Whom a remote command is for, and what came of it for each. Told from ids and names of ours alone: no text of a caller
//! or of a cluster gets into a timeline.

use std::collections::BTreeSet;

use domain::{AttemptNo, CommandClass, JobId, Origin};
use persistence::{Subject, Whose};
use remote::{
    Cancel, Canceled, CheckImages, Checkpoints, Conclude, Concluded, EarlierRun, Exclude, Excluded,
    ImageFile, Locate, LocateAnswer, LogAnswer, LogQuestion, NodeHealth, Partitions, Poll, Purge, Purged,
    ReadLogs, RemoteCommand, Remove, Removed, Requeued, SubmitAnswer, SubmitBatch,
};
use slurm::{RemotePath, SlurmJobId};
use uuid::Uuid;

/// A command that knows whom it is for.
pub(crate) trait Concerns: RemoteCommand {
    const CLASS: CommandClass;

    /// Whom, and what came of it, if it was answered.
    fn subjects(&self, answer: Option<&Self::Output>) -> Vec<Subject>;

    /// How many jobs it was for.
    fn jobs(&self) -> usize;
}

/// Each of `names` with what `outcome` says of its place.
fn named<'a>(
    names: impl IntoIterator<Item = &'a str>,
    outcome: impl Fn(usize) -> Option<String>,
) -> Vec<Subject> {
    let subject =
        |(index, name): (usize, &str)| Some(Subject { whose: whose(name)?, outcome: outcome(index) });
    names.into_iter().enumerate().filter_map(subject).collect()
}

fn whose(name: &str) -> Option<Whose> {
    Some(match Origin::of(name)? {
        Origin::Attempt { job, no } => Whose::Job { id: job, attempt: Some(no) },
        Origin::Conversion { id, .. } => Whose::Conversion(id),
    })
}

fn job(id: JobId, outcome: Option<String>) -> Subject {
    Subject { whose: Whose::Job { id, attempt: None }, outcome }
}

/// The job that a path of ours belongs to: its UUID is in one of the names.
fn job_of(path: &RemotePath) -> Option<(JobId, Option<AttemptNo>)> {
    path.as_str().rsplit('/').find_map(|name| {
        let bare = name.strip_prefix("tao-job-").unwrap_or(name);
        let id = Uuid::try_parse(bare.get(..36)?).ok()?;
        Some((JobId::new(id), attempt_in(&bare[36..]).filter(|_| bare.len() < name.len())))
    })
}

/// The attempt in what follows the UUID in the name of a directory of logs: `-r2-4711`, or `-4711` for the first.
fn attempt_in(rest: &str) -> Option<AttemptNo> {
    match rest.strip_prefix("-r") {
        Some(rest) => AttemptNo::new(rest.split('-').next()?.parse().ok()?),
        None => Some(AttemptNo::FIRST),
    }
}

/// The jobs that paths belong to, each once.
fn jobs_of<'a>(paths: impl Iterator<Item = &'a RemotePath>) -> Vec<Subject> {
    let jobs: BTreeSet<_> = paths.filter_map(job_of).map(|(id, no)| (id.get(), no)).collect();
    let subject =
        |(id, attempt)| Subject { whose: Whose::Job { id: JobId::new(id), attempt }, outcome: None };
    jobs.into_iter().map(subject).collect()
}

impl Concerns for SubmitBatch {
    const CLASS: CommandClass = CommandClass::Submit;

    fn subjects(&self, answer: Option<&Vec<SubmitAnswer>>) -> Vec<Subject> {
        let outcome = |index: usize| answer.and_then(|answers| answers.get(index)).map(submitted);
        named(self.entries.iter().map(|entry| entry.key.as_str()), outcome)
    }

    fn jobs(&self) -> usize {
        self.entries.len()
    }
}

fn submitted(answer: &SubmitAnswer) -> String {
    match answer {
        SubmitAnswer::Submitted { id, .. } => format!("submitted as {id}"),
        SubmitAnswer::Refused { failure, rc } => {
            format!("refused: {} ({}), sbatch returned {rc}", failure.class, failure.rule_id)
        }
        SubmitAnswer::MissingInputs { paths } => format!("{} inputs are missing", paths.len()),
        SubmitAnswer::StageFailed(failure) => {
            format!("not staged: {} ({})", failure.class, failure.rule_id)
        }
        SubmitAnswer::Uncertain => "uncertain".to_owned(),
        SubmitAnswer::Skipped => "skipped".to_owned(),
    }
}

impl Concerns for Locate {
    const CLASS: CommandClass = CommandClass::Locate;

    fn subjects(&self, answer: Option<&LocateAnswer>) -> Vec<Subject> {
        let outcome = |index: usize| {
            let found = answer?.located.get(index)?;
            let listed = found.squeue.first().map(|(id, _)| *id);
            let id = found
                .id_file
                .or(found.run_claim)
                .or(listed)
                .or_else(|| found.sacct.as_ref()?.first().copied());
            Some(id.map_or_else(|| "not found".to_owned(), |id| format!("found as {id}")))
        };
        named(self.jobs.iter().map(|sought| sought.key.as_str()), outcome)
    }

    fn jobs(&self) -> usize {
        self.jobs.len()
    }
}

impl Concerns for Poll {
    const CLASS: CommandClass = CommandClass::Poll;

    fn subjects(&self, _: Option<&Self::Output>) -> Vec<Subject> {
        vec![Subject { whose: Whose::Everybody, outcome: None }]
    }

    fn jobs(&self) -> usize {
        self.jobs.len()
    }
}

impl Concerns for Conclude {
    const CLASS: CommandClass = CommandClass::Conclude;

    fn subjects(&self, answer: Option<&Vec<Concluded>>) -> Vec<Subject> {
        let outcome = |index: usize| {
            let key = &self.jobs.get(index)?.key;
            let concluded = answer?.iter().find(|one| one.key == *key)?;
            let word = match (concluded.readable, concluded.removed) {
                (true, true) => "read, files with secrets are gone",
                (true, false) => "read, files with secrets remain",
                (false, _) => "not all could be read",
            };
            Some(word.to_owned())
        };
        named(self.jobs.iter().map(|one| one.key.as_str()), outcome)
    }

    fn jobs(&self) -> usize {
        self.jobs.len()
    }
}

impl Concerns for Cancel {
    const CLASS: CommandClass = CommandClass::Cancel;

    fn subjects(&self, answer: Option<&Canceled>) -> Vec<Subject> {
        let names = self.jobs.iter().map(|(_, name)| name).chain(&self.names);
        let outcome = |_| {
            let refused = answer?.refused.as_ref();
            Some(refused.map_or_else(
                || "canceled".to_owned(),
                |why| format!("refused: {} ({})", why.class, why.rule_id),
            ))
        };
        named(names.map(slurm::JobName::as_str), outcome)
    }

    fn jobs(&self) -> usize {
        self.jobs.len() + self.names.len()
    }
}

impl Concerns for Exclude {
    const CLASS: CommandClass = CommandClass::Exclude;

    fn subjects(&self, answer: Option<&Excluded>) -> Vec<Subject> {
        let outcome = |index: usize| {
            let failed = answer?.failed.get(index)?.as_ref();
            Some(failed.map_or_else(
                || "changed".to_owned(),
                |why| format!("refused: {} ({})", why.class, why.rule_id),
            ))
        };
        named(self.jobs.iter().map(|(_, name, _)| name.as_str()), outcome)
    }

    fn jobs(&self) -> usize {
        self.jobs.len()
    }
}

impl Concerns for Requeued {
    const CLASS: CommandClass = CommandClass::Requeued;

    fn subjects(&self, answer: Option<&std::collections::HashMap<SlurmJobId, EarlierRun>>) -> Vec<Subject> {
        let outcome = |index: usize| {
            let (id, _) = self.jobs.get(index)?;
            let word = if answer?.contains_key(id) { "known" } else { "not known" };
            Some(word.to_owned())
        };
        named(self.jobs.iter().map(|(_, name)| name.as_str()), outcome)
    }

    fn jobs(&self) -> usize {
        self.jobs.len()
    }
}

impl Concerns for Checkpoints {
    const CLASS: CommandClass = CommandClass::Checkpoints;

    fn subjects(&self, answer: Option<&Vec<Option<RemotePath>>>) -> Vec<Subject> {
        let outcome = |index: usize| {
            let found = answer?.get(index)?;
            let word = if found.is_some() { "found" } else { "none" };
            Some(word.to_owned())
        };
        let subject = |(index, path)| Some(job(job_of(path)?.0, outcome(index)));
        self.results.iter().enumerate().filter_map(subject).collect()
    }

    fn jobs(&self) -> usize {
        self.results.len()
    }
}

impl Concerns for Remove {
    const CLASS: CommandClass = CommandClass::Remove;

    fn subjects(&self, _: Option<&Removed>) -> Vec<Subject> {
        jobs_of(self.files.iter().map(|file| &file.path))
    }

    fn jobs(&self) -> usize {
        jobs_of(self.files.iter().map(|file| &file.path)).len()
    }
}

impl Concerns for Purge {
    const CLASS: CommandClass = CommandClass::Purge;

    fn subjects(&self, answer: Option<&Purged>) -> Vec<Subject> {
        let outcome = |index: usize| {
            let left = answer?.left.iter().any(|(place, _)| *place == index);
            let word = if left { "something is left" } else { "removed" };
            Some(word.to_owned())
        };
        self.jobs.iter().enumerate().map(|(index, (_, id))| job(JobId::new(*id), outcome(index))).collect()
    }

    fn jobs(&self) -> usize {
        self.jobs.len()
    }
}

impl Concerns for ReadLogs {
    const CLASS: CommandClass = CommandClass::ReadLogs;

    fn subjects(&self, _: Option<&Vec<LogAnswer>>) -> Vec<Subject> {
        jobs_of(self.questions.iter().filter_map(place_asked))
    }

    fn jobs(&self) -> usize {
        jobs_of(self.questions.iter().filter_map(place_asked)).len()
    }
}

fn place_asked(question: &LogQuestion) -> Option<&RemotePath> {
    match question {
        LogQuestion::Part { paths, .. } => paths.first(),
        LogQuestion::Files { directory, .. } => Some(directory),
    }
}

impl Concerns for CheckImages {
    const CLASS: CommandClass = CommandClass::CheckImages;

    fn subjects(&self, answer: Option<&Vec<ImageFile>>) -> Vec<Subject> {
        let outcome = |index: usize| {
            let word = match answer?.get(index)? {
                ImageFile::Whole => "whole",
                ImageFile::Broken => "broken",
                ImageFile::Absent => "absent",
                ImageFile::Unread => "not known",
            };
            Some(word.to_owned())
        };
        let subject = |(index, path): (usize, &RemotePath)| Subject {
            whose: Whose::Image(path.clone()),
            outcome: outcome(index),
        };
        self.paths.iter().enumerate().map(subject).collect()
    }

    fn jobs(&self) -> usize {
        self.paths.len()
    }
}

/// For no job of its own.
impl Concerns for NodeHealth {
    const CLASS: CommandClass = CommandClass::NodeHealth;

    fn subjects(&self, _: Option<&Self::Output>) -> Vec<Subject> {
        Vec::new()
    }

    fn jobs(&self) -> usize {
        0
    }
}

impl Concerns for Partitions {
    const CLASS: CommandClass = CommandClass::Partitions;

    fn subjects(&self, _: Option<&Self::Output>) -> Vec<Subject> {
        Vec::new()
    }

    fn jobs(&self) -> usize {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0f8fad5b-d9cb-469f-a165-70867728950e";

    #[test]
    fn a_path_of_ours_names_its_job() {
        let told = |path: &str| {
            let (id, attempt) = job_of(&path.replace("ID", ID).parse().unwrap())?;
            assert_eq!(id.to_string(), ID);
            Some(attempt.map(AttemptNo::get))
        };
        assert_eq!(told("/lustre/tao/results/ID"), Some(None));
        assert_eq!(told("/lustre/tao/env/ID.json"), Some(None));
        assert_eq!(told("/lustre/tao/state/ID/2/main.err"), Some(None));
        assert_eq!(told("/lustre/tao/slurm-logs/tao-job-ID-4711/main.out"), Some(Some(1)));
        assert_eq!(told("/lustre/tao/slurm-logs/tao-job-ID-r12-4711/policy/0.out"), Some(Some(12)));
        assert_eq!(told("/lustre/tao/a-very-long-name-that-has-no-uuid-in-it/main.out"), None);
    }

    #[test]
    fn each_job_of_a_batch_has_its_own_outcome_and_no_text_of_slurm() {
        let refused =
            slurm::classify("sbatch: error: hunter2: Batch job submission failed: Invalid qos specification");
        let id = SlurmJobId::new(7).unwrap();
        assert_eq!(
            submitted(&SubmitAnswer::Submitted { id, how: remote::How::New, extra: Vec::new() }),
            "submitted as 7"
        );
        let told = submitted(&SubmitAnswer::Refused { failure: refused, rc: 1 });
        assert!(told.starts_with("refused: permanent") && !told.contains("hunter2"), "{told}");
    }

    #[test]
    fn a_cancellation_is_for_jobs_and_for_conversions() {
        let conversion = "tao-sqsh-0f8fad5bd9cb469fa16570867728950e-1";
        let command = Cancel {
            jobs: vec![(SlurmJobId::new(7).unwrap(), format!("tao-job-{ID}-r2").parse().unwrap())],
            names: vec![conversion.parse().unwrap(), "somebody-elses".parse().unwrap()],
        };
        let subjects = command.subjects(Some(&Canceled { refused: None }));
        let whose: Vec<_> = subjects.iter().map(|subject| subject.whose.clone()).collect();
        let job = JobId::new(Uuid::try_parse(ID).unwrap());
        let own = Whose::Job { id: job, attempt: AttemptNo::new(2) };
        assert_eq!(whose, [own, Whose::Conversion(job.get())]);
        assert_eq!(subjects[0].outcome.as_deref(), Some("canceled"));
    }
}

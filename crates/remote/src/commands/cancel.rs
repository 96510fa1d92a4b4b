//! Cancels jobs.

use std::time::Duration;

use crate::{
    AttemptKey, Call, ParseError, RawOutput, RemoteCommand, Repeat, Subject, answer::Answer, rpcs,
    stdin_writer::StdinWriter, subject::subjects,
};
use slurm::{Failure, FailureClass, SlurmJobId, TaskSet, failure};

const PROGRAM: &str = program!("preamble", "cancel");

/// No scancel starts after 60 s, and each may take 35 s. The squeue before them is within the 60 s.
const DEADLINE: Duration = Duration::from_secs(110);

/// Cancels jobs, 500 at a time. Only jobs that squeue shows under our name are canceled, because a controller that was
/// reset gives ids again. If squeue does not answer, nothing is canceled.
#[derive(Debug, Clone, Default)]
pub struct Cancel {
    /// The jobs, with their names. A job that is not in the queue under its name counts as canceled.
    pub jobs: Vec<(SlurmJobId, AttemptKey)>,
    /// Tasks of job arrays, by index. The others go on.
    pub tasks: Vec<(SlurmJobId, AttemptKey, TaskSet)>,
    /// Attempts without a known id: all jobs of our user with this name are canceled, before the others.
    pub names: Vec<AttemptKey>,
}

/// The answer of scancel. The jobs may run on for a while: poll them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Canceled {
    /// Why some of the jobs may not have been canceled: repeat the command. The first reason, if there are several.
    pub refused: Option<Failure>,
}

impl RemoteCommand for Cancel {
    type Output = Canceled;

    const NAME: &'static str = "cancel";
    const REPEAT: Repeat = Repeat::Safe;

    fn render(&self) -> Call {
        let mut stdin = StdinWriter::default();
        stdin.field(self.jobs.len() + self.tasks.len()).field(self.names.len()).end_line();
        for (id, key) in &self.jobs {
            stdin.field(id).field(&key.name).field("-").end_line();
        }
        for (id, key, tasks) in &self.tasks {
            stdin.field(id).field(&key.name).field(tasks).end_line();
        }
        for key in &self.names {
            stdin.field(&key.name).end_line();
        }
        let calls = (self.jobs.len() + self.tasks.len()) / 500 + 1 + self.names.len();
        stdin.call(PROGRAM, DEADLINE, super::STDOUT_BASE + calls * super::encoded(60_000))
    }

    fn rpcs(&self) -> u32 {
        match self.jobs.len() + self.tasks.len() + self.names.len() {
            0 => 0,
            jobs => rpcs::SQUEUE + rpcs::times(jobs, rpcs::CANCEL),
        }
    }

    fn is_rate_limited(&self, answer: &Canceled) -> bool {
        answer.refused.as_ref().is_some_and(Failure::is_rate_limited)
    }

    fn parse(&self, raw: &RawOutput) -> Result<Self::Output, ParseError> {
        let mut refused = None;
        for mut line in Answer::read(Self::NAME, raw)?.lines() {
            let failure = match line.tag {
                b"UNSEEN" => Some(unseen(line.failure()?.1)),
                b"REFUSED" => serious(line.value()?, &line.blob_text()?),
                _ => return Err(line.malformed("an unknown kind of line")),
            };
            refused = refused.or(failure);
        }
        Ok(Canceled { refused })
    }

    fn subjects(&self, answer: Option<&Canceled>) -> Vec<(Subject, Option<String>)> {
        let tasks = self.tasks.iter().map(|(_, key, _)| key);
        let keys = self.jobs.iter().map(|(_, key)| key).chain(tasks).chain(&self.names);
        subjects(keys.map(|key| key.subject.clone()), |_| {
            Some(match &answer?.refused {
                None => "canceled".to_owned(),
                Some(failure) => format!("refused: {} ({})", failure.class, failure.rule_id),
            })
        })
    }
}

/// squeue did not answer, so nothing was canceled. A failure of the cluster itself keeps its class.
fn unseen(failure: Failure) -> Failure {
    if failure.class == FailureClass::Infra {
        return failure;
    }
    let excerpt =
        if failure.excerpt.is_empty() { "squeue did not answer".to_owned() } else { failure.excerpt };
    Failure { class: FailureClass::NotDone, excerpt, ..failure }
}

/// scancel also returns a non-zero code if the only problem is that some jobs have already ended. That is a success.
fn serious(code: i32, stderr: &str) -> Option<Failure> {
    let rest: Vec<&str> = stderr.lines().filter(|line| !failure::classify(line).is_job_over()).collect();
    let harmless = rest.is_empty() && !stderr.is_empty();
    (!harmless).then(|| failure::of_exit(code, &rest.join("\n")))
}

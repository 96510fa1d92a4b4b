//! Jobs that wait for other jobs. Our own records decide, whatever Slurm still knows of the others.

use std::fmt::Write;

use slurm::{EnvKey, RemotePath};

use crate::{
    clock::Timestamp,
    cluster::target::Cluster,
    job::{
        identity::JobId,
        paths::JobPaths,
        status::{Phase, Status},
        stored::Job,
    },
    request::needs::{Need, NeedWhen},
    run::plan::Transition,
};

/// The most jobs that a message names.
const NAMED: usize = 3;

/// What is stored of a job that another one needs. A deleted job leaves the default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NeededJob {
    /// None once the job is deleted.
    pub status: Option<Status>,
    pub has_started: bool,
    /// The base directory of its newest attempt.
    pub job_dir: Option<RemotePath>,
}

/// How far a need is met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    Met,
    Waits,
    Never,
}

impl NeededJob {
    fn standing(&self, when: NeedWhen) -> Standing {
        let Some(status) = self.status else { return Standing::Never };
        let is_met = match when {
            NeedWhen::Succeeded => status == Status::Done,
            NeedWhen::Failed => status == Status::Error,
            NeedWhen::Finished => status.is_final(),
            // The start of a short job may be seen by no poll.
            NeedWhen::Started => self.has_started || status == Status::Done,
        };
        match (is_met, status.is_final()) {
            (true, _) => Standing::Met,
            (false, true) => Standing::Never,
            (false, false) => Standing::Waits,
        }
    }

    fn is(&self, when: NeedWhen) -> String {
        match (self.status, when) {
            (None, _) => "was deleted".to_owned(),
            (Some(status), NeedWhen::Started) if status.is_final() => {
                format!("ended with {status} before it began")
            }
            (Some(status), _) if status.is_final() => format!("ended with {status}"),
            (Some(status), _) => format!("is {status}"),
        }
    }
}

/// A waiting job after a look at the jobs that it needs, which are in the order of its needs. It is due again when one of them begins
/// or ends.
pub fn after_needs(job: &Job, needed: &[NeededJob], now: Timestamp) -> Transition {
    let mut next = job.clone();
    let gone = NeededJob::default();
    let all = || {
        let found = needed.iter().chain(std::iter::repeat(&gone));
        job.spec.needs.iter().zip(found).map(|(need, found)| (need, found, found.standing(need.when)))
    };
    if let Some((need, found, _)) = all().find(|(.., standing)| *standing == Standing::Never) {
        let message = format!("Canceled: it needs {}, which {}.", expected(need), found.is(need.when));
        next.end(Status::Canceled, message, now);
        next.is_skipped = true;
        if let Some(array) = &mut next.array {
            array.counts.cancel_pending();
        }
        return Transition { job: next, due_at: None };
    }
    let waits: Vec<_> = all().filter(|(.., standing)| *standing == Standing::Waits).collect();
    if waits.is_empty() {
        next.phase = Phase::Queued;
        "Its needs are met; waiting to be submitted.".clone_into(&mut next.message);
        return Transition { job: next, due_at: Some(now) };
    }
    let named = waits.iter().take(NAMED);
    let named: Vec<_> =
        named.map(|(need, found, _)| format!("{}, which {}", expected(need), found.is(need.when))).collect();
    next.message = format!("Waits for {}", named.join("; "));
    if waits.len() > NAMED {
        let _ = write!(next.message, "; and for {} more jobs", waits.len() - NAMED);
    }
    next.message.push('.');
    Transition { job: next, due_at: None }
}

/// `train to succeed`.
fn expected(need: &Need) -> String {
    let end = match need.when {
        NeedWhen::Succeeded => "succeed",
        NeedWhen::Failed => "fail",
        NeedWhen::Finished => "end",
        NeedWhen::Started => "begin",
    };
    format!("{} to {end}", need.name)
}

impl Job {
    /// The job with the variables about the jobs that it needs, which are in the order of its needs.
    #[must_use]
    pub fn with_needed(&self, needed: &[NeededJob], cluster: &Cluster) -> Self {
        let mut job = self.clone();
        for (need, found) in self.spec.needs.iter().zip(needed) {
            let base = found.job_dir.as_ref().unwrap_or(&cluster.base_dir);
            let dir = JobPaths::results_of(base, JobId::new(need.job)).map(|dir| dir.to_string());
            let status = found.status.map_or_else(|| "Deleted".to_owned(), |status| status.to_string());
            let told = [("ID", Some(need.job.to_string())), ("STATUS", Some(status)), ("DIR", dir.ok())];
            for (what, value) in told {
                if let (Ok(key), Some(value)) = (need.variable(what).parse::<EnvKey>(), value) {
                    // What the caller has set overrides it.
                    job.spec.env.entry(key).or_insert(value);
                }
            }
        }
        job
    }
}

#[cfg(test)]
mod tests;

//! Jobs that wait for other jobs. Our own records decide, whatever Slurm still knows of the others.

use std::fmt::Write;

use slurm::{EnvKey, RemotePath, TaskSet};

use crate::{
    clock::Timestamp,
    cluster::target::Cluster,
    job::{
        array::ArrayState,
        identity::JobId,
        paths::JobPaths,
        status::{Phase, Status},
        stored::{DesiredState, Job},
    },
    request::needs::{Need, NeedWhen},
    run::plan::Transition,
};

/// The most jobs, or ranges of tasks, that a message names.
const NAMED: usize = 3;

/// What is stored of a job that another one needs. A deleted job leaves the default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NeededJob {
    /// None once the job is deleted.
    pub status: Option<Status>,
    pub has_started: bool,
    /// The base directory of its newest attempt.
    pub job_dir: Option<RemotePath>,
    /// The other job went on after this need: it is not looked at again when that job is retried.
    pub was_met: bool,
    /// How its tasks have ended, if it has an array and each task of the other job waits for one of them.
    pub tasks: Option<NeededTasks>,
}

/// How the tasks of a needed job have ended. The others have not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NeededTasks {
    pub done: TaskSet,
    /// They failed or were canceled.
    pub lost: TaskSet,
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
        if self.was_met || when == NeedWhen::Each {
            return Standing::Met;
        }
        self.standing_now(when)
    }

    fn standing_now(&self, when: NeedWhen) -> Standing {
        let Some(status) = self.status else { return Standing::Never };
        let is_met = match when {
            NeedWhen::Succeeded | NeedWhen::Each => status == Status::Done,
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

    /// Which of these tasks may run because their counterparts are done, and which never can because theirs will not be.
    fn sort(&self, tasks: &TaskSet) -> (TaskSet, TaskSet) {
        let own = self.tasks.clone().unwrap_or_default();
        // A job without an array is the counterpart of every task.
        match self.standing_now(NeedWhen::Each) {
            Standing::Met if self.tasks.is_none() => (tasks.clone(), TaskSet::default()),
            Standing::Waits => (tasks.intersection(&own.done), tasks.intersection(&own.lost)),
            // It has ended, and what is not done will not be.
            Standing::Met | Standing::Never => (tasks.intersection(&own.done), tasks.without(&own.done)),
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
            array.skip();
        }
        next.recount(&[], now);
        return Transition { job: next, due_at: None };
    }
    let waits: Vec<_> = all().filter(|(.., standing)| *standing == Standing::Waits).collect();
    if waits.is_empty() {
        next.release_tasks(needed);
        // It has no attempt yet, so no run says anything of its tasks.
        next.recount(&[], now);
        if next.array.as_ref().is_some_and(|array| array.unsubmitted.is_empty()) {
            return next.settle(now);
        }
        next.phase = Phase::Queued;
        let holds_some = next.array.as_ref().is_some_and(|array| !array.held.is_empty());
        let met = if holds_some { "The needs of some tasks are met" } else { "Its needs are met" };
        next.message = format!("{met}; waiting to be submitted.");
        return Transition { job: next, due_at: Some(now) };
    }
    if let Some(array) = &mut next.array {
        // Tasks that were skipped wait again.
        array.release(&TaskSet::default(), &TaskSet::default());
    }
    next.recount(&[], now);
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
        NeedWhen::Succeeded | NeedWhen::Each => "succeed",
        NeedWhen::Failed => "fail",
        NeedWhen::Finished => "end",
        NeedWhen::Started => "begin",
    };
    format!("{} to {end}", need.name)
}

impl Job {
    /// Whether some of its tasks wait for tasks of other jobs, or were canceled because of them.
    pub fn has_held_tasks(&self) -> bool {
        self.desired == DesiredState::Run && self.array.as_ref().is_some_and(ArrayState::follows_others)
    }

    /// Whether it, or a task of it, was canceled because of a job that it needs.
    pub fn skips(&self) -> bool {
        self.is_skipped || self.array.as_ref().is_some_and(|array| !array.skipped.is_empty())
    }

    /// Tasks that wait for tasks of other jobs may be submitted once those are done. `needed` is in the order of the job's needs.
    pub fn release_tasks(&mut self, needed: &[NeededJob]) {
        let Some(array) = &mut self.array else { return };
        let open = array.held.union(&array.skipped);
        let (mut free, mut lost) = (open.clone(), TaskSet::default());
        let needs = self.spec.needs.iter().zip(needed);
        for (_, found) in needs.filter(|(need, _)| need.when == NeedWhen::Each) {
            let (done, gone) = found.sort(&open);
            (free, lost) = (free.intersection(&done), lost.union(&gone));
        }
        array.release(&free, &lost);
    }

    /// What its tasks wait for, if they wait for tasks of other jobs.
    pub(crate) fn awaited_tasks(&self) -> String {
        let held = self.array.as_ref().map(|array| array.held.clone()).unwrap_or_default();
        let names = self.spec.needs.iter().filter(|need| need.when == NeedWhen::Each).take(NAMED);
        let names: Vec<_> = names.map(|need| need.name.as_str()).collect();
        let shown: TaskSet = held.ranges().take(NAMED).collect();
        let more = held.len() - shown.len();
        let more = if more == 0 { String::new() } else { format!(" and {more} more") };
        let tasks = if held.len() == 1 { "task" } else { "tasks" };
        format!("Waits for {tasks} {shown}{more} of {} to succeed.", names.join(" and "))
    }

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

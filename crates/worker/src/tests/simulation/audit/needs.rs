//! Jobs that wait for other jobs.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use domain::{DesiredState, Job, JobId, NeedWhen, NewestRun, Status, TaskStatus};
use testkit::{MemoryStore, Truth, Word};

use super::{
    super::callers::{Sent, Wish},
    succeeded,
};

/// How often the jobs that a job needs were sent again, and those that they need.
pub(super) fn again_with(job: &Job, stored: &BTreeMap<JobId, Job>, sent: &[Sent]) -> usize {
    let needed = |job: &Job| job.spec.needs.iter().map(|need| JobId::new(need.job)).collect::<Vec<_>>();
    let (mut all, mut open) = (BTreeSet::new(), needed(job));
    while let Some(id) = open.pop() {
        if all.insert(id) {
            match stored.get(&id) {
                Some(other) => open.extend(needed(other)),
                // What a deleted job needed is not known any more.
                None => open.extend(sent.iter().map(|other| other.id)),
            }
        }
    }
    let others = sent.iter().filter(|other| all.contains(&other.id));
    others.flat_map(|other| &other.wishes).filter(|wish| **wish == Wish::Retry).count()
}

/// What a job waited for has happened if it ran, and can no longer happen if it was canceled because of that.
pub(super) fn needs(
    job: &Job,
    stored: &BTreeMap<JobId, Job>,
    store: &MemoryStore,
    truth: &Truth,
) -> Vec<String> {
    let mut found = Vec::new();
    let has_run = truth.jobs.values().any(|one| one.owner == Some(job.id.get()));
    let mut blamed = false;
    for need in &job.spec.needs {
        let id = JobId::new(need.job);
        let Some(other) = stored.get(&id) else {
            blamed = true;
            continue;
        };
        let ended = |status: Status| {
            store
                .events_of(id)
                .iter()
                .any(|event| event.data["status"].as_str() == Some(<&str>::from(status)))
        };
        let begun = truth.jobs.values().any(|one| one.owner == Some(need.job));
        if need.when == NeedWhen::Each {
            // One of the tasks may have no counterpart.
            let has_all = other.array.is_none() || job.spec.tasks().without(&other.spec.tasks()).is_empty();
            blamed |= other.status != Status::Done || !has_all;
            found.extend(begun_too_soon(job, other, truth));
            continue;
        }
        let (met, never) = match need.when {
            NeedWhen::Succeeded | NeedWhen::Each => {
                (ended(Status::Done), ended(Status::Error) || ended(Status::Canceled))
            }
            NeedWhen::Failed => (ended(Status::Error), ended(Status::Done) || ended(Status::Canceled)),
            NeedWhen::Finished => {
                (ended(Status::Done) || ended(Status::Error) || ended(Status::Canceled), false)
            }
            NeedWhen::Started => (begun, ended(Status::Error) || ended(Status::Canceled)),
        };
        blamed |= never;
        if has_run && !met {
            found.push(format!("it was submitted, and {} is {} ({need:?})", other.id, other.status));
        }
    }
    found.extend(skipped_without_reason(job, stored, store));
    if job.is_skipped && !blamed {
        let needed: Vec<_> =
            job.spec.needs.iter().map(|need| (need, &stored[&JobId::new(need.job)].message)).collect();
        found.push(format!("it was canceled without a reason: {}; it needs {needed:?}", job.message));
    }
    found
}

/// A task that runs once its counterpart in another job is done has run, and that was not done.
fn begun_too_soon(job: &Job, other: &Job, truth: &Truth) -> Option<String> {
    let of = |id: JobId| truth.jobs.values().filter(move |one| one.owner == Some(id.get()));
    let was_done = |task: u32| {
        let own = of(other.id).filter(|run| other.array.is_none() || run.task == task);
        // A run that accounting forgot may have been told by its outcome file alone.
        own.into_iter().any(|run| succeeded(run, true, false) || run.lost || run.word == Some(Word::Success))
    };
    let too_soon = of(job.id).find(|run| run.executed && !was_done(run.task))?;
    Some(format!("its task {} ran, and that of {} was never done", too_soon.task, other.id))
}

/// A task that was skipped although its counterparts are done.
fn skipped_without_reason(job: &Job, stored: &BTreeMap<JobId, Job>, store: &MemoryStore) -> Option<String> {
    // Those of a job that is canceled or paused are not looked at again.
    let array = job.array.as_ref().filter(|_| job.desired == DesiredState::Run)?;
    // Another need may have canceled all its tasks.
    if job.spec.needs.iter().any(|need| need.when != NeedWhen::Each) {
        return None;
    }
    let others: Vec<_> = job.spec.needs.iter().map(|need| stored.get(&JobId::new(need.job))).collect();
    if others.contains(&None) {
        return None;
    }
    let newest: HashMap<JobId, HashMap<u32, NewestRun>> =
        others.iter().flatten().map(|other| (other.id, store.newest_states(other.id))).collect();
    let is_done = |other: &Job, task: u32| {
        let own = newest.get(&other.id).and_then(|newest| newest.get(&task));
        let has_task = other.array.is_none() || own.is_some();
        has_task && other.task_status(task, own) == TaskStatus::Done
    };
    let wrong =
        array.skipped.iter().find(|task| others.iter().flatten().all(|other| is_done(other, *task)))?;
    Some(format!("its task {wrong} was skipped, and all that it needs is done"))
}

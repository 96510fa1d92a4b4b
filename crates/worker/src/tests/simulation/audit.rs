//! What must hold at the end of every history: what the service says against what really happened.

mod needs;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use domain::{
    ArrayState, DesiredState, IdleAction, Job, JobId, NeedWhen, NewestRun, Outcome, Owner, Phase,
    RestartCause, Status, TaskStatus,
};
use persistence::JobEvent;
use slurm::{Allocation, SlurmState};
use testkit::{LivingCluster, MemoryStore, TrueJob, Truth, Turn, Word};

use super::callers::{Sent, Wish};
use needs::{again_with, needs};

pub(super) fn audit(store: &MemoryStore, site: &LivingCluster, sent_jobs: &[Sent]) -> Vec<String> {
    let mut found = site.truth(|truth| truth.violations.clone());
    found.extend(store.refused().into_iter().map(|broken| format!("the database would refuse {broken}")));
    site.truth(|truth| found.extend(submitted_twice(truth)));
    found.extend(late_words(&store.turns()));
    found.extend(allocations(store, site));
    let stored: BTreeMap<JobId, Job> = store.all_jobs().into_iter().map(|job| (job.id, job)).collect();
    site.truth(|truth| found.extend(conversions(&stored, truth)));
    for sent in sent_jobs {
        let mut say = |what: String| found.push(format!("job {}: {what}", sent.id));
        let deleted = sent.wishes.iter().find_map(|wish| match wish {
            Wish::Delete { artifacts } => Some(*artifacts),
            Wish::Cancel | Wish::CancelSome | Wish::Pause | Wish::Resume | Wish::Retry => None,
        });
        match (stored.get(&sent.id), deleted) {
            (None, None) => say("it was accepted, and is lost".to_owned()),
            (Some(_), Some(_)) => say("it was deleted, and is still there".to_owned()),
            (None, Some(artifacts)) => {
                if artifacts && site.has_files(sent.id.get()) {
                    say("it was deleted with its files, which are still there".to_owned());
                }
                let private = site.private_files(sent.id.get());
                if !private.is_empty() {
                    say(format!("it was deleted, and its secrets are still there: {private:?}"));
                }
            }
            (Some(job), None) => {
                let newest = store.newest_states(sent.id);
                let events = store.events_of(sent.id);
                // A retry of some tasks leaves the others as they were.
                let may_skip_some = job.spec.needs.iter().any(|need| need.when == NeedWhen::Each);
                let was_skipped = !job.spec.needs.is_empty()
                    && events.iter().any(|event| match event.data["status"].as_str() {
                        Some("Canceled") => true,
                        Some("Error") => may_skip_some,
                        _ => false,
                    });
                let wrong = |truth: &Truth| match &job.array {
                    Some(array) => verdict_of_tasks(job, array, &newest, sent, was_skipped, truth),
                    None => verdict(job, sent, truth).into_iter().collect(),
                };
                site.truth(wrong).into_iter().for_each(&mut say);
                let private = site.private_files(sent.id.get());
                if !private.is_empty() {
                    say(format!("its secrets are still on the cluster: {private:?}"));
                }
                if job.phase == Phase::Ended && store.has_secrets(sent.id) {
                    say("its secrets are still stored".to_owned());
                }
                finality(&events, sent, again_with(job, &stored, sent_jobs)).into_iter().for_each(&mut say);
                site.truth(|truth| needs(job, &stored, store, truth)).into_iter().for_each(&mut say);
                site.truth(|truth| lines(job, &events, truth)).into_iter().for_each(&mut say);
                site.truth(|truth| left_in_slurm(job, truth)).into_iter().for_each(&mut say);
            }
        }
    }
    found
}

/// Of a job that has ended, Slurm has nothing any more.
fn left_in_slurm(job: &Job, truth: &Truth) -> Option<String> {
    let mut own = truth.jobs.values().filter(|one| one.owner == Some(job.id.get()));
    let left = own.find(|one| one.state.is_none() && !truth.is_beyond_bound(&one.name));
    left.filter(|_| job.phase == Phase::Ended)
        .map(|left| format!("it has ended, and Slurm still has {}", left.name))
}

/// Of Slurm jobs whose runs are said to be all known, each run that accounting had told by then is stored as it was.
fn allocations(store: &MemoryStore, site: &LivingCluster) -> Vec<String> {
    let (stored, found) = store.allocations();
    let told = found.iter().flat_map(|((name, id), at)| site.allocated(name, *id, *at));
    let held = told.filter(|run| run.elapsed > 0);
    let differs =
        |run: &Allocation| run.start.and_then(|start| stored.get(&(run.id, start))) != Some(&run.elapsed);
    held.filter(differs)
        .map(|run| format!("the store lacks an allocation, or has another: {run:?}"))
        .collect()
}

/// The jobs that convert images have ended, and each is told as it ended.
fn conversions(stored: &BTreeMap<JobId, Job>, truth: &Truth) -> Vec<String> {
    let told = |job: &Job| {
        let last = truth.jobs.get(&job.attempt.as_ref()?.slurm_id?.get());
        let done = last.is_some_and(|last| succeeded(last, true, job.desired == DesiredState::Cancel));
        let forgotten = last.is_some_and(|last| last.lost);
        let is_wrong = match job.status {
            Status::Done => !done,
            Status::Error => done && !forgotten,
            Status::Canceled => {
                job.desired == DesiredState::Run && !last.is_some_and(|last| last.ended_by_others)
            }
            _ => false,
        };
        is_wrong.then(|| format!("{} ({}), but {last:?}", job.status, job.message))
    };
    let ours = stored.values().filter(|job| job.owner == Owner::SERVICE);
    let wrong = |job: &Job| match job.phase {
        Phase::Ended => told(job),
        phase => Some(format!("it has not ended: {phase}")),
    };
    ours.filter_map(|job| Some(format!("conversion {}: it is {}", job.id, wrong(job)?))).collect()
}

/// What callers see of all jobs.
pub(super) fn faces(store: &MemoryStore) -> Vec<(JobId, Status, Phase, i64)> {
    store.all_jobs().into_iter().map(|job| (job.id, job.status, job.phase, job.version)).collect()
}

/// Slurm jobs of one attempt: two only where the controller took the first beyond every bound.
fn submitted_twice(truth: &Truth) -> Vec<String> {
    let mut by_name: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
    for (id, job) in &truth.jobs {
        by_name.entry(&job.name).or_default().push(*id);
    }
    let twice = by_name.into_iter().filter(|(name, ids)| ids.len() > 1 && !truth.is_beyond_bound(name));
    twice.map(|(name, ids)| format!("attempt {name} was submitted several times: {ids:?}")).collect()
}

/// Who slept until his right had passed to another, and was heeded all the same when he woke up.
fn late_words(turns: &[Turn]) -> Vec<String> {
    let mut given = BTreeMap::new();
    let mut found = Vec::new();
    for turn in turns {
        match turn {
            Turn::Given(right, to) => drop(given.insert(right, to)),
            Turn::Used(right, by) if given.get(right) == Some(&by) => {}
            Turn::Used(right, by) => {
                found.push(format!("{right:?} was used by {by}, when it was {:?}'s", given.get(right)));
            }
        }
    }
    found
}

/// Whether the job's end is the one that it really had.
fn verdict(job: &Job, sent: &Sent, truth: &Truth) -> Option<String> {
    let attempt = job.attempt.as_ref();
    let last = attempt.and_then(|attempt| truth.jobs.get(&attempt.slurm_id?.get()));
    let since = sent.wishes.iter().rposition(|wish| *wish == Wish::Retry).map_or(0, |at| at + 1);
    let life = &sent.wishes[since..];
    let wished = |wish| life.contains(&wish);
    let succeeded = last.is_some_and(|last| succeeded(last, sent.is_command, wished(Wish::Cancel)));
    let forgotten = last.is_some_and(|last| last.lost);
    let pauses_idle = job.spec.idle_policy.as_ref().is_some_and(|policy| policy.action == IdleAction::Pause);
    let seen = || last.map_or_else(|| "nothing of it ran".to_owned(), |last| format!("{last:?}"));
    // Of a job that was paused or retried, the last attempt may be one that never reached Slurm.
    let wrong = match job.status {
        Status::Done => !succeeded,
        Status::Error => (succeeded && !forgotten) || last.is_none(),
        Status::Canceled => {
            !wished(Wish::Cancel) && !job.is_skipped && !last.is_some_and(|last| last.ended_by_others)
                || (succeeded && !forgotten)
        }
        Status::Paused => !(wished(Wish::Pause) || pauses_idle) || job.desired != DesiredState::Pause,
        Status::Pending
        | Status::Started
        | Status::Running
        | Status::Canceling
        | Status::Pausing
        | Status::Resuming => return Some(format!("it has not ended: {}", job.status)),
    };
    if let Some(wrong) = restarts(job, sent, truth) {
        return Some(format!("{wrong}: {} ({}), {}", job.status, job.message, seen()));
    }
    let unexecuted = job.status == Status::Done && last.is_some_and(|last| !last.executed);
    let outcome = attempt.and_then(|attempt| Some(attempt.verdict.as_ref()?.outcome));
    let untold = job.status == Status::Done && outcome != Some(Outcome::Done);
    (wrong || unexecuted || untold)
        .then(|| format!("it is {} ({}), but {}; wishes: {:?}", job.status, job.message, seen(), sent.wishes))
}

/// A job goes on after a time limit or a preemption if its policy says so, and only then.
fn restarts(job: &Job, sent: &Sent, truth: &Truth) -> Option<&'static str> {
    let is_listed = |run: &TrueJob| match run.state {
        Some(SlurmState::Timeout) => job.spec.restart.on.contains(&RestartCause::Timeout),
        Some(SlurmState::Preempted) => job.spec.restart.on.contains(&RestartCause::Preempted),
        _ => false,
    };
    let has_reported = |run: &TrueJob| matches!(run.word, Some(Word::Success | Word::Failure));
    let interrupted = |run: &&TrueJob| is_listed(run) && !run.lost && !has_reported(run);
    let name = job.attempt.as_ref().map(|attempt| attempt.token.as_str());
    let own = || truth.jobs.values().filter(|run| run.owner == Some(job.id.get()) && run.executed);
    if own()
        .filter_map(|run| truth.jobs.get(&run.after?))
        .any(|before| !is_listed(before) || has_reported(before))
    {
        return Some(
            "an attempt that was queued ahead ran, and the one before had reported its end, or not ended as the policy lists",
        );
    }
    let (last, before): (Vec<_>, Vec<_>) = own().partition(|run| Some(run.name.as_str()) == name);
    let is_used_up = job.message.contains("Not restarted") || job.spec.restart.max_total_seconds.is_some();
    if matches!(job.status, Status::Error | Status::Canceled)
        && sent.wishes.is_empty()
        && !is_used_up
        && last.iter().any(interrupted)
    {
        return Some("it ended, and its policy says that it goes on");
    }
    let is_default =
        job.spec.restart.max_total_seconds.is_none() && !job.spec.restart.on.contains(&RestartCause::Timeout);
    let timed_out = before.iter().any(|run| run.state == Some(SlurmState::Timeout) && !run.lost);
    (is_default && sent.wishes.is_empty() && timed_out)
        .then_some("it went on after a time limit, without a policy for that")
}

/// Whether each task's end is the one that it really had, and the job's end follows from them.
fn verdict_of_tasks(
    job: &Job,
    array: &ArrayState,
    newest: &HashMap<u32, NewestRun>,
    sent: &Sent,
    was_skipped: bool,
    truth: &Truth,
) -> Vec<String> {
    let mut found = Vec::new();
    // A retry of some tasks leaves the ends of the others as they are.
    let canceled = sent.wishes.contains(&Wish::Cancel);
    let mut statuses = Vec::new();
    for task in job.spec.tasks().iter() {
        let status = job.task_status(task, newest.get(&task));
        let ours = |one: &&TrueJob| one.owner == Some(sent.id.get()) && one.task == task && one.executed;
        let runs: Vec<&TrueJob> = truth.jobs.values().filter(ours).collect();
        // Of an attempt that was given up, and taken all the same.
        if runs.iter().any(|run| truth.is_beyond_bound(&run.name)) {
            statuses.push(status);
            continue;
        }
        let is_canceled = canceled || sent.withdrawn.contains(task);
        let done = |run: &TrueJob| succeeded(run, true, is_canceled) && !run.lost;
        let last = runs.last();
        let wrong = match status {
            // It may have ended before it was canceled.
            TaskStatus::Done => !last.is_some_and(|last| succeeded(last, true, false) || last.lost),
            TaskStatus::Error => last.is_some_and(|last| done(last)),
            TaskStatus::Canceled => {
                !is_canceled && !was_skipped && !last.is_some_and(|last| last.ended_by_others)
                    || last.is_some_and(|last| done(last))
            }
            TaskStatus::Pending | TaskStatus::Running => job.status != Status::Paused,
        };
        if wrong {
            let message = &job.message;
            found.push(format!(
                "task {task} is {status:?} ({message}), but {last:?}; wishes: {:?}",
                sent.wishes
            ));
        }
        // Whoever is done goes never again.
        let earlier = runs.len().saturating_sub(1);
        let completed = |run: &&TrueJob| run.state == Some(SlurmState::Completed) && done(run);
        if runs[..earlier].iter().any(completed) {
            found.push(format!("task {task} ran again after it was done: {runs:?}"));
        }
        statuses.push(status);
    }
    let has = |status| statuses.contains(&status);
    let folded = match job.status {
        Status::Done => statuses.iter().all(|status| *status == TaskStatus::Done),
        Status::Error => has(TaskStatus::Error) || array.refusal.is_some(),
        Status::Canceled => has(TaskStatus::Canceled) && !has(TaskStatus::Error),
        Status::Paused => job.desired == DesiredState::Pause,
        Status::Pending
        | Status::Started
        | Status::Running
        | Status::Canceling
        | Status::Pausing
        | Status::Resuming => false,
    };
    if !folded {
        found.push(format!("it is {} ({}), with tasks {statuses:?}", job.status, job.message));
    }
    found
}

/// Whether a run of the job did what it should, by the rules that callers are told.
fn succeeded(last: &TrueJob, is_command: bool, canceled: bool) -> bool {
    let said = last.word == Some(Word::Success);
    match &last.state {
        Some(SlurmState::Completed) => said || (is_command && last.word != Some(Word::Failure)),
        Some(SlurmState::Cancelled | SlurmState::Timeout) => said && !canceled,
        _ => false,
    }
}

/// An end is final, but for the owner's wish to send the job again.
///
/// `reopened`: how often a job that it needs was sent again.
fn finality(events: &[JobEvent], sent: &Sent, reopened: usize) -> Vec<String> {
    let mut found = Vec::new();
    if events.iter().enumerate().any(|(index, event)| event.seq != index as u64 + 1) {
        found.push("its events are not numbered one after the other".to_owned());
    }
    let phases: Vec<&str> = events
        .iter()
        .filter(|event| event.kind == "transition")
        .filter_map(|event| event.data["phase"].as_str())
        .collect();
    let again = phases.windows(2).filter(|pair| pair[0] == "ended").count();
    let wished = sent.wishes.iter().filter(|wish| **wish == Wish::Retry).count() + reopened;
    if again > wished {
        found.push(format!("it has ended and gone on {again} times, and was sent again {wished} times"));
    }
    found
}

/// Each line that the job wrote is one event. Of a file that is seen late, lines that came after its job was looked at for
/// the last time are none.
fn lines(job: &Job, events: &[JobEvent], truth: &Truth) -> Option<String> {
    let id = job.id;
    let told: Vec<u64> = events
        .iter()
        .filter(|event| event.kind == "status")
        .filter_map(|event| event.data["n"].as_u64())
        .collect();
    let once: BTreeSet<u64> = told.iter().copied().collect();
    if once.len() != told.len() {
        return Some(format!("a status line became several events: {told:?}"));
    }
    let written = truth.lines.get(&id.get()).copied().unwrap_or(0);
    // What a run wrote that began when nobody expected it any more.
    let is_overdue = |job: &TrueJob| job.owner == Some(id.get()) && truth.is_beyond_bound(&job.name);
    let unexpected = truth.jobs.values().any(is_overdue);
    // The files of a task that was requeued, and canceled before it began again, are not read once more.
    let is_array = job.array.is_some();
    let excused = truth.files_were_late || truth.overwritten.contains(&id.get()) || unexpected || is_array;
    let complete = once.len() as u64 == written || excused;
    let missing: Vec<u64> = (1..=written).filter(|line| !once.contains(line)).collect();
    (!complete).then(|| format!("of {written} status lines these became no events: {missing:?}"))
}

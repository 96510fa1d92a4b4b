//! Random results of steps and polls, as the service could make them.

use chrono::TimeDelta;
use domain::{
    Attempt, DesiredState, Failure, FailureCategory, Graces, Job, JobPaths, Observation, ObservedChange,
    Outcome, Phase, Run, Status, TaskTemplate, Timestamp, Transition, Verdict, observe,
};
use persistence::{ActiveArray, ObservedTask};
use remote::StatusChunk;
use slurm::{QueueRow, RemotePath, SlurmJobId, SlurmState};
use testkit::Dice;

/// The job after a random step.
pub(crate) fn step(job: &Job, dice: &mut Dice, now: Timestamp) -> Transition {
    let mut job = job.clone();
    match dice.below(7) {
        0 | 1 if job.phase == Phase::Waiting => {
            job.phase = dice.one_of(&[Phase::Waiting, Phase::Queued]);
            job.message = format!("Waits, {}.", dice.below(3));
        }
        0 | 1 => intend(&mut job, now),
        2 | 3 => {
            if job.attempt.as_ref().is_none_or(|attempt| !attempt.is_open()) {
                intend(&mut job, now);
            }
            let attempt = job.attempt.as_mut().unwrap();
            attempt.slurm_id = SlurmJobId::new(u32::try_from(dice.between(1, 999)).unwrap());
            attempt.submitted_at = Some(now);
            (job.phase, job.submitted_at) = (Phase::InQueue, Some(now));
            "In the queue.".clone_into(&mut job.message);
        }
        4 => {
            (job.phase, job.finished_at) = (Phase::Ended, Some(now));
            job.status = dice.one_of(&[Status::Done, Status::Error, Status::Canceled]);
            job.is_skipped = job.status == Status::Canceled && dice.chance(500);
            close(&mut job, now);
        }
        5 => {
            (job.phase, job.status, job.retry_count) =
                (Phase::RetryWait, Status::Pending, job.retry_count + 1);
            close(&mut job, now);
        }
        _ if job.desired == DesiredState::Pause => {
            (job.phase, job.status) = (Phase::Paused, Status::Paused);
            close(&mut job, now);
        }
        _ => {
            (job.phase, job.status) = (Phase::ConvertingImage, Status::Pending);
            job.message = format!("Waits for its image, {}.", dice.below(3));
        }
    }
    if job.phase != Phase::Ended {
        job.finished_at = None;
    }
    let due_at = match dice.below(3) {
        0 => None,
        1 => Some(now),
        _ => Some(now + TimeDelta::seconds(65)),
    };
    Transition { job, due_at }
}

fn intend(job: &mut Job, now: Timestamp) {
    if job.attempt.as_ref().is_none_or(|attempt| !attempt.is_open()) {
        let mut attempt = job.new_attempt("/lustre/users/tao".parse().unwrap(), now).unwrap();
        attempt.tasks = job.spec.tasks();
        attempt.fence.begin();
        job.begin_attempt(attempt);
    }
    (job.phase, job.status) = (Phase::Submitting, Status::Pending);
}

fn close(job: &mut Job, now: Timestamp) {
    let verdict =
        Verdict { at: now, outcome: Outcome::Retried, why: "so".to_owned(), rule: None, line: None };
    if let Some(attempt) = &mut job.attempt {
        attempt.verdict.get_or_insert(verdict);
    }
}

/// An active job after a random poll: with or without its row in the queue, and with a new line in its status file.
pub(crate) fn seen(job: &Job, dice: &mut Dice, now: Timestamp) -> Option<ObservedChange> {
    let row = row(job.attempt.as_ref()?, dice)?;
    let status: Vec<StatusChunk> = line(job, dice).into_iter().collect();
    let observation =
        Observation { queue: Some(&row), queue_answered: true, status: &status, ..Observation::default() };
    observe(job, &observation, &Graces::default(), now)
}

fn row(attempt: &Attempt, dice: &mut Dice) -> Option<QueueRow> {
    let running = SlurmState::Running;
    let state = dice.one_of(&[SlurmState::Pending, running.clone(), running, SlurmState::Completed]);
    let running = state != SlurmState::Pending;
    Some(QueueRow {
        id: attempt.slurm_id?,
        reason: "None".to_owned(),
        nodes: if running { "node01".to_owned() } else { String::new() },
        submit: None,
        start: running.then_some(1_700_000_000 + i64::try_from(dice.below(2)).unwrap() * 100),
        end: None,
        partition: "polar".to_owned(),
        name: attempt.token.to_string(),
        state,
    })
}

/// A run of a task after a random poll.
pub(crate) fn task_seen(array: &ActiveArray, dice: &mut Dice, now: Timestamp) -> Option<ObservedTask> {
    let template = TaskTemplate::of(&array.job);
    let attempt = array.job.attempts_in_slurm().next()?;
    let task = u32::try_from(dice.below(6)).ok()?;
    let has_run = array.seen.get(&attempt.no).is_some_and(|seen| seen.contains(task));
    let known = match array.runs.iter().find(|(no, run)| *no == attempt.no && run.task == task) {
        Some((_, run)) => run.clone(),
        // It is over.
        None if has_run => return None,
        None => template.first_run(task, array.earlier.get(&task)),
    };
    let results = JobPaths::new(&attempt.job_dir, array.job.id).ok()?.task_results(task).ok()?;
    let status = [chunk(attempt, results.join("status.json").ok()?, &known, dice)];
    let row = row(attempt, dice)?;
    let seen =
        Observation { queue: Some(&row), queue_answered: true, status: &status, ..Observation::default() };
    let mut run = template.observe(attempt, &known, &seen, &Graces::default(), now)?;
    if dice.chance(200) {
        run.kill_reason = Some("No activity.".to_owned());
    }
    Some(ObservedTask { job: array.job.id, attempt: attempt.no, run })
}

/// Why a run failed, by this rule.
pub(crate) fn failure(rule: &str) -> Failure {
    Failure {
        rule: rule.to_owned(),
        category: FailureCategory::Code,
        why: "so".to_owned(),
        advice: "Read the log.".to_owned(),
        line: None,
        rank: None,
        node: None,
        followed: Vec::new(),
        has_gaps: false,
    }
}

fn line(job: &Job, dice: &mut Dice) -> Option<StatusChunk> {
    let attempt = job.attempt.as_ref()?;
    let path = JobPaths::new(&attempt.job_dir, job.id).ok()?.results.join("status.json").ok()?;
    Some(chunk(attempt, path, &job.run, dice))
}

fn chunk(attempt: &Attempt, path: RemotePath, known: &Run, dice: &mut Dice) -> StatusChunk {
    let status = if dice.chance(200) { "SUCCESS" } else { "RUNNING" };
    let text = format!("{{\"status\":\"{status}\",\"epoch\":{}}}\n", dice.below(100));
    // A new file each time, so that its earlier content does not matter.
    StatusChunk {
        key: attempt.token.to_string(),
        path,
        inode: dice.roll() >> 1,
        size: text.len() as u64,
        written_at: 1,
        note: None,
        start_offset: 0,
        skipped: 0,
        before: Vec::new(),
        bytes: text.into_bytes(),
        complete: true,
        restarted: !known.status.cursors().is_empty(),
    }
}

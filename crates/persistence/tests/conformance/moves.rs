//! Random results of steps and polls, as the service could make them.

use chrono::TimeDelta;
use domain::{
    Conversion, ConversionState, DesiredState, Graces, Job, JobPaths, Observation, ObservedChange, Outcome,
    Phase, Status, Timestamp, Verdict, observe,
};
use persistence::StepRecord;
use remote::StatusChunk;
use slurm::{QueueRow, SlurmJobId, SlurmState};
use testkit::Dice;

/// The job after a random step.
pub(crate) fn step(job: &Job, dice: &mut Dice, now: Timestamp) -> StepRecord {
    let mut job = job.clone();
    match dice.below(7) {
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
    StepRecord { job, due_at }
}

fn intend(job: &mut Job, now: Timestamp) {
    if job.attempt.as_ref().is_none_or(|attempt| !attempt.is_open()) {
        let mut attempt = job.new_attempt("/lustre/users/tao".parse().unwrap(), now).unwrap();
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
    let attempt = job.attempt.as_ref()?;
    let running = SlurmState::Running;
    let state = dice.one_of(&[SlurmState::Pending, running.clone(), running, SlurmState::Completed]);
    let running = state != SlurmState::Pending;
    let row = QueueRow {
        id: attempt.slurm_id?,
        reason: "None".to_owned(),
        nodes: if running { "node01".to_owned() } else { String::new() },
        submit: None,
        start: running.then_some(1_700_000_000 + i64::try_from(dice.below(2)).unwrap() * 100),
        end: None,
        partition: "polar".to_owned(),
        name: attempt.token.to_string(),
        state,
    };
    let status: Vec<StatusChunk> = line(job, dice).into_iter().collect();
    let observation =
        Observation { queue: Some(&row), queue_answered: true, status: &status, ..Observation::default() };
    observe(job, &observation, &Graces::default(), now)
}

fn line(job: &Job, dice: &mut Dice) -> Option<StatusChunk> {
    let attempt = job.attempt.as_ref()?;
    let path = JobPaths::new(&attempt.job_dir, job.id).ok()?.results.join("status.json").ok()?;
    let text = format!("{{\"status\":\"RUNNING\",\"epoch\":{}}}\n", dice.below(100));
    // A new file each time, so that its earlier content does not matter.
    Some(StatusChunk {
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
        restarted: !job.run.status.cursors().is_empty(),
    })
}

/// The conversion after a random step, and when it is due again.
pub(crate) fn convert(
    conversion: &Conversion,
    dice: &mut Dice,
    now: Timestamp,
) -> (Conversion, Option<Timestamp>) {
    let mut next = conversion.clone();
    next.state = match dice.below(4) {
        0 => ConversionState::Submitting,
        1 => ConversionState::InQueue,
        2 => ConversionState::Running,
        _ => ConversionState::Failed,
    };
    next.message = format!("{}, {}", next.state, dice.below(9));
    if dice.chance(500) {
        (next.file, next.file_seen_at) = (Some(next.cache_path.clone()), Some(now));
    }
    (next, dice.chance(500).then(|| now + TimeDelta::seconds(65)))
}

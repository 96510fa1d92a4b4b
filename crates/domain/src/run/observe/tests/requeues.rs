//! Runs that Slurm has put back into its queue, seen or unseen.

use super::*;
use crate::fixtures::absorb;

fn requeued_after(words: &str) -> (Job, ObservedChange) {
    let chunk = StatusChunk {
        key: String::new(),
        path: "/lustre/r/status.json".parse().unwrap(),
        inode: 9,
        size: words.len() as u64,
        written_at: 0,
        note: None,
        start_offset: 0,
        skipped: 0,
        before: Vec::new(),
        bytes: words.as_bytes().to_vec(),
        complete: true,
        restarted: false,
    };
    let job = submitted_job();
    let row = row(&job, SlurmState::Running, "None");
    let chunks = [chunk];
    let seen =
        Observation { queue: Some(&row), queue_answered: true, status: &chunks, ..Observation::default() };
    let running = see(&job, &seen, 10).unwrap().job;
    let next = queued(&running, SlurmState::Pending, "BeginTime").unwrap();
    (running, next)
}

#[test]
fn what_a_job_said_before_it_was_requeued_is_not_about_its_next_run() {
    let (before, after) = requeued_after("{\"status\":\"FAILURE\",\"epoch\":3,\"message\":\"no\"}\n");
    assert_eq!(before.run.progress.final_status(), Some(StatusWord::Failure));
    assert_eq!((after.job.run.progress.final_status(), after.job.run.progress.epoch), (None, None));
    let again = queued(&after.job, SlurmState::Running, "None").unwrap();
    let later = T0 + TimeDelta::hours(1);
    assert_eq!(released_at(&again.job.run, &Graces::default()), None);
    assert_eq!(crate::plan(&again.job, &Graces::default(), later), crate::Step::Rest);
}

#[test]
fn a_requeue_that_no_poll_has_seen_shows_by_its_start() {
    let (running, _) = requeued_after("{\"status\":\"FAILURE\"}\n");
    let later = QueueRow { start: Some(500), ..row(&running, SlurmState::Running, "None") };
    let next = see(
        &running,
        &Observation { queue: Some(&later), queue_answered: true, ..Observation::default() },
        600,
    );
    let next = next.unwrap().job;
    assert_eq!((next.run.progress.final_status(), next.run.requeues), (None, 1));
}

/// Slurm 22.05 shows a job that it has just requeued as COMPLETING, with the time of the requeue as its start, and then as PENDING with
/// that time as its submission.
#[test]
fn a_requeue_whose_run_is_seen_to_end_is_counted_once() {
    let poll = |job: &Job, state, submit, start| {
        let row = QueueRow { submit: Some(submit), start, ..row(job, state, "None") };
        let seen = Observation { queue: Some(&row), queue_answered: true, ..Observation::default() };
        see(job, &seen, 600).map_or_else(|| job.clone(), |change| change.job)
    };
    let running = poll(&submitted_job(), SlurmState::Running, 100, Some(100));
    for known in [submitted_job(), running] {
        let ends = poll(&known, SlurmState::Completing, 100, Some(500));
        let waits = poll(&ends, SlurmState::Pending, 500, None);
        let runs = poll(&waits, SlurmState::Running, 500, Some(510));
        assert_eq!([&ends, &waits, &runs].map(|job| job.run.requeues), [0, 1, 1]);
        assert_eq!(runs.run.started_at, timestamp(Some(510)));
    }
}

#[test]
fn a_run_that_came_and_went_between_two_polls_shows_by_its_place_in_the_queue() {
    let waits = |job: &Job, submit| {
        let row = QueueRow { submit: Some(submit), start: None, ..row(job, SlurmState::Pending, "Priority") };
        see(job, &Observation { queue: Some(&row), queue_answered: true, ..Observation::default() }, 600)
    };
    let job = waits(&submitted_job(), 100).unwrap().job;
    assert!(waits(&job, 100).is_none());
    let again = waits(&job, 101).unwrap();
    assert!(again.step_due, "why it was requeued is to be found out");
    assert_eq!(again.job.run.requeues, 1);
    assert!(waits(&again.job, 101).is_none(), "it is counted once");
    let runs = queued(&job, SlurmState::Running, "None").unwrap().job;
    assert_eq!(runs.run.requeues, 0, "its own start is no requeue");
}

#[test]
fn a_requeue_that_no_poll_has_seen_shows_by_the_end_of_a_run_that_never_began() {
    let (running, _) = requeued_after("{\"status\":\"SUCCESS\"}\n");
    let ended = |start| QueueRow { start, ..row(&running, SlurmState::Cancelled, "None") };
    let word = |row: &QueueRow| {
        let seen = Observation { queue: Some(row), queue_answered: true, ..Observation::default() };
        see(&running, &seen, 600).unwrap().job.run.progress.final_status()
    };
    assert_eq!(word(&ended(Some(2))), Some(StatusWord::Success));
    assert_eq!(word(&ended(None)), None);
    assert_eq!(word(&ended(Some(500))), None);
    let record = AccountingRow {
        id: SlurmJobId::new(7).unwrap(),
        state: SlurmState::Cancelled,
        exit_code: None,
        reason: "None".to_owned(),
        start: None,
        end: Some(9),
        nodes: String::new(),
        name: row(&running, SlurmState::Cancelled, "None").name,
        canceled_by: None,
        before: None,
    };
    let seen = Observation { accounting: Some(&record), queue_answered: true, ..Observation::default() };
    assert_eq!(
        see(&running, &seen, 600).unwrap().job.run.progress.final_status(),
        None,
        "accounting says so"
    );
}

#[test]
fn a_requeue_that_no_poll_has_seen_shows_by_the_note_of_the_next_run() {
    let text = "{\"status\":\"SUCCESS\"}\n";
    let chunk = |restart: u32, start_offset: usize| StatusChunk {
        key: String::new(),
        path: "/lustre/r/status.json".parse().unwrap(),
        inode: 9,
        size: text.len() as u64,
        written_at: 0,
        note: Some(remote::RunNote { at: restart.into(), restart, fresh_from: 22 * u64::from(restart) }),
        start_offset: start_offset as u64,
        skipped: 0,
        before: text.as_bytes()[..start_offset].to_vec(),
        bytes: text.as_bytes()[start_offset..].to_vec(),
        complete: true,
        restarted: false,
    };
    let mut job = queued(&submitted_job(), SlurmState::Running, "None").unwrap().job;
    absorb(&mut job, &[chunk(0, 0)], T0);
    assert_eq!(job.run.progress.final_status(), Some(StatusWord::Success));
    absorb(&mut job, &[chunk(0, text.len())], T0);
    assert_eq!(job.run.progress.final_status(), Some(StatusWord::Success), "the same run");
    absorb(&mut job, &[chunk(1, text.len())], T0);
    assert_eq!((job.run.progress.final_status(), job.run.requeues), (None, 1));
}

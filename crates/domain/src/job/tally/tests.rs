use std::num::NonZeroU32;

use chrono::{DateTime, TimeDelta};
use slurm::SlurmJobId;
use test_case::test_case;

use super::*;
use crate::{
    fixtures::command_job,
    job::array::TaskOutcome,
    request::array::{ArrayTasks, JobArray},
    run::plan::{Step, plan},
};

const T0: Timestamp = DateTime::UNIX_EPOCH;

fn array_job(tasks: &str) -> Job {
    let mut job = command_job();
    let tasks = ArrayTasks::Indices(tasks.parse().unwrap());
    job.spec.array = Some(JobArray { tasks, max_parallel: NonZeroU32::new(10) });
    job.array = ArrayState::of(&job.spec);
    job
}

fn submit_piece(job: &mut Job, id: u32) {
    let mut attempt = job.new_attempt("/lustre/tao".parse().unwrap(), T0).unwrap();
    job.assign_tasks(&mut attempt, 4);
    attempt.slurm_id = SlurmJobId::new(id);
    job.begin_attempt(attempt);
    job.phase = Phase::InQueue;
}

fn step(job: &Job) -> Step {
    plan(job, &crate::run::graces::Graces::default(), T0)
}

fn tally(running: u32, outcomes: &[TaskOutcome]) -> AttemptTally {
    let mut tally = AttemptTally { running, ..AttemptTally::default() };
    for outcome in outcomes {
        tally.conclude(*outcome, false);
    }
    tally
}

fn no(number: u32) -> AttemptNo {
    AttemptNo::new(number).unwrap()
}

#[test]
fn an_array_is_submitted_piece_by_piece() {
    let mut job = array_job("0-5");
    assert_eq!(step(&job), Step::Submit);
    submit_piece(&mut job, 7);
    let Transition { mut job, due_at: due } = job.after_piece(None, T0);
    assert_eq!((step(&job), due), (Step::Submit, Some(T0)));
    submit_piece(&mut job, 8);
    let Transition { job, .. } = job.after_piece(None, T0);
    assert_eq!(step(&job), Step::Tend, "nothing is left to submit");
    let pieces: Vec<_> = job.attempts_in_slurm().map(|a| (a.no.get(), a.base, a.tasks.to_string())).collect();
    assert_eq!(pieces, [(1, 0, "0-3".to_owned()), (2, 4, "4-5".to_owned())]);
    assert_eq!(job.attempts_in_slurm().filter_map(|a| job.max_parallel(a)).collect::<Vec<_>>(), [7, 4]);
}

#[test_case(&[TaskOutcome::Done, TaskOutcome::Done], Status::Done, "2 of 2 tasks done."; "all done")]
#[test_case(&[TaskOutcome::Done, TaskOutcome::Error], Status::Error, "1 of 2 tasks done, 1 failed."; "one failed")]
#[test_case(&[TaskOutcome::Done, TaskOutcome::Canceled], Status::Canceled, "1 of 2 tasks done, 1 canceled."; "one canceled")]
#[test_case(&[TaskOutcome::Error, TaskOutcome::Canceled], Status::Error, "0 of 2 tasks done, 1 failed, 1 canceled."; "failed before canceled")]
fn the_status_follows_from_the_tasks(outcomes: &[TaskOutcome], status: Status, message: &str) {
    let mut job = array_job("0-1");
    submit_piece(&mut job, 7);
    let Transition { job, due_at: due } = job.tally(&[(no(1), tally(0, outcomes))], T0);
    assert_eq!((job.status, job.message.as_str(), job.phase, due), (status, message, Phase::Ended, None));
    assert!(!job.attempt.unwrap().is_open());
}

#[test]
fn a_job_is_not_over_while_a_task_is_not() {
    let mut job = array_job("0-2");
    submit_piece(&mut job, 7);
    let Transition { job, .. } = job.tally(&[(no(1), tally(1, &[TaskOutcome::Error]))], T0);
    let said = "0 of 3 tasks done, 1 failed, 1 running, 1 waiting.";
    assert_eq!((job.status, job.phase, job.message.as_str()), (Status::Running, Phase::Running, said));
}

#[test]
fn a_task_that_the_infrastructure_failed_goes_alone_in_another_attempt() {
    let mut job = array_job("0-2");
    submit_piece(&mut job, 7);
    job.await_task(1, Some(T0 + TimeDelta::seconds(15)));
    let outcomes = [TaskOutcome::Done, TaskOutcome::Retried, TaskOutcome::Done];
    let Transition { mut job, due_at: due } = job.tally(&[(no(1), tally(0, &outcomes))], T0);
    assert_eq!((job.phase, due), (Phase::RetryWait, Some(T0 + TimeDelta::seconds(15))));
    assert_eq!(step(&job), Step::Tend, "it waits");
    let later = T0 + TimeDelta::seconds(15);
    assert_eq!(plan(&job, &crate::run::graces::Graces::default(), later), Step::Submit);
    submit_piece(&mut job, 9);
    let attempt = job.attempt.as_ref().unwrap();
    assert_eq!((attempt.no.get(), attempt.tasks.to_string()), (2, "1".to_owned()));
    let last = [(no(1), tally(0, &outcomes)), (no(2), tally(0, &[TaskOutcome::Done]))];
    let Transition { job, .. } = job.tally(&last, later);
    assert_eq!((job.status, job.message.as_str()), (Status::Done, "3 of 3 tasks done."));
}

#[test]
fn canceling_drops_the_tasks_that_wait_for_a_submission() {
    let mut job = array_job("0-5");
    submit_piece(&mut job, 7);
    job.desired = DesiredState::Cancel;
    let Transition { job, .. } = job.tally(&[(no(1), tally(0, &[TaskOutcome::Done]))], T0);
    assert_eq!((job.status, step(&job)), (Status::Canceling, Step::Tend), "three of them are in Slurm");
    let outcomes = [TaskOutcome::Done, TaskOutcome::Canceled, TaskOutcome::Canceled, TaskOutcome::Canceled];
    let Transition { job, .. } = job.tally(&[(no(1), tally(0, &outcomes))], T0);
    assert_eq!((job.status, job.message.as_str()), (Status::Canceled, "1 of 6 tasks done, 5 canceled."));
}

#[test]
fn a_paused_array_goes_on_with_the_tasks_that_are_not_done() {
    let mut job = array_job("0-5");
    submit_piece(&mut job, 7);
    let Transition { mut job, .. } = job.tally(&[(no(1), tally(3, &[TaskOutcome::Done]))], T0);
    job.desired = DesiredState::Pause;
    for task in 1..=3 {
        job.await_task(task, None);
    }
    let retried = [TaskOutcome::Done, TaskOutcome::Retried, TaskOutcome::Retried, TaskOutcome::Retried];
    let Transition { mut job, .. } = job.tally(&[(no(1), tally(0, &retried))], T0);
    assert_eq!((job.status, job.phase, step(&job)), (Status::Paused, Phase::Paused, Step::Rest));
    let said =
        "Paused. 1 of 6 tasks done, 5 waiting. When it is resumed, tasks that were running start over.";
    assert_eq!(job.message, said);
    (job.desired, job.phase) = (DesiredState::Run, Phase::Queued);
    assert_eq!(step(&job), Step::Submit);
    submit_piece(&mut job, 9);
    assert_eq!(job.attempt.unwrap().tasks.to_string(), "1-3", "task 0 is done");
}

#[test]
fn a_rejected_piece_ends_the_job_when_the_others_have_ended() {
    let mut job = array_job("0-5");
    submit_piece(&mut job, 7);
    let mut attempt = job.new_attempt("/lustre/tao".parse().unwrap(), T0).unwrap();
    job.assign_tasks(&mut attempt, 4);
    job.begin_attempt(attempt);
    job.end(Status::Error, "Slurm rejected the job: no.".to_owned(), T0);
    let Transition { job, due_at: due } = job.after_piece(None, T0);
    assert_eq!((job.phase, due), (Phase::InQueue, Some(T0)));
    let Transition { job, .. } = job.tally(&[(no(1), tally(0, &[TaskOutcome::Done; 3]))], T0);
    assert_eq!(job.phase, Phase::InQueue, "one of the first piece still waits");
    let Transition { job, .. } = job.tally(&[(no(1), tally(0, &[TaskOutcome::Done; 4]))], T0);
    assert_eq!(job.status, Status::Error);
    assert_eq!(job.message, "Slurm rejected the job: no. 4 of 6 tasks done, 2 failed.");
    assert_eq!(job.task_status(5, None), TaskStatus::Error);
}

#[test]
fn a_piece_that_cannot_be_submitted_does_not_end_the_others() {
    let mut job = array_job("0-5");
    submit_piece(&mut job, 7);
    job.phase = Phase::Queued;
    let Transition { job, due_at } = job.unstageable("The image is gone.", T0);
    assert_eq!((job.phase, job.status, due_at), (Phase::InQueue, Status::Running, Some(T0)));
    assert_eq!(job.attempts_in_slurm().count(), 1, "it runs");
    let Transition { job, .. } = job.tally(&[(no(1), tally(0, &[TaskOutcome::Done; 4]))], T0);
    assert_eq!(job.message, "The image is gone. 4 of 6 tasks done, 2 failed.");
    let alone = array_job("0-5").unstageable("The image is gone.", T0).job;
    assert_eq!((alone.phase, alone.array.unwrap().counts.error), (Phase::Ended, 6));
}

#[test]
fn the_tasks_of_a_job_that_slurm_rejects_have_failed() {
    let mut job = array_job("0-5");
    let mut attempt = job.new_attempt("/lustre/tao".parse().unwrap(), T0).unwrap();
    job.assign_tasks(&mut attempt, 4);
    job.begin_attempt(attempt);
    job.end(Status::Error, "Slurm rejected the job: no.".to_owned(), T0);
    let Transition { job, .. } = job.after_piece(None, T0);
    let counts = TaskCounts { total: 6, error: 6, ..TaskCounts::default() };
    assert_eq!((job.phase, job.array.as_ref().unwrap().counts), (Phase::Ended, counts));
    assert_eq!(job.task_status(5, None), TaskStatus::Error);
}

#[test]
fn a_job_that_is_retried_carries_no_task_that_is_done() {
    let mut job = array_job("0-5");
    submit_piece(&mut job, 7);
    let array = job.array.as_mut().unwrap();
    array.counts = TaskCounts { total: 6, done: 3, error: 2, canceled: 1, ..TaskCounts::default() };
    (array.dropped, array.withdrawn) = ("5".parse().unwrap(), "2,5".parse().unwrap());
    let array = job.retried_array(&"1,5".parse().unwrap(), &"1,4".parse().unwrap()).unwrap();
    assert_eq!((array.unsubmitted.to_string().as_str(), array.retried_at), ("1,5", 1));
    let counts = TaskCounts { total: 6, done: 3, error: 1, pending: 2, ..TaskCounts::default() };
    assert_eq!((array.counts, array.dropped.to_string().as_str()), (counts, ""));
    assert_eq!(array.withdrawn.to_string(), "2", "task 5 is wanted again");
}

#[test]
fn a_task_that_a_retry_leaves_out_stays_as_it_was() {
    let mut job = array_job("0-5");
    (job.phase, job.status) = (Phase::Ended, Status::Canceled);
    let array = job.retried_array(&"2".parse().unwrap(), &TaskSet::default()).unwrap();
    assert_eq!(array.dropped.to_string(), "0-1,3-5", "never submitted: canceled");
    // Slurm rejected the first submission.
    let mut attempt = job.new_attempt("/lustre/tao".parse().unwrap(), T0).unwrap();
    job.assign_tasks(&mut attempt, 8);
    job.begin_attempt(attempt);
    job.end(Status::Error, "Slurm rejected the job: no.".to_owned(), T0);
    let Transition { mut job, .. } = job.after_piece(None, T0);
    job.array = job.retried_array(&"2".parse().unwrap(), &"0-5".parse().unwrap());
    (job.phase, job.status, job.finished_at) = (Phase::Queued, Status::Pending, None);
    submit_piece(&mut job, 7);
    let Transition { job, .. } = job.tally(&[(no(2), tally(0, &[TaskOutcome::Done]))], T0);
    let counts = TaskCounts { total: 6, error: 5, done: 1, ..TaskCounts::default() };
    assert_eq!((job.status, job.array.unwrap().counts), (Status::Error, counts));
}

#[test]
fn an_array_whose_tasks_are_all_canceled_while_it_waits_for_other_jobs_ends() {
    let mut job = array_job("0-5");
    job.phase = Phase::Waiting;
    job.array.as_mut().unwrap().withdrawn = "0-4".parse().unwrap();
    assert_eq!(step(&job), Step::AwaitNeeds);
    job.array.as_mut().unwrap().withdrawn = "0-5".parse().unwrap();
    assert_eq!(step(&job), Step::Tend);
    let Transition { job, due_at } = job.tally(&[], T0);
    assert_eq!((job.status, job.phase, due_at), (Status::Canceled, Phase::Ended, None));
    assert_eq!(job.message, "0 of 6 tasks done, 6 canceled.");
}

#[test]
fn a_canceled_task_is_not_submitted_and_the_others_are() {
    let mut job = array_job("0-5");
    job.array.as_mut().unwrap().withdrawn = "0-1,4".parse().unwrap();
    assert_eq!(step(&job), Step::Tend, "first they are dropped");
    let Transition { mut job, due_at: due } = job.tally(&[], T0);
    assert_eq!((job.status, due, step(&job)), (Status::Pending, Some(T0), Step::Submit));
    submit_piece(&mut job, 7);
    assert_eq!(job.attempt.as_ref().unwrap().tasks.to_string(), "2-3");
    submit_piece(&mut job, 8);
    let done = [(no(1), tally(0, &[TaskOutcome::Done; 2])), (no(2), tally(0, &[TaskOutcome::Done]))];
    let Transition { job, .. } = job.tally(&done, T0);
    assert_eq!((job.status, job.message.as_str()), (Status::Canceled, "3 of 6 tasks done, 3 canceled."));
}

#[test_case(DesiredState::Cancel, Status::Canceled, "0 of 6 tasks done, 6 canceled." ; "canceled")]
#[test_case(DesiredState::Pause, Status::Paused, "Paused. 0 of 6 tasks done, 6 waiting." ; "paused")]
fn the_tasks_of_an_attempt_that_never_reached_slurm_are_counted(
    desired: DesiredState,
    status: Status,
    message: &str,
) {
    let mut job = array_job("0-5");
    let mut attempt = job.new_attempt("/lustre/tao".parse().unwrap(), T0).unwrap();
    job.assign_tasks(&mut attempt, 4);
    job.begin_attempt(attempt);
    job.desired = desired;
    let job = if desired == DesiredState::Pause { job.paused_locally(T0) } else { job.canceled_locally(T0) };
    let Transition { job, due_at: due } = job.after_piece(None, T0);
    assert_eq!((step(&job), due), (Step::Tend, Some(T0)), "the job has not ended yet");
    let Transition { job, .. } = job.tally(&[], T0);
    assert_eq!((job.status, job.message.as_str()), (status, message));
}

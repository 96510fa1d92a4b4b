use slurm::TaskSet;
use test_case::test_case;

use super::*;
use crate::{
    fixtures::{cluster, command_job},
    job::{
        array::{ArrayState, AttemptTally, TaskStatus},
        identity::AttemptNo,
        stored::DesiredState,
    },
    request::array::{ArrayTasks, JobArray},
    run::{
        graces::Graces,
        plan::{Step, plan},
    },
};

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_timestamp(seconds, 0).unwrap()
}

fn needing(whens: &[NeedWhen]) -> Job {
    let mut spec = command_job().spec;
    let need = |(number, when): (usize, &NeedWhen)| Need {
        name: format!("job{number}").parse().unwrap(),
        job: uuid::Uuid::from_u128(100 + number as u128),
        when: *when,
    };
    spec.needs = whens.iter().enumerate().map(need).collect();
    let job = command_job();
    Job::accepted(job.id, job.owner, job.cluster, spec, at(0))
}

fn is(status: Status, has_started: bool) -> NeededJob {
    NeededJob { status: Some(status), has_started, ..NeededJob::default() }
}

#[test_case(NeedWhen::Succeeded, Status::Done, true => Phase::Queued)]
#[test_case(NeedWhen::Succeeded, Status::Error, true => Phase::Ended)]
#[test_case(NeedWhen::Succeeded, Status::Canceled, true => Phase::Ended)]
#[test_case(NeedWhen::Succeeded, Status::Running, true => Phase::Waiting)]
#[test_case(NeedWhen::Failed, Status::Done, true => Phase::Ended)]
#[test_case(NeedWhen::Failed, Status::Error, true => Phase::Queued)]
#[test_case(NeedWhen::Failed, Status::Canceled, false => Phase::Ended; "a cancellation is no failure")]
#[test_case(NeedWhen::Finished, Status::Done, true => Phase::Queued)]
#[test_case(NeedWhen::Finished, Status::Error, true => Phase::Queued; "any end")]
#[test_case(NeedWhen::Finished, Status::Canceled, false => Phase::Queued; "even one without a start")]
#[test_case(NeedWhen::Finished, Status::Pausing, true => Phase::Waiting)]
#[test_case(NeedWhen::Started, Status::Pending, false => Phase::Waiting)]
#[test_case(NeedWhen::Started, Status::Running, true => Phase::Queued)]
#[test_case(NeedWhen::Started, Status::Done, false => Phase::Queued; "no poll has seen it run")]
#[test_case(NeedWhen::Started, Status::Error, true => Phase::Queued; "it had begun")]
#[test_case(NeedWhen::Started, Status::Canceled, false => Phase::Ended; "it never began")]
#[test_case(NeedWhen::Finished, Status::Paused, true => Phase::Waiting; "a paused job goes on some day")]
fn a_need_is_met_or_waits_or_ends_the_job(when: NeedWhen, status: Status, has_started: bool) -> Phase {
    let Transition { job, due_at } = after_needs(&needing(&[when]), &[is(status, has_started)], at(9));
    assert_eq!(due_at.is_some(), job.phase == Phase::Queued);
    assert_eq!(job.is_skipped, job.phase == Phase::Ended);
    job.phase
}

#[test]
fn a_job_waits_for_all_that_it_needs_and_ends_with_the_first_that_cannot_come() {
    use NeedWhen::{Failed, Succeeded};
    let job = needing(&[Succeeded, Succeeded, Failed]);
    assert_eq!((job.phase, plan(&job, &Graces::default(), at(0))), (Phase::Waiting, Step::AwaitNeeds));
    let (done, running) = (is(Status::Done, true), is(Status::Running, true));
    let waits = after_needs(&job, &[done.clone(), running.clone(), running.clone()], at(9)).job;
    assert_eq!(waits.message, "Waits for job1 to succeed, which is Running; job2 to fail, which is Running.");
    let error = is(Status::Error, true);
    let ended = after_needs(&waits, &[done.clone(), error.clone(), running], at(9)).job;
    assert_eq!((ended.status, ended.finished_at), (Status::Canceled, Some(at(9))));
    assert_eq!(ended.message, "Canceled: it needs job1 to succeed, which ended with Error.");
    let goes = after_needs(&waits, &[done.clone(), done.clone(), error], at(9)).job;
    assert_eq!((goes.status, goes.phase), (Status::Pending, Phase::Queued));
    let deleted = after_needs(&waits, &[done], at(9)).job;
    assert_eq!(deleted.message, "Canceled: it needs job1 to succeed, which was deleted.");
}

#[test]
fn the_tasks_of_a_skipped_array_are_canceled() {
    let mut spec = needing(&[NeedWhen::Succeeded]).spec;
    let tasks = ArrayTasks::Indices("0-3".parse().unwrap());
    spec.array = Some(JobArray { tasks, max_parallel: None });
    let job = command_job();
    let job = Job::accepted(job.id, job.owner, job.cluster, spec, at(0));
    let skipped = after_needs(&job, &[is(Status::Error, true)], at(9)).job;
    let counts = skipped.array.as_ref().unwrap().counts;
    assert_eq!((counts.canceled, counts.pending), (4, 0));
    assert_eq!(skipped.task_status(2, None), TaskStatus::Canceled);
    let some = skipped.retried_array(&"1".parse().unwrap(), &TaskSet::default()).unwrap();
    assert_eq!(
        (some.unsubmitted.to_string(), some.dropped.to_string()),
        ("1".to_owned(), "0,2-3".to_owned())
    );
}

/// A job whose tasks 0 to 3 wait for the tasks of another one.
fn task_by_task() -> Job {
    let mut spec = needing(&[NeedWhen::Each]).spec;
    let tasks = ArrayTasks::Indices("0-3".parse().unwrap());
    spec.array = Some(JobArray { tasks, max_parallel: None });
    let job = command_job();
    Job::accepted(job.id, job.owner, job.cluster, spec, at(0))
}

fn tasks(status: Status, done: &str, lost: &str) -> [NeededJob; 1] {
    let tasks = NeededTasks { done: done.parse().unwrap(), lost: lost.parse().unwrap() };
    [NeededJob { tasks: Some(tasks), ..is(status, true) }]
}

/// The tasks of an array: those that may go now, those that wait, and those that were skipped.
fn stand(job: &Job) -> [String; 3] {
    let array = job.array.as_ref().unwrap();
    [&array.unsubmitted, &array.held, &array.skipped].map(TaskSet::to_string)
}

#[test]
fn a_task_waits_for_the_task_of_the_same_number() {
    let job = task_by_task();
    let waits = after_needs(&job, &tasks(Status::Running, "", ""), at(1));
    assert_eq!((waits.job.phase, waits.due_at), (Phase::Waiting, None));
    assert_eq!(waits.job.message, "Waits for tasks 0-3 of job0 to succeed.");
    let some = after_needs(&waits.job, &tasks(Status::Running, "1,7", "2"), at(2));
    assert_eq!((some.job.phase, some.due_at), (Phase::Queued, Some(at(2))));
    assert_eq!(stand(&some.job), ["1", "0,3", "2"]);
    let counts = some.job.array.as_ref().unwrap().counts;
    assert_eq!((counts.pending, counts.canceled), (3, 1));
    assert_eq!(some.job.task_status(2, None), TaskStatus::Canceled);
}

#[test]
fn the_task_of_a_job_that_has_ended_is_done_or_never_will_be() {
    let ended = after_needs(&task_by_task(), &tasks(Status::Error, "0", "1"), at(1)).job;
    assert_eq!(stand(&ended), ["0", "", "1-3"], "the tasks 2 and 3 do not exist");
    let none = after_needs(&task_by_task(), &tasks(Status::Canceled, "", "1"), at(1)).job;
    assert_eq!((none.status, none.is_skipped), (Status::Canceled, true));
    let message =
        "0 of 4 tasks done, 4 canceled. 4 were canceled because the tasks that they need did not succeed.";
    assert_eq!(none.message, message);
    let deleted = after_needs(&task_by_task(), &[NeededJob::default()], at(1)).job;
    assert_eq!(deleted.status, Status::Canceled);
}

#[test]
fn a_job_without_an_array_is_the_counterpart_of_every_task() {
    let of = |status| stand(&after_needs(&task_by_task(), &[is(status, true)], at(1)).job);
    assert_eq!(of(Status::Running), ["", "0-3", ""]);
    assert_eq!(of(Status::Done), ["0-3", "", ""]);
    assert_eq!(of(Status::Error), ["", "", "0-3"]);
}

#[test]
fn a_skipped_task_goes_on_when_its_counterpart_is_retried() {
    let mut job = after_needs(&task_by_task(), &tasks(Status::Running, "1", "0,2"), at(1)).job;
    assert!(job.has_held_tasks());
    job.release_tasks(&tasks(Status::Pending, "1", ""));
    assert_eq!(stand(&job), ["1", "0,2-3", ""]);
    let counts = job.tally(&[], at(2)).job.array.unwrap().counts;
    assert_eq!((counts.pending, counts.canceled), (4, 0));
    job.release_tasks(&tasks(Status::Done, "0-3", ""));
    assert_eq!(stand(&job), ["0-3", "", ""]);
}

#[test]
fn retried_tasks_wait_again_for_their_counterparts() {
    let ended = after_needs(&task_by_task(), &tasks(Status::Error, "", ""), at(1)).job;
    let again = ended.retried_array(&"1-2".parse().unwrap(), &TaskSet::default()).unwrap();
    let sets = [&again.unsubmitted, &again.held, &again.skipped, &again.dropped].map(TaskSet::to_string);
    assert_eq!(sets, ["", "1-2", "0,3", ""], "the others go on if their counterparts do");
    let ran = ArrayState { skipped: "3".parse().unwrap(), ..ArrayState::default() };
    let ran = Job { array: Some(ran), ..ended };
    let again = ran.retried_array(&"0".parse().unwrap(), &"0".parse().unwrap()).unwrap();
    let sets = [&again.unsubmitted, &again.held, &again.skipped].map(TaskSet::to_string);
    assert_eq!(sets, ["0", "", "3"], "what was submitted before does not wait again");
}

#[test]
fn skipped_tasks_wait_again_while_what_they_need_goes_on() {
    let mut job = task_by_task();
    job.spec.needs.extend(needing(&[NeedWhen::Succeeded]).spec.needs);
    let [each] = tasks(Status::Error, "", "0-3");
    let skipped = after_needs(&job, &[each.clone(), is(Status::Error, true)], at(1)).job;
    assert_eq!(stand(&skipped), ["", "", "0-3"]);
    // The others were retried, and it was opened again.
    let again = Job { phase: Phase::Waiting, status: Status::Pending, ..skipped };
    let waits = after_needs(&again, &[each, is(Status::Pending, false)], at(2)).job;
    assert_eq!((stand(&waits), waits.phase), (["", "0-3", ""].map(str::to_owned), Phase::Waiting));
    assert_eq!(waits.array.as_ref().unwrap().counts.pending, 4);
}

#[test]
fn a_job_with_a_task_that_ran_is_not_skipped() {
    let mut job = after_needs(&task_by_task(), &tasks(Status::Running, "1", "0,2-3"), at(1)).job;
    job.array.as_mut().unwrap().unsubmitted = TaskSet::default();
    assert!(job.tally(&[], at(2)).job.status == Status::Error, "nothing says what became of task 1");
    job.started_at = Some(at(1));
    let done = AttemptTally { concluded: 1, done: 1, ..AttemptTally::default() };
    let Transition { job, .. } = job.tally(&[(AttemptNo::FIRST, done)], at(2));
    assert_eq!((job.status, job.is_skipped), (Status::Canceled, false));
}

#[test]
fn tasks_that_wait_for_tasks_keep_the_limit_of_the_array_in_small_attempts() {
    let mut job = task_by_task();
    job.spec.array.as_mut().unwrap().max_parallel = std::num::NonZeroU32::new(2);
    let mut job = after_needs(&job, &tasks(Status::Running, "0", ""), at(1)).job;
    let submit = |job: &mut Job| {
        let mut attempt = job.new_attempt("/base".parse().unwrap(), at(1)).unwrap();
        attempt.slurm_id = slurm::SlurmJobId::new(7);
        job.assign_tasks(&mut attempt, 1000);
        let tasks = attempt.tasks.to_string();
        job.begin_attempt(attempt);
        tasks
    };
    assert_eq!(submit(&mut job), "0");
    job.release_tasks(&tasks(Status::Done, "0-3", ""));
    assert_eq!(submit(&mut job), "1", "there is room for one more");
    let Transition { job: full, due_at } = job.tally(&[], at(2));
    assert_eq!((full.phase, due_at), (Phase::InQueue, None));
    let done = AttemptTally { concluded: 1, done: 1, ..AttemptTally::default() };
    let Transition { job: next, .. } = full.tally(&[(AttemptNo::FIRST, done)], at(3));
    assert_eq!(next.phase, Phase::Queued);
}

#[test]
fn a_task_that_its_owner_cancels_before_the_first_attempt_is_not_waited_for() {
    let mut job = after_needs(&task_by_task(), &tasks(Status::Running, "", ""), at(1)).job;
    job.array.as_mut().unwrap().withdrawn = "1-2".parse().unwrap();
    let next = after_needs(&job, &tasks(Status::Running, "", ""), at(2)).job;
    assert_eq!(next.message, "Waits for tasks 0,3 of job0 to succeed.");
    assert_eq!(next.array.as_ref().unwrap().counts.canceled, 2);
}

#[test]
fn a_whole_need_that_was_met_is_not_looked_at_again() {
    let mut job = task_by_task();
    job.spec.needs.extend(needing(&[NeedWhen::Succeeded]).spec.needs);
    let [each] = tasks(Status::Running, "0", "");
    let failed = NeededJob { was_met: true, ..is(Status::Error, true) };
    assert_eq!(after_needs(&job, &[each, failed], at(1)).job.phase, Phase::Queued);
}

#[test]
fn the_owner_may_cancel_tasks_that_wait_for_others() {
    let mut job = after_needs(&task_by_task(), &tasks(Status::Running, "", ""), at(1)).job;
    job.array.as_mut().unwrap().withdrawn = "0-3".parse().unwrap();
    assert_eq!(plan(&job, &Graces::default(), at(2)), Step::Tend);
    let Transition { job: ended, .. } = job.tally(&[], at(2));
    assert_eq!((ended.status, ended.is_skipped), (Status::Canceled, false));
    // Also when another task was skipped before.
    let some = after_needs(&task_by_task(), &tasks(Status::Running, "", "1"), at(1)).job;
    let Transition { job: ended, .. } = Job { desired: DesiredState::Cancel, ..some }.tally(&[], at(2));
    assert_eq!((ended.status, ended.is_skipped), (Status::Canceled, false));
}

#[test]
fn a_message_names_few_of_many() {
    let job = needing(&[NeedWhen::Finished; 5]);
    let pending: [_; 5] = std::array::from_fn(|_| is(Status::Pending, false));
    let next = after_needs(&job, &pending, at(1)).job;
    assert!(
        next.message.ends_with("job2 to end, which is Pending; and for 2 more jobs."),
        "{}",
        next.message
    );
}

#[test]
fn the_owner_may_cancel_and_pause_a_job_that_waits() {
    let mut job = needing(&[NeedWhen::Succeeded]);
    for (desired, step) in [
        (DesiredState::Cancel, Step::EndLocally),
        (DesiredState::Delete, Step::EndLocally),
        (DesiredState::Pause, Step::PauseLocally),
    ] {
        job.desired = desired;
        assert_eq!(plan(&job, &Graces::default(), at(0)), step);
    }
    assert!(!job.canceled_locally(at(1)).is_skipped, "its owner did that");
}

#[test]
fn the_program_is_told_of_the_jobs_that_were_needed() {
    let mut job = needing(&[NeedWhen::Finished, NeedWhen::Started]);
    job.spec.env.insert("NEEDS_JOB1_DIR".parse().unwrap(), "mine".to_owned());
    let base = "/other/tao".parse().unwrap();
    let found = [NeededJob { job_dir: Some(base), ..is(Status::Error, true) }, NeededJob::default()];
    let told = job.with_needed(&found, &cluster()).spec.env;
    let told = |key: &str| told.get(&key.parse::<EnvKey>().unwrap()).map(String::as_str);
    let id = "00000000-0000-0000-0000-000000000064";
    assert_eq!(told("NEEDS_JOB0_ID"), Some(id));
    assert_eq!(told("NEEDS_JOB0_STATUS"), Some("Error"));
    assert_eq!(told("NEEDS_JOB0_DIR"), Some(&*format!("/other/tao/results/{id}")));
    assert_eq!(told("NEEDS_JOB1_STATUS"), Some("Deleted"));
    assert_eq!(told("NEEDS_JOB1_DIR"), Some("mine"), "what the caller has set overrides it");
}

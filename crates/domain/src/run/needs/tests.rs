use slurm::TaskSet;
use test_case::test_case;

use super::*;
use crate::{
    fixtures::{cluster, command_job},
    job::{array::TaskStatus, stored::DesiredState},
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
    NeededJob { status: Some(status), has_started, job_dir: None }
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

#[test]
fn a_message_names_few_of_many() {
    let job = needing(&[NeedWhen::Finished; 5]);
    let next = after_needs(&job, &[const { is_pending() }; 5], at(1)).job;
    assert!(
        next.message.ends_with("job2 to end, which is Pending; and for 2 more jobs."),
        "{}",
        next.message
    );
}

const fn is_pending() -> NeededJob {
    NeededJob { status: Some(Status::Pending), has_started: false, job_dir: None }
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

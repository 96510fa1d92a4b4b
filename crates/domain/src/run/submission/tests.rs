use chrono::{DateTime, TimeDelta};
use remote::How;
use slurm::{Failure, FailureClass};
use test_case::test_case;

use super::*;
use crate::{
    Graces, Outcome, Step, SubmitFence,
    fixtures::{command_job, submitted_job, submitting_job},
    plan,
};

const T0: Timestamp = DateTime::UNIX_EPOCH;

fn failure(class: FailureClass) -> Failure {
    Failure { class, rule_id: "test", excerpt: "Slurm's own words".to_owned() }
}

fn refused(class: FailureClass) -> SubmitAnswer {
    SubmitAnswer::Refused { failure: failure(class), rc: 1 }
}

fn answer(job: &Job, answer: &SubmitAnswer) -> Transition {
    after_submit(job, None, SubmitOutcome::Answered(answer), T0)
}

fn planned(job: &Job) -> Step {
    plan(job, &Graces::default(), T0)
}

#[test]
fn a_fresh_job_is_submitted() {
    assert_eq!(planned(&command_job()), Step::Submit);
}

#[test]
fn a_job_canceled_before_anything_was_sent_ends_here() {
    let job = Job { desired: DesiredState::Cancel, ..command_job() };
    assert_eq!(planned(&job), Step::EndLocally);
    let ended = job.canceled_locally(T0);
    assert_eq!((ended.status, ended.phase), (Status::Canceled, Phase::Ended));
}

#[test]
fn a_job_canceled_while_its_submission_is_in_flight_is_looked_for_first() {
    let job = Job { desired: DesiredState::Cancel, ..submitting_job() };
    assert_eq!(planned(&job), Step::Locate);
}

#[test]
fn a_setback_is_two_sentences() {
    let set_back = answer(&submitting_job(), &refused(FailureClass::NotDone)).job;
    assert_eq!(
        set_back.message,
        "The cluster could not accept the job yet: Slurm's own words. Retrying in 2 s."
    );
    let away = after_submit(&submitting_job(), None, SubmitOutcome::NotRun { why: "no route" }, T0).job;
    assert_eq!(away.message, "The cluster is unreachable: no route. Retrying in 2 s.");
}

#[test]
fn an_accepted_submission_waits_for_the_poll() {
    let id = SlurmJobId::new(7).unwrap();
    let after = answer(&submitting_job(), &SubmitAnswer::Submitted { id, how: How::New, extra: vec![] });
    assert_eq!((after.job.phase, after.due_at), (Phase::InQueue, None));
    assert_eq!(after.job.attempt.unwrap().slurm_id, Some(id));
}

#[test]
fn a_wish_to_cancel_that_came_in_meanwhile_is_carried_out_at_once() {
    let id = SlurmJobId::new(7).unwrap();
    let job = Job { desired: DesiredState::Cancel, ..submitting_job() };
    let after = answer(&job, &SubmitAnswer::Submitted { id, how: How::New, extra: vec![] });
    assert_eq!(after.due_at, Some(T0));
    assert_eq!(planned(&after.job), Step::Cancel);
}

#[test]
fn a_permanent_refusal_ends_the_job_with_slurms_own_words() {
    let after = answer(&submitting_job(), &refused(FailureClass::Permanent));
    assert_eq!((after.job.status, after.due_at), (Status::Error, None));
    assert!(after.job.message.contains("Slurm's own words"));
}

#[test_case(FailureClass::NotDone ; "surely not done")]
#[test_case(FailureClass::Infra ; "a broken path")]
#[test_case(FailureClass::Capacity ; "no room")]
fn a_refusal_that_will_pass_is_tried_again_later(class: FailureClass) {
    let after = answer(&submitting_job(), &refused(class));
    assert_eq!((after.job.status, after.job.phase), (Status::Pending, Phase::Submitting));
    assert!(after.due_at > Some(T0));
    assert!(!after.job.attempt.unwrap().is_uncertain(), "what it has claimed does not count");
}

#[test]
fn waiting_grows_with_each_setback_up_to_a_bound() {
    let (mut job, mut waits) = (submitting_job(), vec![]);
    for _ in 0..12 {
        let after = after_submit(&job, None, SubmitOutcome::NotRun { why: "no route to host" }, T0);
        waits.push((after.due_at.unwrap() - T0).num_seconds());
        job = after.job;
    }
    assert_eq!(waits[..4], [2, 4, 8, 16]);
    assert_eq!(waits[11], 300);
}

#[test_case(&SubmitAnswer::Uncertain ; "a claim without an id")]
#[test_case(&refused(FailureClass::Ambiguous) ; "a socket that timed out")]
fn an_ambiguous_answer_is_looked_into_and_never_sent_again(answered: &SubmitAnswer) {
    let after = answer(&submitting_job(), answered);
    assert_eq!(after.job.phase, Phase::SubmitUncertain);
    assert!(after.job.attempt.as_ref().unwrap().is_uncertain());
    assert_eq!(planned(&after.job), Step::Locate);
}

#[test]
fn a_lost_submission_that_is_found_is_adopted() {
    let lost = after_submit(&submitting_job(), None, SubmitOutcome::Lost { why: "no trailer" }, T0).job;
    let after = after_lookup(&lost, Lookup::Found(SlurmJobId::new(9).unwrap()), T0);
    assert_eq!(after.job.phase, Phase::InQueue);
}

#[test]
fn absence_is_believed_only_after_the_last_effect_and_twice() {
    let mut job = after_submit(&submitting_job(), None, SubmitOutcome::Lost { why: "no trailer" }, T0).job;
    let mut look = |seconds: i64| {
        let after = after_lookup(&job, Lookup::Absent, T0 + TimeDelta::seconds(seconds));
        job = after.job;
        job.phase
    };
    assert_eq!(look(5), Phase::SubmitUncertain);
    assert_eq!(look(195), Phase::SubmitUncertain, "the far side may still be submitting");
    assert_eq!(look(206), Phase::SubmitUncertain, "the first look that counts");
    assert_eq!(look(210), Phase::SubmitUncertain, "too soon after the first");
    assert_eq!(look(217), Phase::Submitting);
    assert!(!job.attempt.unwrap().is_uncertain());
}

#[test]
fn a_canceled_submission_that_never_arrived_ends_canceled() {
    let mut job = after_submit(
        &Job { desired: DesiredState::Cancel, ..submitting_job() },
        None,
        SubmitOutcome::Lost { why: "x" },
        T0,
    )
    .job;
    for seconds in [0, 201, 212] {
        job = after_lookup(&job, Lookup::Absent, T0 + TimeDelta::seconds(seconds)).job;
    }
    assert_eq!(job.status, Status::Canceled);
}

#[test]
fn an_unclear_look_proves_nothing() {
    let job = after_submit(&submitting_job(), None, SubmitOutcome::Lost { why: "x" }, T0).job;
    let after = after_lookup(&job, Lookup::Unclear, T0 + TimeDelta::hours(1));
    assert_eq!(after.job.phase, Phase::SubmitUncertain);
    assert_eq!(after.job.attempt.unwrap().fence, SubmitFence { newest: 1, ..SubmitFence::default() });
}

#[test]
fn a_running_job_that_nobody_wants_ended_needs_no_step() {
    assert_eq!(planned(&submitted_job()), Step::Rest);
}

#[test]
fn what_was_surely_not_sent_says_nothing_about_an_earlier_submission_without_an_answer() {
    let before = submitting_job().attempt;
    let missing = SubmitAnswer::MissingInputs { paths: vec!["/lustre/a".parse().unwrap()] };
    for outcome in [
        SubmitOutcome::NotRun { why: "no route to host" },
        SubmitOutcome::Answered(&SubmitAnswer::Skipped),
        SubmitOutcome::Answered(&missing),
    ] {
        let after = after_submit(&submitting_job(), before.as_ref(), outcome, T0);
        assert_eq!(after.job.phase, Phase::SubmitUncertain);
        assert!(after.job.attempt.unwrap().is_uncertain());
    }
}

#[test]
fn a_missing_input_ends_the_job_and_is_named() {
    let missing = SubmitAnswer::MissingInputs { paths: vec!["/lustre/a".parse().unwrap()] };
    let after = after_submit(&submitting_job(), None, SubmitOutcome::Answered(&missing), T0);
    assert_eq!((after.job.status, after.job.phase, after.due_at), (Status::Error, Phase::Ended, None));
    assert!(after.job.message.contains("/lustre/a"), "{}", after.job.message);
}

#[test]
fn a_send_that_never_began_is_sent_again_at_once() {
    let lost = after_submit(&submitting_job(), None, SubmitOutcome::Lost { why: "no trailer" }, T0).job;
    let after = after_lookup(&lost, Lookup::NeverBegan, T0);
    assert_eq!((after.job.phase, after.due_at), (Phase::Submitting, Some(T0)));
    assert!(!after.job.attempt.unwrap().is_uncertain());
}

#[test]
fn a_job_that_outlives_its_last_word_is_freed_from_its_nodes() {
    let mut job = Job { phase: Phase::Running, ..submitted_job() };
    job.run.state = Some(slurm::SlurmState::Running);
    job.run.progress.final_status_at = Some(T0);
    assert_eq!(planned(&job), Step::Rest);
    assert_eq!(plan(&job, &Graces::default(), T0 + TimeDelta::minutes(2)), Step::Cancel);
}

#[test]
fn files_that_could_not_be_staged_say_nothing_about_an_earlier_submission() {
    let job = submitting_job();
    let failed = SubmitAnswer::StageFailed(failure(FailureClass::Permanent));
    let after = after_submit(&job, job.attempt.as_ref(), SubmitOutcome::Answered(&failed), T0);
    assert_eq!(after.job.phase, Phase::SubmitUncertain);
}

#[test]
fn nodes_that_sbatch_finds_no_place_without_are_not_left_out_of_later_attempts() {
    let mut job = submitting_job();
    let node: slurm::NodeName = "node01".parse().unwrap();
    job.attempt.as_mut().unwrap().excluded = vec![node.clone()];
    job.failures.push(crate::PastFailure {
        attempt: 1,
        task: 0,
        slurm_id: None,
        signature: "node_fail".to_owned(),
        nodes: vec![node],
        at: T0,
        requeued: false,
        allowed_again: false,
    });
    let after = answer(&job, &refused(FailureClass::Permanent)).job;
    assert_eq!(after.phase, Phase::Submitting);
    assert_eq!(crate::excluded(&after, &crate::RetryTerms::default(), None, T0), []);
}

#[test]
fn a_job_that_was_paused_before_slurm_had_it_goes_on_in_another_attempt() {
    let mut paused = Job { desired: DesiredState::Pause, ..submitting_job() };
    paused = after_lookup(&paused, Lookup::NeverBegan, T0).job;
    assert_eq!((paused.status, paused.phase), (Status::Paused, Phase::Paused));
    let refused =
        Job { desired: DesiredState::Pause, ..answer(&submitting_job(), &refused(FailureClass::Infra)).job };
    for job in [paused, refused.paused_locally(T0)] {
        let attempt = job.attempt.as_ref().unwrap();
        assert!(!attempt.is_open(), "what Slurm hears of it from now on is not the job's own");
        assert_eq!(attempt.verdict.as_ref().unwrap().outcome, Outcome::Paused);
        assert_eq!(job.next_attempt().get(), 2);
    }
    let never_sent = Job { desired: DesiredState::Pause, ..command_job() }.paused_locally(T0);
    assert_eq!(never_sent.next_attempt().get(), 1);
}

#[test]
fn every_missing_path_is_named() {
    let paths = ["/lustre/a b", "/lustre/c"].map(|path| path.parse().unwrap());
    assert!(missing_inputs(&paths).starts_with(
        "2 paths that the job needs do not exist on the cluster, or are not readable: /lustre/a b, /lustre/c. The job"
    ));
}

#[test]
fn very_many_missing_paths_are_counted() {
    let paths: Vec<RemotePath> =
        (0..1000).map(|number| format!("/lustre/{number:0>100}").parse().unwrap()).collect();
    let text = missing_inputs(&paths);
    assert!(text.len() < MOST_BYTES + 300 && text.contains(" and 9"), "{}", text.len());
}

//! What results decide about the end of a job.

use super::*;
use crate::request::results::{ResultRule, ResultSource};

fn rule(required: bool) -> ResultRule {
    let source = ResultSource::JsonFile { path: "scores.json".to_owned() };
    ResultRule { name: "scores".parse().unwrap(), source, required }
}

/// A job with this exit code and one result, concluded so many seconds after its end.
fn concluded(code: u8, required: bool, result: Option<TaskResult>, seconds: i64) -> Ending {
    let state = if code == 0 { SlurmState::Completed } else { SlurmState::Failed };
    let mut job = Case { state: Some(state), ..Case::default() }.job();
    job.run.exit = Some(ExitCode { code, signal: 0 });
    job.spec.results = vec![rule(required)];
    let exit = ExitRecord { slurm_id: SlurmJobId::new(7).unwrap(), restart: 0, code, at: 0 };
    let markers = Markers {
        exit: Some(exit),
        started: Some(started()),
        run_claim: SlurmJobId::new(7),
        ..Markers::default()
    };
    let results = result.map(|result| vec![result]);
    let found =
        Findings { markers: &markers, err_tail: b"ValueError: no\n", results: results.as_deref(), ..NOTHING };
    conclude(&job, &found, &Graces::default(), T0 + TimeDelta::seconds(seconds))
}

fn ended(ending: Ending) -> Job {
    match ending {
        Ending::Ended(job) => job,
        other => panic!("{other:?}"),
    }
}

fn found() -> TaskResult {
    TaskResult::found(&rule(false), 1.into())
}

fn missing() -> TaskResult {
    let problem = "scores.json is not in the job's results directory";
    TaskResult { may_follow: true, ..TaskResult::lacking(&rule(false), problem) }
}

#[test]
fn what_was_found_is_stored_with_the_run() {
    for code in [0, 1] {
        let job = ended(concluded(code, true, Some(found()), 0));
        assert_eq!(job.run.results.as_deref(), Some(&[found()][..]));
        assert_eq!(job.status, if code == 0 { Status::Done } else { Status::Error });
    }
}

#[test]
fn a_missing_file_is_waited_for_and_then_only_a_required_one_fails_the_job() {
    for required in [false, true] {
        match concluded(0, required, Some(missing()), 29) {
            Ending::Wait { until, job } => {
                assert_eq!((until, job.run.results), (T0 + TimeDelta::seconds(30), None));
            }
            other => panic!("{other:?}"),
        }
    }
    let job = ended(concluded(0, false, Some(missing()), 30));
    assert_eq!((job.status, job.run.results), (Status::Done, Some(vec![missing()])));
    let job = ended(concluded(0, true, Some(missing()), 30));
    assert_eq!(job.status, Status::Error);
    assert_eq!(
        job.message,
        "The job succeeded, but its required result `scores` is missing: scores.json is not in the job's results \
         directory. Last lines of main.err:\nValueError: no"
    );
    assert_eq!(job.attempt.unwrap().verdict.unwrap().outcome, Outcome::Error);
}

#[test]
fn a_job_that_failed_by_itself_is_not_blamed_for_its_results() {
    let job = ended(concluded(1, true, Some(missing()), 0));
    assert!(job.message.starts_with("The job exited with code 1"), "{}", job.message);
}

#[test]
fn results_that_are_left_for_the_next_call_are_waited_for() {
    assert!(matches!(concluded(0, false, None, 30), Ending::Wait { .. }));
    let job = ended(concluded(0, true, None, 600));
    assert!(
        job.message.contains("`scores` is missing: the job's files could not be read."),
        "{}",
        job.message
    );
}

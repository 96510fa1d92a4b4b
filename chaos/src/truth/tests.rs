use super::*;

fn run(slurm_id: u64, restart: u32, began: f64, ended: Option<(i32, f64)>) -> Run {
    Run { slurm_id, attempt: u32::from(slurm_id == 11) + 1, restart, began, beat: began, ended }
}

/// A run with its last sign of life at `beat`.
fn beating(slurm_id: u64, began: f64, beat: f64) -> Run {
    Run { beat, ..run(slurm_id, 0, began, None) }
}

fn row(slurm_id: u64, attempt: u32, state: &str, ended: f64) -> Row {
    Row { slurm_id, attempt, state: state.to_owned(), ended: Some(ended), stopped: false }
}

fn record(slurm_id: u64, code: i32, at: f64) -> ExitRecord {
    ExitRecord { attempt: 1, slurm_id, restart: 0, code, at }
}

fn case(kind: Kind, status: &str) -> Case {
    let attempts = vec![(1, Some(10))];
    let message = "The message of the service.".to_owned();
    let reported = Reported { status: status.to_owned(), message, finished: Some(130.0), attempts };
    Case {
        kind,
        cancel_sent: None,
        reported: Some(reported),
        runs: vec![run(10, 0, 100.0, Some((0, 120.0)))],
        rows: vec![row(10, 1, "COMPLETED", 121.0)],
        exit_records: vec![record(10, 0, 120.0)],
        queued: Vec::new(),
        disk_full: Vec::new(),
        controller_killed: false,
        needed: None,
    }
}

fn kinds(case: &Case) -> Vec<&'static str> {
    let name = |finding: &Finding| match finding {
        Finding::Duplicate(_) => "duplicate",
        Finding::Lost(_) => "lost",
        Finding::Wrong(_) => "wrong",
        Finding::Stuck(_) => "stuck",
        Finding::Orphan(_) => "orphan",
        Finding::GivenUp(_) => "given up",
        Finding::SecondCopy(_) => "second copy",
    };
    case.judge().iter().map(name).collect()
}

#[test]
fn a_job_whose_work_was_done_once_is_done() {
    let done = case(Kind::Short, "Done");
    assert!(kinds(&done).is_empty());
    assert!((done.detection_delay().unwrap() - 9.0).abs() < 0.01);
    assert_eq!(kinds(&case(Kind::Short, "Error")), ["wrong"]);
    assert_eq!(kinds(&case(Kind::Short, "Canceled")), ["wrong"], "without a request");
    assert_eq!(kinds(&case(Kind::Short, "Running")), ["stuck"]);
    assert_eq!(kinds(&Case { reported: None, ..done }), ["lost"]);
}

#[test]
fn a_job_with_an_error_of_its_own_must_end_as_error() {
    let failed = |status: &str| Case {
        runs: vec![run(10, 0, 100.0, Some((3, 120.0)))],
        rows: vec![row(10, 1, "FAILED", 121.0)],
        exit_records: vec![record(10, 3, 120.0)],
        ..case(Kind::Failing, status)
    };
    assert!(kinds(&failed("Error")).is_empty());
    assert_eq!(kinds(&failed("Done")), ["wrong"]);
    assert_eq!(
        kinds(&Case { exit_records: vec![record(10, 3, 120.0)], ..case(Kind::Short, "Done") }),
        ["wrong"]
    );
    let ended_meanwhile = vec![record(10, 143, 120.0)];
    assert!(
        kinds(&Case { exit_records: ended_meanwhile.clone(), ..case(Kind::Training, "Done") }).is_empty()
    );
    assert_eq!(kinds(&Case { exit_records: ended_meanwhile, ..case(Kind::Short, "Done") }), ["wrong"]);
    let of_the_next_run = vec![ExitRecord { restart: 1, ..record(10, 143, 125.0) }];
    assert_eq!(kinds(&Case { exit_records: of_the_next_run, ..case(Kind::Training, "Done") }), ["wrong"]);
}

#[test]
fn a_job_that_failed_before_its_cancellation_may_be_an_error() {
    let failed = Case {
        runs: vec![run(10, 0, 100.0, None)],
        rows: vec![row(10, 1, "FAILED", 101.0)],
        exit_records: vec![record(10, 1, 101.0)],
        ..case(Kind::HardwareFailure, "Error")
    };
    assert_eq!(kinds(&failed), ["wrong"], "a hardware failure must be retried");
    assert!(kinds(&Case { cancel_sent: Some(110.0), ..failed }).is_empty());
}

#[test]
fn done_requires_a_completed_run() {
    assert_eq!(kinds(&Case { runs: vec![run(10, 0, 100.0, None)], ..case(Kind::Long, "Done") }), ["wrong"]);
    assert_eq!(kinds(&Case { runs: Vec::new(), ..case(Kind::Long, "Done") }), ["wrong"]);
}

#[test]
fn canceled_requires_that_the_work_was_not_done_before_the_request() {
    let requested = |at: f64| Case { cancel_sent: Some(at), ..case(Kind::Long, "Canceled") };
    assert_eq!(kinds(&requested(125.0)), ["wrong"]);
    assert!(kinds(&requested(119.0)).is_empty());
    assert!(kinds(&Case { runs: vec![run(10, 0, 100.0, None)], ..requested(125.0) }).is_empty());
}

#[test]
fn a_run_that_was_stopped_while_its_program_ended_may_be_repeated() {
    let again = |code, at| {
        let mut case = case(Kind::Short, "Done");
        case.rows = vec![row(10, 1, "FAILED", 120.0), row(11, 2, "COMPLETED", 151.0)];
        case.runs.push(run(11, 0, 140.0, Some((0, 150.0))));
        case.reported.as_mut().unwrap().attempts.push((2, Some(11)));
        case.exit_records = vec![record(10, code, at), ExitRecord { attempt: 2, ..record(11, 0, 150.0) }];
        kinds(&case)
    };
    assert!(again(143, 120.0).is_empty(), "its code is not known");
    assert!(again(124, 120.0).is_empty(), "its limit came first");
    for code in [143, 124] {
        assert_eq!(again(code, 122.0), ["duplicate"], "its script had time to record it");
    }
    assert_eq!(again(0, 120.0), ["duplicate"]);
}

#[test]
fn a_run_that_slurm_forgot_and_stopped_was_not_done_before_the_cancellation() {
    let requested = |code, rows, controller_killed| {
        let exit_records = vec![record(10, code, 131.0)];
        let canceled = case(Kind::Steps, "Canceled");
        kinds(&Case { cancel_sent: Some(140.0), exit_records, rows, controller_killed, ..canceled })
    };
    let running = || vec![Row { ended: None, ..row(10, 1, "RUNNING", 0.0) }];
    assert!(requested(143, running(), true).is_empty(), "srun had not returned");
    assert_eq!(requested(143, running(), false), ["wrong"], "no controller was killed");
    assert_eq!(requested(0, running(), true), ["wrong"]);
    assert_eq!(requested(143, vec![row(10, 1, "COMPLETED", 121.0)], true), ["wrong"]);
}

#[test]
fn an_attempt_must_run_once() {
    let mut twice = case(Kind::Short, "Done");
    twice.runs.push(Run { attempt: 1, ..run(11, 0, 101.0, None) });
    twice.rows.push(row(11, 1, "COMPLETED", 121.0));
    let found = kinds(&twice);
    assert!(found.contains(&"duplicate") && found.contains(&"second copy"), "{found:?}");
    twice.runs.pop();
    assert_eq!(kinds(&twice), ["second copy"], "it did not run");
    let again = Case {
        runs: vec![run(10, 0, 1.0, None), run(10, 0, 2.0, Some((0, 3.0)))],
        ..case(Kind::Short, "Done")
    };
    assert_eq!(kinds(&again), ["duplicate"]);
    let same_id = Case {
        runs: vec![run(10, 0, 1.0, None), Run { attempt: 2, ..run(10, 0, 5.0, Some((0, 6.0))) }],
        exit_records: Vec::new(),
        ..again.clone()
    };
    assert!(kinds(&same_id).is_empty(), "a killed controller gave the same id twice");
    let requeued = |first: Run| Case {
        runs: vec![first, run(10, 1, 5.0, Some((0, 6.0)))],
        exit_records: Vec::new(),
        ..again.clone()
    };
    assert!(kinds(&requeued(beating(10, 1.0, 4.0))).is_empty());
    assert_eq!(kinds(&requeued(beating(10, 1.0, 7.0))), ["duplicate"], "it overlapped the next run");
}

#[test]
fn the_next_attempt_must_start_after_the_last_one_failed() {
    let two = |first: Run, state: &str, second: f64| {
        let mut case = Case { exit_records: Vec::new(), ..case(Kind::NodeKilling, "Done") };
        case.reported.as_mut().unwrap().attempts.push((2, Some(11)));
        case.runs = vec![first, run(11, 0, second, Some((0, second + 1.0)))];
        case.rows = vec![row(10, 1, state, 120.0), row(11, 2, "COMPLETED", second + 1.0)];
        kinds(&case)
    };
    assert!(two(beating(10, 100.0, 119.0), "NODE_FAIL", 125.0).is_empty());
    assert_eq!(two(beating(10, 100.0, 119.0), "NODE_FAIL", 110.0), ["duplicate"], "they overlap");
    assert_eq!(two(run(10, 0, 100.0, Some((0, 119.0))), "COMPLETED", 125.0), ["duplicate"], "it was done");
    assert!(two(run(10, 0, 100.0, Some((0, 119.0))), "NODE_FAIL", 125.0).is_empty());
    assert!(two(run(10, 0, 100.0, Some((1, 119.0))), "FAILED", 125.0).is_empty());
}

#[test]
fn the_records_of_a_run_override_accounting_about_its_end() {
    let mut case = Case { exit_records: Vec::new(), ..case(Kind::NodeKilling, "Done") };
    case.reported.as_mut().unwrap().attempts.push((2, Some(11)));
    case.runs = vec![beating(10, 100.0, 108.0), run(11, 0, 110.0, Some((0, 119.0)))];
    // A killed controller took it for a live run and ended it then.
    case.rows = vec![row(10, 1, "CANCELLED", 118.0), row(11, 2, "COMPLETED", 119.0)];
    assert!(kinds(&case).is_empty());
    case.runs[0].beat = 115.0;
    assert_eq!(kinds(&case), ["duplicate"]);
    case.runs[0].ended = Some((0, 125.0));
    assert!(kinds(&case).contains(&"duplicate"), "it continued");
    // Its work was done, but Slurm requeued it.
    (case.runs[0].ended, case.runs[0].beat) = (Some((0, 100.5)), 100.0);
    case.rows.insert(0, row(10, 1, "REQUEUED", 101.0));
    assert!(kinds(&case).is_empty());
}

#[test]
fn a_job_that_failed_because_of_the_cluster_is_not_a_defect_of_the_service() {
    let mut broken =
        Case { runs: vec![run(10, 0, 100.0, None)], rows: Vec::new(), ..case(Kind::Long, "Error") };
    assert_eq!(kinds(&broken), ["wrong"]);
    broken.disk_full.push((90.0, 101.0));
    assert_eq!(kinds(&broken), ["given up"]);
    broken.disk_full = vec![(50.0, 60.0)];
    assert_eq!(kinds(&broken), ["wrong"]);
    let unrecorded =
        |ended| Case { runs: Vec::new(), rows: vec![row(10, 1, "FAILED", ended)], ..broken.clone() };
    assert_eq!(kinds(&unrecorded(59.0)), ["given up"]);
    assert_eq!(kinds(&unrecorded(70.0)), ["wrong"]);
    "Slurm's queue and accounting no longer list the job"
        .clone_into(&mut broken.reported.as_mut().unwrap().message);
    assert_eq!(kinds(&broken), ["wrong"], "its controller was never killed");
    broken.controller_killed = true;
    assert_eq!(kinds(&broken), ["given up"]);
}

#[test]
fn a_finished_job_must_not_be_on_the_cluster() {
    assert_eq!(kinds(&Case { queued: vec![10], ..case(Kind::Short, "Done") }), ["orphan"]);
}

#[test]
fn a_job_runs_after_the_one_that_it_needs_or_is_skipped() {
    let after = |status: &str, done_at: Option<f64>| Some(Needed { status: status.to_owned(), done_at });
    let done = |needed| Case { needed, ..case(Kind::Needing, "Done") };
    assert!(kinds(&done(after("Done", Some(90.0)))).is_empty());
    assert_eq!(kinds(&done(after("Done", Some(110.0)))), ["wrong"], "it began before");
    assert_eq!(kinds(&done(after("Error", None))), ["wrong"], "it should not have begun");
    let skipped = Case { runs: Vec::new(), rows: Vec::new(), ..case(Kind::Needing, "Canceled") };
    assert!(kinds(&Case { needed: after("Canceled", None), ..skipped.clone() }).is_empty());
    assert_eq!(kinds(&Case { needed: after("Done", Some(90.0)), ..skipped }), ["wrong"]);
}

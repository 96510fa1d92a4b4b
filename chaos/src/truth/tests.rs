use super::*;

fn run(slurm_id: u64, restart: u32, began: f64, ended: Option<(i32, f64)>) -> Run {
    Run { slurm_id, attempt: u32::from(slurm_id == 11) + 1, restart, began, beat: began, ended }
}

/// One that said so long that it was at it, and then no more.
fn beating(slurm_id: u64, began: f64, beat: f64) -> Run {
    Run { beat, ..run(slurm_id, 0, began, None) }
}

fn row(slurm_id: u64, attempt: u32, state: &str, ended: f64) -> Row {
    Row { slurm_id, attempt, state: state.to_owned(), ended: Some(ended), stopped: false }
}

fn mark(slurm_id: u64, code: i32, at: f64) -> Mark {
    Mark { attempt: 1, slurm_id, restart: 0, code, at }
}

fn case(kind: Kind, status: &str) -> Case {
    let attempts = vec![(1, Some(10))];
    let message = "What the service says.".to_owned();
    let told = Told { status: status.to_owned(), message, finished: Some(130.0), attempts };
    Case {
        kind,
        cancel_sent: None,
        told: Some(told),
        runs: vec![run(10, 0, 100.0, Some((0, 120.0)))],
        rows: vec![row(10, 1, "COMPLETED", 121.0)],
        marks: vec![mark(10, 0, 120.0)],
        queued: Vec::new(),
        disk_full: Vec::new(),
        controller_killed: false,
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
fn a_job_that_did_its_work_once_is_done() {
    let done = case(Kind::Short, "Done");
    assert!(kinds(&done).is_empty());
    assert!((done.seconds_to_truth().unwrap() - 9.0).abs() < 0.01);
    assert_eq!(kinds(&case(Kind::Short, "Error")), ["wrong"]);
    assert_eq!(kinds(&case(Kind::Short, "Canceled")), ["wrong"], "nobody asked");
    assert_eq!(kinds(&case(Kind::Short, "Running")), ["stuck"]);
    assert_eq!(kinds(&Case { told: None, ..done }), ["lost"]);
}

#[test]
fn a_job_that_failed_by_itself_is_an_error_and_nothing_else() {
    let failed = |status: &str| Case {
        runs: vec![run(10, 0, 100.0, Some((3, 120.0)))],
        rows: vec![row(10, 1, "FAILED", 121.0)],
        marks: vec![mark(10, 3, 120.0)],
        ..case(Kind::Failing, status)
    };
    assert!(kinds(&failed("Error")).is_empty());
    assert_eq!(kinds(&failed("Done")), ["wrong"]);
    assert_eq!(kinds(&Case { marks: vec![mark(10, 3, 120.0)], ..case(Kind::Short, "Done") }), ["wrong"]);
    let ended_meanwhile = vec![mark(10, 143, 120.0)];
    assert!(kinds(&Case { marks: ended_meanwhile.clone(), ..case(Kind::Training, "Done") }).is_empty());
    assert_eq!(kinds(&Case { marks: ended_meanwhile, ..case(Kind::Short, "Done") }), ["wrong"]);
    let of_the_next_run = vec![Mark { restart: 1, ..mark(10, 143, 125.0) }];
    assert_eq!(kinds(&Case { marks: of_the_next_run, ..case(Kind::Training, "Done") }), ["wrong"]);
}

#[test]
fn a_job_that_failed_before_it_was_canceled_may_say_so() {
    let failed = Case {
        runs: vec![run(10, 0, 100.0, None)],
        rows: vec![row(10, 1, "FAILED", 101.0)],
        marks: vec![mark(10, 1, 101.0)],
        ..case(Kind::Broken, "Error")
    };
    assert_eq!(kinds(&failed), ["wrong"], "it is one that is tried again");
    assert!(kinds(&Case { cancel_sent: Some(110.0), ..failed }).is_empty());
}

#[test]
fn done_needs_work_that_came_to_its_end() {
    assert_eq!(kinds(&Case { runs: vec![run(10, 0, 100.0, None)], ..case(Kind::Long, "Done") }), ["wrong"]);
    assert_eq!(kinds(&Case { runs: Vec::new(), ..case(Kind::Long, "Done") }), ["wrong"]);
}

#[test]
fn a_cancellation_holds_for_what_was_not_done_before_it() {
    let asked = |at: f64| Case { cancel_sent: Some(at), ..case(Kind::Long, "Canceled") };
    assert_eq!(kinds(&asked(125.0)), ["wrong"]);
    assert!(kinds(&asked(119.0)).is_empty());
    assert!(kinds(&Case { runs: vec![run(10, 0, 100.0, None)], ..asked(125.0) }).is_empty());
}

#[test]
fn an_attempt_runs_once() {
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
        marks: Vec::new(),
        ..again.clone()
    };
    assert!(kinds(&same_id).is_empty(), "a controller that was killed has given an id twice");
    let requeued = |first: Run| Case {
        runs: vec![first, run(10, 1, 5.0, Some((0, 6.0)))],
        marks: Vec::new(),
        ..again.clone()
    };
    assert!(kinds(&requeued(beating(10, 1.0, 4.0))).is_empty());
    assert_eq!(kinds(&requeued(beating(10, 1.0, 7.0))), ["duplicate"], "it went on beside the next run");
}

#[test]
fn the_next_attempt_comes_after_the_last_and_only_if_that_one_failed() {
    let two = |first: Run, state: &str, second: f64| {
        let mut case = Case { marks: Vec::new(), ..case(Kind::NodeKilling, "Done") };
        case.told.as_mut().unwrap().attempts.push((2, Some(11)));
        case.runs = vec![first, run(11, 0, second, Some((0, second + 1.0)))];
        case.rows = vec![row(10, 1, state, 120.0), row(11, 2, "COMPLETED", second + 1.0)];
        kinds(&case)
    };
    assert!(two(beating(10, 100.0, 119.0), "NODE_FAIL", 125.0).is_empty());
    assert_eq!(two(beating(10, 100.0, 119.0), "NODE_FAIL", 110.0), ["duplicate"], "at one time");
    assert_eq!(two(run(10, 0, 100.0, Some((0, 119.0))), "COMPLETED", 125.0), ["duplicate"], "it was done");
    assert!(two(run(10, 0, 100.0, Some((0, 119.0))), "NODE_FAIL", 125.0).is_empty());
    assert!(two(run(10, 0, 100.0, Some((1, 119.0))), "FAILED", 125.0).is_empty());
}

#[test]
fn when_a_run_ended_it_knows_better_than_accounting() {
    let mut case = Case { marks: Vec::new(), ..case(Kind::NodeKilling, "Done") };
    case.told.as_mut().unwrap().attempts.push((2, Some(11)));
    case.runs = vec![beating(10, 100.0, 108.0), run(11, 0, 110.0, Some((0, 119.0)))];
    // A controller that was killed took it for alive, and ended it then.
    case.rows = vec![row(10, 1, "CANCELLED", 118.0), row(11, 2, "COMPLETED", 119.0)];
    assert!(kinds(&case).is_empty());
    case.runs[0].beat = 115.0;
    assert_eq!(kinds(&case), ["duplicate"]);
    case.runs[0].ended = Some((0, 125.0));
    assert!(kinds(&case).contains(&"duplicate"), "it went on");
    // It had done its work, and Slurm had put it back into its queue all the same.
    (case.runs[0].ended, case.runs[0].beat) = (Some((0, 100.5)), 100.0);
    case.rows.insert(0, row(10, 1, "REQUEUED", 101.0));
    assert!(kinds(&case).is_empty());
}

#[test]
fn a_job_that_failed_with_the_cluster_is_no_defect_of_the_service() {
    let mut broken =
        Case { runs: vec![run(10, 0, 100.0, None)], rows: Vec::new(), ..case(Kind::Long, "Error") };
    assert_eq!(kinds(&broken), ["wrong"]);
    broken.disk_full.push((90.0, 101.0));
    assert_eq!(kinds(&broken), ["given up"]);
    broken.disk_full = vec![(50.0, 60.0)];
    assert_eq!(kinds(&broken), ["wrong"]);
    let speechless =
        |ended| Case { runs: Vec::new(), rows: vec![row(10, 1, "FAILED", ended)], ..broken.clone() };
    assert_eq!(kinds(&speechless(59.0)), ["given up"]);
    assert_eq!(kinds(&speechless(70.0)), ["wrong"]);
    "Slurm's queue and accounting no longer list the job"
        .clone_into(&mut broken.told.as_mut().unwrap().message);
    assert_eq!(kinds(&broken), ["wrong"], "its controller never died");
    broken.controller_killed = true;
    assert_eq!(kinds(&broken), ["given up"]);
}

#[test]
fn nothing_is_left_on_the_cluster() {
    assert_eq!(kinds(&Case { queued: vec![10], ..case(Kind::Short, "Done") }), ["orphan"]);
}

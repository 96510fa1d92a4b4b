//! What the script of a conversion returns of itself, with and without the mark of its end.

use test_case::test_case;

use super::*;

/// What a look so many seconds after Slurm was through with it makes of a run that failed with this code, as accounting says.
fn after(seconds: i64, code: Option<u8>, markers: &Markers) -> ConversionTransition {
    let mut conversion = running();
    conversion.state = ConversionState::Finishing;
    let run = conversion.run.as_mut().unwrap();
    run.exit = code.map(|code| ExitCode { code, signal: 0 });
    (run.slurm_state, run.finishing_since) = (Some(SlurmState::Failed), Some(now()));
    let found =
        ConversionFindings { markers, err_tail: b"tao-slurm: job 9 stops here", file: ImageFile::Absent };
    let later = now() + TimeDelta::seconds(seconds);
    conclude_conversion(&conversion, &found, &one_waits(), &cluster(), &Graces::default(), later)
}

fn marked(code: u8) -> Markers {
    let slurm_id = SlurmJobId::new(9).unwrap();
    Markers {
        exit: Some(ExitRecord { slurm_id, restart: 0, code, at: 0 }),
        run_claim: Some(slurm_id),
        ..Markers::default()
    }
}

fn claimed_by(id: u32) -> Markers {
    Markers { run_claim: SlurmJobId::new(id), ..Markers::default() }
}

#[test_case(script::EXIT_NODE_FAILED, 60; "a node failed")]
#[test_case(script::EXIT_NO_MARKS, 60; "it could not begin")]
#[test_case(script::EXIT_CLAIMED, 60; "its end was told already")]
#[test_case(script::EXIT_BEGUN, 300; "it had begun before, and may still be at it")]
fn what_the_script_returns_without_a_mark_is_no_fault_of_the_image(code: u8, patience: i64) {
    let late = after(patience - 1, Some(code), &claimed_by(9));
    assert_eq!(late.conversion.state, ConversionState::Finishing, "its mark may be seen late");
    assert!(late.due_at.unwrap() <= now() + TimeDelta::seconds(patience));
    let again = after(patience, Some(code), &claimed_by(9)).conversion;
    assert_eq!((again.state, again.mishaps, again.failures), (ConversionState::Requested, 1, 0));
    assert_eq!(again.retry_at, None);
    let own = after(0, Some(code), &marked(code)).conversion;
    assert_eq!((own.state, own.mishaps), (ConversionState::Failed, 0), "the program has returned it");
    assert!(own.error.unwrap().contains(&format!("exited with code {code}")));
}

#[test]
fn an_import_that_was_ended_from_outside_is_no_fault_of_the_image() {
    let again = after(60, None, &marked(143)).conversion;
    assert_eq!((again.state, again.mishaps, again.failures), (ConversionState::Requested, 1, 0));
}

#[test]
fn a_copy_that_found_the_run_taken_waits_until_it_shows_by_whom() {
    let claimed = Some(script::EXIT_CLAIMED);
    let late = after(299, claimed, &Markers::default());
    assert_eq!(late.conversion.state, ConversionState::Finishing, "a claim is seen late on the login host");
    assert_eq!(late.due_at, Some(now() + TimeDelta::minutes(5)));
    let adopted = after(299, claimed, &claimed_by(8)).conversion;
    assert_eq!(adopted.state, ConversionState::InQueue);
    let run = adopted.run.unwrap();
    assert_eq!((run.slurm_id, run.exit), (SlurmJobId::new(8), None));
    let again = after(300, claimed, &Markers::default()).conversion;
    assert_eq!(
        (again.state, again.mishaps, again.failures),
        (ConversionState::Requested, 1, 0),
        "nobody has it"
    );
}

#[test]
fn a_claim_of_another_tells_of_a_copy_whose_code_nobody_knows() {
    let adopted = after(0, None, &claimed_by(8)).conversion;
    assert_eq!(adopted.state, ConversionState::InQueue);
    assert_eq!(adopted.run.unwrap().slurm_id, SlurmJobId::new(8));
}

#[test]
fn mishaps_that_do_not_end_say_what_was_said_last() {
    let mut conversion = after(60, Some(script::EXIT_NO_MARKS), &Markers::default()).conversion;
    for _ in 0..3 {
        conversion.state = ConversionState::Finishing;
        let found = ConversionFindings {
            markers: &Markers::default(),
            err_tail: b"tao-slurm: job 9 stops here: its marks cannot be written\n",
            file: ImageFile::Absent,
        };
        let later = now() + TimeDelta::hours(1);
        let terms = (&one_waits(), &cluster(), &Graces::default());
        conversion = conclude_conversion(&conversion, &found, terms.0, terms.1, terms.2, later).conversion;
    }
    assert_eq!(conversion.state, ConversionState::Failed);
    let error = conversion.error.unwrap();
    assert!(error.contains("4 times") && error.contains("its marks cannot be written"), "{error}");
}

/// The queue shows an end at 100.
fn failed() -> QueueRow {
    QueueRow {
        id: SlurmJobId::new(9).unwrap(),
        state: SlurmState::Failed,
        reason: "NonZeroExitCode".to_owned(),
        nodes: "node01".to_owned(),
        submit: None,
        start: Some(90),
        end: Some(100),
        partition: "cpu".to_owned(),
        name: running().run.unwrap().token.to_string(),
    }
}

/// Accounting has an end at `end`, with `code`.
fn record(end: i64, code: u8) -> AccountingRow {
    let QueueRow { id, name, nodes, .. } = failed();
    AccountingRow {
        id,
        state: SlurmState::Failed,
        exit_code: Some(ExitCode { code, signal: 0 }),
        reason: String::new(),
        start: Some(end - 10),
        end: Some(end),
        nodes,
        name,
        canceled_by: None,
        before: None,
    }
}

/// What a poll at a second made of it.
fn polled(second: i64, seen: &Observation<'_>) -> Option<Conversion> {
    let row = failed();
    let seen = Observation { queue_answered: true, queue: Some(&row), ..*seen };
    observe_conversion(
        &running(),
        &seen,
        TimeDelta::zero(),
        &Graces::default(),
        timestamp(Some(second)).unwrap(),
    )
}

#[test_case(100, script::EXIT_CLAIMED => Some(script::EXIT_CLAIMED); "of this end")]
#[test_case(50, script::EXIT_CLAIMED => None; "of an earlier run")]
#[test_case(100, 1 => None; "without a mark it says nothing about the image")]
fn the_queue_does_not_tell_codes_and_accounting_does(end: i64, code: u8) -> Option<u8> {
    let record = record(end, code);
    let seen =
        Observation { accounting: Some(&record), records: Records::Answered, ..Observation::default() };
    let seen = polled(1000, &seen).unwrap();
    assert_eq!(seen.state, ConversionState::Finishing);
    seen.run.unwrap().exit.map(|exit| exit.code)
}

#[test]
fn accounting_that_is_behind_is_waited_for_and_not_for_long() {
    let finishing = |seen: Option<Conversion>| seen.map(|seen| seen.state == ConversionState::Finishing);
    let earlier = record(50, 0);
    let behind =
        Observation { accounting: Some(&earlier), records: Records::Answered, ..Observation::default() };
    assert_eq!(finishing(polled(129, &behind)), None, "the code may say that another is at it");
    assert_eq!(finishing(polled(130, &behind)), Some(true));
    assert_eq!(finishing(polled(100_000, &Observation::default())), None, "nobody knows");
    let away = Observation { records: Records::Answered, ..Observation::default() };
    assert_eq!(finishing(polled(279, &away)), None);
    assert_eq!(finishing(polled(280, &away)), Some(true));
    let told = record(100, script::EXIT_BEGUN);
    let told = Observation { accounting: Some(&told), ..behind };
    assert_eq!(finishing(polled(101, &told)), Some(true));
    let mark = marked(1);
    let marked = Observation { markers: Some(&mark), ..away };
    assert_eq!(finishing(polled(101, &marked)), Some(true), "the mark says it");
}

use chrono::DateTime;
use proptest::prelude::*;
use test_case::test_case;

use super::*;

const JOB: &str = "00000000-0000-0000-0000-00000000000a";
const LATER: TimeDelta = TimeDelta::seconds(11);

fn id(number: u32) -> SlurmJobId {
    SlurmJobId::new(number).unwrap()
}

fn row(number: u32, name: &str, state: &str) -> QueueRow {
    QueueRow {
        id: id(number),
        state: state.parse().unwrap(),
        reason: "None".to_owned(),
        nodes: String::new(),
        submit: None,
        start: None,
        end: None,
        partition: "polar".to_owned(),
        name: name.to_owned(),
    }
}

fn stray(number: u32, attempt: u32, state: &str) -> Stray {
    let name = if attempt == 1 { format!("tao-job-{JOB}") } else { format!("tao-job-{JOB}-r{attempt}") };
    Stray::of(&row(number, &name, state)).unwrap()
}

fn known(newest: u32, open: bool, slurm_id: Option<u32>) -> Record {
    Record::Known { newest: AttemptNo::new(newest), open, slurm_id: slurm_id.map(id), ahead: Ahead::Never }
}

#[test]
fn what_has_ended_or_is_not_understood_is_no_stray() {
    let name = format!("tao-job-{JOB}");
    for state in ["PENDING", "RUNNING", "SUSPENDED", "REQUEUED", "CONFIGURING"] {
        assert!(Stray::of(&row(7, &name, state)).is_some(), "{state}");
    }
    for state in ["COMPLETED", "CANCELLED", "COMPLETING", "STAGE_OUT", "BRAND_NEW", ""] {
        assert!(Stray::of(&row(7, &name, state)).is_none(), "{state}");
    }
}

#[test_case(&stray(7, 1, "RUNNING"), Record::None, Some(OrphanKind::Unknown); "a job nobody knows")]
#[test_case(&stray(7, 1, "RUNNING"), Record::Deleted, Some(OrphanKind::Deleted); "a deleted job")]
#[test_case(&stray(7, 1, "RUNNING"), Record::Elsewhere, None; "a job of another configured cluster")]
#[test_case(&stray(7, 1, "RUNNING"), known(1, true, Some(7)), None; "the attempt itself, which began to be watched just now")]
#[test_case(&stray(7, 1, "PENDING"), known(1, true, None), None; "a submission that is being looked for")]
#[test_case(&stray(7, 1, "RUNNING"), known(1, false, Some(7)), Some(OrphanKind::Superseded); "an attempt that was concluded")]
#[test_case(&stray(7, 1, "PENDING"), known(2, true, Some(9)), Some(OrphanKind::Superseded); "an earlier attempt that Slurm has requeued")]
#[test_case(&stray(7, 2, "RUNNING"), known(1, true, Some(5)), Some(OrphanKind::Newer); "an attempt after the backup")]
#[test_case(&stray(7, 1, "RUNNING"), Record::Known { newest: None, open: false, slurm_id: None, ahead: Ahead::Never }, Some(OrphanKind::Newer); "the first attempt after the backup")]
fn what_the_database_says_decides(stray: &Stray, record: Record, expected: Option<OrphanKind>) {
    assert_eq!(orphan_kind(stray, record, false), expected);
}

#[test]
fn an_attempt_that_was_queued_ahead_is_expected_until_its_job_goes_on_no_more() {
    let of = |ahead| {
        let record = Record::Known {
            newest: AttemptNo::new(1),
            open: ahead == Ahead::Expected,
            slurm_id: Some(id(9)),
            ahead,
        };
        [2, 3].map(|no| orphan_kind(&stray(7, no, "PENDING"), record, true))
    };
    assert_eq!(of(Ahead::Expected), [None, None], "while the service was away, several have begun");
    assert_eq!(of(Ahead::Useless), [Some(OrphanKind::Superseded), Some(OrphanKind::Newer)]);
    assert_eq!(of(Ahead::Never), [Some(OrphanKind::Newer); 2]);
}

#[test]
fn a_copy_is_one_only_while_it_waits_and_the_other_runs() {
    let record = known(1, true, Some(9));
    assert_eq!(orphan_kind(&stray(7, 1, "PENDING"), record, true), Some(OrphanKind::Copy));
    // It may be the one that holds the attempt, and be adopted.
    assert_eq!(orphan_kind(&stray(7, 1, "RUNNING"), record, true), None);
    assert_eq!(orphan_kind(&stray(7, 1, "SUSPENDED"), record, true), None);
    assert_eq!(orphan_kind(&stray(7, 1, "PENDING"), record, false), None);
}

const T0: Timestamp = DateTime::UNIX_EPOCH;

fn reviewed(before: &[Orphan], kind: OrphanKind, now: Timestamp) -> Review {
    review_orphans(before, vec![(stray(7, 1, "RUNNING"), kind)], false, now)
}

#[test]
fn an_orphan_is_canceled_at_the_second_observation() {
    let first = reviewed(&[], OrphanKind::Superseded, T0);
    assert_eq!((first.found.as_slice(), first.cancel.as_slice()), (&[id(7)][..], &[][..]));
    let at_once = reviewed(&first.orphans, OrphanKind::Superseded, T0 + TimeDelta::seconds(9));
    assert!(at_once.cancel.is_empty() && at_once.found.is_empty());
    let second = reviewed(&at_once.orphans, OrphanKind::Superseded, T0 + LATER);
    assert_eq!((second.cancel.as_slice(), second.condemned.as_slice()), (&[id(7)][..], &[id(7)][..]));
    assert!(second.orphans[0].sentence().ends_with("belongs to an attempt that has ended; canceling it."));
}

#[test]
fn a_cancellation_is_repeated_after_a_while_and_told_once() {
    let first = reviewed(&[], OrphanKind::Deleted, T0);
    let second = reviewed(&first.orphans, OrphanKind::Deleted, T0 + LATER);
    let third = reviewed(&second.orphans, OrphanKind::Deleted, T0 + LATER * 2);
    assert!(third.cancel.is_empty());
    let fourth = reviewed(&third.orphans, OrphanKind::Deleted, T0 + TimeDelta::minutes(2));
    assert_eq!((fourth.cancel.as_slice(), fourth.condemned.as_slice()), (&[id(7)][..], &[][..]));
}

#[test]
fn what_is_something_else_now_has_to_be_confirmed_anew() {
    let first = reviewed(&[], OrphanKind::Unknown, T0);
    let second = reviewed(&first.orphans, OrphanKind::Superseded, T0 + LATER);
    assert!(second.cancel.is_empty());
    assert_eq!(second.orphans[0].first_seen_at, T0 + LATER);
}

#[test]
fn what_is_gone_between_two_polls_is_forgotten() {
    let first = reviewed(&[], OrphanKind::Superseded, T0);
    assert_eq!(review_orphans(&first.orphans, vec![], false, T0 + LATER), Review::default());
}

#[test]
fn the_unknown_is_shown_and_ended_only_where_it_was_asked_for() {
    let strays = || vec![(stray(7, 1, "RUNNING"), OrphanKind::Unknown)];
    let first = review_orphans(&[], strays(), false, T0);
    assert_eq!(review_orphans(&first.orphans, strays(), false, T0 + LATER).cancel, []);
    assert_eq!(review_orphans(&first.orphans, strays(), true, T0 + LATER).cancel, [id(7)]);
}

#[test]
fn an_attempt_newer_than_the_database_is_never_ended() {
    let strays = || vec![(stray(7, 2, "RUNNING"), OrphanKind::Newer)];
    let first = review_orphans(&[], strays(), true, T0);
    assert_eq!(review_orphans(&first.orphans, strays(), true, T0 + LATER).cancel, []);
}

#[test]
fn so_many_are_remembered_and_no_more() {
    let many = (1..=2000).rev().map(|n| (stray(n, 1, "RUNNING"), OrphanKind::Unknown)).collect();
    let review = review_orphans(&[], many, false, T0);
    assert_eq!((review.orphans.len(), review.orphans[0].slurm_id), (MOST_ORPHANS, id(1)));
}

proptest! {
    #[test]
    fn no_name_makes_the_reader_panic(name in "(tao-job-|tao-sqsh-|)[-r0-9a-f]{0,60}.*") {
        if let Some(origin) = Origin::of(&name) {
            prop_assert_eq!(origin.name(), name);
        }
    }

    #[test]
    fn nothing_is_ended_at_first_sight(number in 1_u32.., attempt in 1_u32..9, unknown: bool) {
        for kind in [OrphanKind::Superseded, OrphanKind::Copy, OrphanKind::Deleted, OrphanKind::Unknown] {
            let review = review_orphans(&[], vec![(stray(number, attempt, "RUNNING"), kind)], unknown, T0);
            prop_assert!(review.cancel.is_empty());
        }
    }
}

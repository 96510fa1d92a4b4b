//! Files that jobs could not use.

use super::{
    choices::{job, ready},
    *,
};
use crate::{FileFault, ImageChoice, Phase};

fn checked(conversion: &Conversion, found: ImageFile) -> Conversion {
    checked_for(conversion, found, &one_waits())
}

fn checked_for(conversion: &Conversion, found: ImageFile, demand: &Demand) -> Conversion {
    let base = "/lustre/tao".parse().unwrap();
    conversion.reopened().checked(found, demand, &base, now()).conversion
}

/// The conversion after its run made this file.
fn made(conversion: &Conversion) -> (Conversion, RemotePath) {
    let target = conversion.run.as_ref().unwrap().target.clone();
    let mut made = conversion.clone();
    made.ready(target.clone(), Some(now()), now());
    (made, target)
}

#[test]
fn a_missing_file_is_checked_although_it_was_seen_a_moment_ago() {
    assert!(matches!(choose_image(&job(Phase::Queued, false), &ready(), now()), ImageChoice::Launch(_)));
    let missing = ready().distrusted(FileFault::Missing, now()).unwrap();
    let chosen = choose_image(&job(Phase::RetryWait, false), &missing, now());
    assert!(matches!(chosen, ImageChoice::Wait { reopen: true, .. }), "{chosen:?}");
    let base = "/lustre/tao".parse().unwrap();
    let there = missing.reopened().checked(ImageFile::Whole, &one_waits(), &base, now()).conversion;
    assert_eq!((there.state, there.file), (ConversionState::Ready, ready().file), "it only was seen late");
    let gone = missing.reopened().checked(ImageFile::Absent, &one_waits(), &base, now()).conversion;
    assert_eq!(gone.state, ConversionState::Submitting);
    assert_eq!(gone.run.unwrap().target, ready().cache_path);
}

#[test]
fn a_damaged_file_is_made_again_beside_the_old_one_and_given_to_nobody() {
    let damaged = ready().distrusted(FileFault::Damaged, now()).unwrap();
    let chosen = choose_image(&job(Phase::RetryWait, false), &damaged, now());
    assert!(matches!(chosen, ImageChoice::Wait { reopen: true, .. }), "{chosen:?}");
    let base = "/lustre/tao".parse().unwrap();
    let begun = damaged.reopened().checked(ImageFile::Whole, &one_waits(), &base, now()).conversion;
    assert_eq!(begun.state, ConversionState::Submitting);
    let target = begun.run.as_ref().unwrap().target.clone();
    assert_ne!(target, ready().cache_path, "somebody may be reading it");
    let chosen = choose_image(&job(Phase::Queued, false), &begun, now());
    assert!(matches!(chosen, ImageChoice::Wait { reopen: false, .. }), "{chosen:?}");
    let mut made = begun;
    made.ready(target.clone(), Some(now()), now());
    let chosen = choose_image(&job(Phase::ConvertingImage, false), &made, now());
    assert!(
        matches!(&chosen, ImageChoice::Launch(launch) if launch.image == ImageRef::File(target.clone())),
        "{chosen:?}"
    );
}

#[test]
fn a_fault_is_recorded_once_and_damage_is_not_forgotten() {
    let missing = ready().distrusted(FileFault::Missing, now()).unwrap();
    assert_eq!(missing.distrusted(FileFault::Missing, now()), None);
    let damaged = missing.distrusted(FileFault::Damaged, now()).unwrap();
    assert_eq!(damaged.distrusted(FileFault::Missing, now()), None);
    assert_eq!(wanted().distrusted(FileFault::Damaged, now()), None, "it has no file");
}

#[test]
fn a_missing_file_is_given_to_nobody_while_another_is_made() {
    for state in [ConversionState::Submitting, ConversionState::InQueue, ConversionState::Running] {
        let renewing = Conversion { state, ..ready() };
        let later = now() + TimeDelta::hours(1);
        let chosen = choose_image(&job(Phase::Queued, false), &renewing, later);
        assert!(matches!(chosen, ImageChoice::Launch(_)), "the old one is valid: {chosen:?}");
        let missing = renewing.distrusted(FileFault::Missing, now()).unwrap();
        let chosen = choose_image(&job(Phase::RetryWait, false), &missing, now());
        assert!(matches!(chosen, ImageChoice::Wait { reopen: false, .. }), "{state}: {chosen:?}");
    }
}

#[test]
fn an_image_has_at_most_one_damaged_file_in_an_hour() {
    let damaged = ready().distrusted(FileFault::Damaged, now()).unwrap();
    let (again, _) = made(&checked(&damaged, ImageFile::Whole));
    let after = |minutes| again.distrusted(FileFault::Damaged, now() + TimeDelta::minutes(minutes));
    assert_eq!(after(59), None);
    assert_eq!(after(60).unwrap().damaged_files.len(), 2);
    assert!(again.distrusted(FileFault::Missing, now()).is_some(), "that only costs a check");
}

#[test]
fn a_second_damaged_file_does_not_make_the_first_one_good() {
    let first = ready().distrusted(FileFault::Damaged, now()).unwrap();
    let (second, _) = made(&checked(&first, ImageFile::Whole));
    let damaged = second.distrusted(FileFault::Damaged, now() + TimeDelta::hours(1)).unwrap();
    for lost in [damaged, second] {
        let dropped = checked(&lost, ImageFile::Absent);
        assert_eq!((dropped.state, dropped.place()), (ConversionState::Requested, &first.cache_path));
        let begun = checked(&dropped, ImageFile::Whole);
        assert_eq!(begun.state, ConversionState::Submitting, "the first file is still damaged");
        assert_ne!(begun.run.unwrap().target, first.cache_path);
    }
}

#[test]
fn a_damaged_file_is_removed_once_another_is_whole_and_no_job_reads_it() {
    let damaged = ready().distrusted(FileFault::Damaged, now()).unwrap();
    assert!(damaged.superseded(&one_waits()).is_empty(), "it is the only one");
    let (second, _) = made(&checked(&damaged, ImageFile::Whole));
    assert_eq!(second.superseded(&one_waits()), [ready().cache_path]);
    let read = Demand { reads_damaged: true, ..one_waits() };
    assert!(second.superseded(&read).is_empty(), "a job may be reading it");
    for (demand, found, left) in [
        (read, ImageFile::Whole, 1),
        (one_waits(), ImageFile::Unread, 1),
        (one_waits(), ImageFile::Absent, 1),
        (one_waits(), ImageFile::Whole, 0),
    ] {
        assert_eq!(checked_for(&second, found, &demand).damaged_files.len(), left, "{found:?}");
    }
}

#[test]
fn a_file_that_is_made_again_in_its_place_is_not_damaged() {
    let damaged = ready().distrusted(FileFault::Damaged, now()).unwrap();
    let begun = checked(&damaged, ImageFile::Absent);
    let (again, target) = made(&begun);
    assert_eq!((&target, again.damaged_files.len()), (&again.cache_path, 0));
    let chosen = choose_image(&job(Phase::RetryWait, false), &again, now());
    assert!(matches!(chosen, ImageChoice::Launch(_)), "{chosen:?}");
}

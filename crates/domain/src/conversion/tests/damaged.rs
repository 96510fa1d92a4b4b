//! Files that jobs could not use.

use super::*;
use crate::{ImageChoice, Phase};

fn choose(phase: Phase, image: &CachedImage) -> ImageChoice {
    choose_image(&job(phase, false), image, now())
}

/// The image after another conversion has made the file that it now needs.
fn made_again(damaged: &CachedImage) -> CachedImage {
    let ImageChoice::Convert(target) = choose(Phase::RetryWait, damaged) else { panic!("a conversion") };
    assert_ne!(target, damaged.cache_path, "somebody may be reading it");
    let mut image = making(damaged.clone());
    let conversion = image.conversion.as_mut().unwrap();
    (conversion.target, conversion.status) = (target, Status::Done);
    known(&image, ImageFile::Whole)
}

#[test]
fn a_missing_file_is_looked_for_although_it_was_seen_a_moment_ago() {
    let missing = ready().distrusted(FileFault::Missing, now()).unwrap();
    assert_eq!(choose(Phase::RetryWait, &missing), ImageChoice::Look);
    assert_eq!(known(&missing, ImageFile::Whole).file, ready().file, "it only was seen late");
    assert!(matches!(look_at(&missing, ImageFile::Absent, 0), Looked::Missing(_)));
}

#[test]
fn a_missing_file_is_given_to_nobody_while_another_is_made() {
    let renewing = making(ready());
    assert!(matches!(choose(Phase::Queued, &renewing), ImageChoice::Launch(_)), "the old one is valid");
    let missing = renewing.distrusted(FileFault::Missing, now()).unwrap();
    assert!(matches!(choose(Phase::RetryWait, &missing), ImageChoice::Wait { .. }));
}

#[test]
fn a_damaged_file_is_made_again_beside_the_old_one_and_given_to_nobody() {
    let damaged = ready().distrusted(FileFault::Damaged, now()).unwrap();
    let again = made_again(&damaged);
    let chosen = choose(Phase::ConvertingImage, &again);
    assert!(
        matches!(&chosen, ImageChoice::Launch(launch) if launch.image == ImageRef::File(again.file.clone().unwrap())),
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
fn an_image_has_at_most_one_damaged_file_in_an_hour() {
    let damaged = ready().distrusted(FileFault::Damaged, now()).unwrap();
    let again = CachedImage { damaged_files: damaged.damaged_files.clone(), ..made_again(&damaged) };
    let after = |minutes| again.distrusted(FileFault::Damaged, now() + TimeDelta::minutes(minutes));
    assert_eq!(after(59), None);
    assert_eq!(after(60).unwrap().damaged_files.len(), 2);
    assert!(again.distrusted(FileFault::Missing, now()).is_some(), "that only costs a look");
}

#[test]
fn a_second_damaged_file_does_not_make_the_first_one_good() {
    let first = ready().distrusted(FileFault::Damaged, now()).unwrap();
    let read = CachedImage { reads_damaged: true, ..first.clone() };
    let Looked::Known(gone) = look_at(&made_again(&read), ImageFile::Absent, 0) else {
        panic!("it is newer")
    };
    assert_eq!(gone.place(), &first.cache_path);
    assert!(
        matches!(choose(Phase::RetryWait, &gone), ImageChoice::Convert(target) if target != first.cache_path)
    );
}

#[test]
fn a_damaged_file_is_removed_once_another_is_whole_and_no_job_reads_it() {
    let damaged = ready().distrusted(FileFault::Damaged, now()).unwrap();
    assert!(damaged.superseded().is_empty(), "it is the only one");
    let read = CachedImage { reads_damaged: true, ..damaged };
    let second = made_again(&read);
    assert!(second.superseded().is_empty(), "a job may be reading it");
    let unread = CachedImage { reads_damaged: false, ..second.clone() };
    assert_eq!(unread.superseded(), [ready().cache_path]);
    for (image, found, left) in
        [(&second, ImageFile::Whole, 1), (&unread, ImageFile::Absent, 1), (&unread, ImageFile::Whole, 0)]
    {
        assert_eq!(known(image, found).damaged_files.len(), left, "{found:?}");
    }
}

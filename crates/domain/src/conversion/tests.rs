mod choices;
mod damaged;

use chrono::DateTime;
use test_case::test_case;
use uuid::Uuid;

use super::*;
use crate::{FileFault, ImagePolicy, fixtures, job::stored::Job};

fn now() -> Timestamp {
    DateTime::from_timestamp(1_800_000_000, 0).unwrap()
}

fn wanted() -> CachedImage {
    let [cluster, path] = ["dgx", "/lustre/sqsh/r.io~a+b=1.sqsh"];
    CachedImage::new(cluster.parse().unwrap(), path.parse().unwrap(), "r.io/a/b:1".parse().unwrap())
}

/// The image while a job converts it.
fn making(image: CachedImage) -> CachedImage {
    let target = image.cache_path.clone();
    CachedImage {
        conversion: Some(Conversion::begun(JobId::new(Uuid::from_u128(9)), target, now())),
        ..image
    }
}

/// The image after its conversion ended, a while ago.
fn ended(status: Status, message: &str) -> CachedImage {
    let mut image = making(wanted());
    let conversion = image.conversion.as_mut().unwrap();
    (conversion.status, conversion.message) = (status, message.to_owned());
    (conversion.started_at, conversion.finished_at) = (Some(now()), Some(now()));
    image
}

fn look_at(image: &CachedImage, found: ImageFile, minutes_later: i64) -> Looked {
    image.looked(found, &Graces::default(), now() + TimeDelta::minutes(minutes_later))
}

fn known(image: &CachedImage, found: ImageFile) -> CachedImage {
    match look_at(image, found, 5) {
        Looked::Known(image) | Looked::Missing(image) => image,
        Looked::Again(at) => panic!("again at {at}"),
    }
}

/// The image after a conversion made its file.
fn ready() -> CachedImage {
    let mut image = ended(Status::Done, "");
    image.conversion.as_mut().unwrap().finished_at = Some(now());
    let looked = image.looked(ImageFile::Whole, &Graces::default(), now());
    let Looked::Known(image) = looked else { panic!("{looked:?}") };
    image
}

/// A job that wants the image.
fn job(phase: crate::Phase, require_sqsh: bool) -> Job {
    let mut job = fixtures::command_job();
    job.phase = phase;
    job.spec.image = Some(wanted().image);
    job.spec.image_policy = ImagePolicy { require_sqsh, ..ImagePolicy::default() };
    job
}

#[test]
fn a_file_that_a_conversion_made_is_known_from_its_beginning_on() {
    let image = ready();
    assert_eq!((&image.file, image.conversion), (&Some(image.cache_path), None));
    assert_eq!((image.file_seen_at, image.file_began_at), (Some(now()), Some(now())));
}

#[test]
fn a_file_that_cannot_be_read_says_nothing() {
    for image in [wanted(), ready(), ended(Status::Done, ""), ended(Status::Error, "")] {
        assert_eq!(look_at(&image, ImageFile::Unread, 0), Looked::Again(now() + LOOKUP_INTERVAL));
    }
}

#[test]
fn a_file_may_become_visible_a_while_after_its_conversion() {
    let image = ended(Status::Done, "");
    assert_eq!(look_at(&image, ImageFile::Absent, 0), Looked::Again(now() + EVIDENCE_INTERVAL));
    let failed = known(&image, ImageFile::Absent);
    assert!(failed.error.unwrap().contains("a file system that all nodes share"));
    assert_eq!((failed.conversion, failed.failures), (None, 1));
}

#[test]
fn a_failure_is_remembered_for_longer_each_time_until_a_conversion_succeeds() {
    let mut image = ended(Status::Error, "no such image");
    for minutes in [5, 10, 20, 40, 60, 60] {
        let failed = known(&image, ImageFile::Absent);
        assert!(failed.error.as_deref().unwrap().ends_with(": no such image"));
        assert_eq!(failed.retry_at, Some(now() + TimeDelta::minutes(minutes)));
        image = CachedImage { conversion: image.conversion.clone(), ..failed };
    }
    let made = known(&image, ImageFile::Whole);
    assert_eq!((made.error, made.retry_at, made.failures), (None, None, 0));
}

#[test]
fn a_conversion_that_nobody_needed_any_more_is_no_failure() {
    let mut image = ended(Status::Canceled, "Canceled.");
    image.conversion.as_mut().unwrap().is_unneeded = true;
    let dropped = known(&image, ImageFile::Absent);
    assert_eq!((dropped.error, dropped.failures, dropped.conversion), (None, 0, None));
    // The jobs that waited have given up.
    let conversion = image.conversion.as_mut().unwrap();
    (conversion.started_at, conversion.submitted_at) = (None, Some(now()));
    conversion.finished_at = Some(now() + TimeDelta::hours(1));
    let failed = known(&image, ImageFile::Absent);
    assert_eq!(failed.error.as_deref(), Some("its Slurm job was pending for an hour"));
    // Somebody canceled it on the cluster.
    image.conversion.as_mut().unwrap().is_unneeded = false;
    assert!(known(&image, ImageFile::Absent).error.unwrap().ends_with(": Canceled."));
}

#[test_case("Canceled." => "Canceled."; "no log")]
#[test_case("It failed. Last lines of main.err:\n[INFO] One\n[ERROR] Two\nsrun: error: three" => "It failed. Last lines of main.err: [ERROR] Two"; "an error")]
#[test_case("It failed:\n[ERROR] 401\n[ERROR] Could not process JSON input" => "It failed: [ERROR] 401"; "an answer that is not JSON")]
#[test_case("It failed:\none\ntwo\n" => "It failed: two"; "no error")]
fn the_message_of_a_conversion_is_told_on_one_line(message: &str) -> String {
    told(message).into_owned()
}

#[test_case(ImageFile::Absent; "no file")]
#[test_case(ImageFile::Broken; "a part of a file")]
fn a_file_that_is_gone_is_forgotten_and_the_first_one_looked_for(found: ImageFile) {
    let Looked::Missing(gone) = look_at(&ready(), found, 5) else { panic!("it is at the first path") };
    assert_eq!((gone.file, gone.file_seen_at, gone.file_began_at), (None, None, None));
    let newer = CachedImage { file: Some("/lustre/sqsh/newer.sqsh".parse().unwrap()), ..ready() };
    let Looked::Known(gone) = look_at(&newer, found, 5) else { panic!("the first one may exist") };
    assert_eq!((gone.place(), gone.file_seen_at), (&ready().cache_path, None));
}

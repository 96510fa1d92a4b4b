//! How a job continues when its image cannot be had from the cache.

use test_case::test_case;

use super::*;
use crate::{FileFault, ImagePolicy, Phase, fixtures::submitted_job, job::stored::Job};

const NO_IMAGE: &str = "enroot import exited with code 1: [ERROR] URL https://r.io/v2/a/b/manifests/1 returned error \
                        code: 404 Not Found";
const NO_LOGIN: &str = "enroot import exited with code 22: [INFO] Authenticating with user: <anonymous>";
const NO_ANSWER: &str = "enroot import exited with code 6: curl: (6) Could not resolve host: r.io";

fn job(phase: Phase, require_sqsh: bool) -> Job {
    let mut job = submitted_job();
    (job.attempt, job.phase) = (None, phase);
    job.spec.image = Some(wanted().image);
    job.spec.image_policy = ImagePolicy { require_sqsh, ..ImagePolicy::default() };
    job
}

fn failed(error: &str) -> Conversion {
    let mut conversion = running();
    conversion.failed(error.to_owned(), now());
    conversion
}

fn ready() -> Conversion {
    let mut ready = running();
    ready.ready(ready.cache_path.clone(), Some(now()), now());
    ready
}

#[test_case(NO_IMAGE, "does not exist in its registry. enroot"; "no image")]
#[test_case(NO_LOGIN, "refuses the login"; "no login")]
fn an_image_that_the_registry_refuses_takes_no_node(error: &str, says: &str) {
    for require_sqsh in [false, true] {
        let chosen = choose_image(&job(Phase::ConvertingImage, require_sqsh), &failed(error), now());
        let ImageChoice::Refused { message } = chosen else { panic!("{chosen:?}") };
        assert!(message.contains(says) && message.contains(error) && message.ends_with('.'), "{message}");
    }
}

#[test]
fn a_job_that_comes_after_a_refusal_asks_the_registry_again() {
    for phase in [Phase::Queued, Phase::RetryWait] {
        let chosen = choose_image(&job(phase, false), &failed(NO_LOGIN), now());
        assert!(matches!(chosen, ImageChoice::Wait { reopen: true, .. }), "{phase:?}: {chosen:?}");
    }
}

#[test]
fn a_registry_that_does_not_answer_refuses_nothing() {
    let chosen = choose_image(&job(Phase::ConvertingImage, false), &failed(NO_ANSWER), now());
    assert!(matches!(chosen, ImageChoice::Launch(_)), "the nodes may reach it: {chosen:?}");
}

#[test]
fn a_missing_file_is_checked_although_it_was_seen_a_moment_ago() {
    assert!(matches!(choose_image(&job(Phase::Queued, false), &ready(), now()), ImageChoice::Launch(_)));
    let missing = ready().distrusted(FileFault::Missing).unwrap();
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
    let damaged = ready().distrusted(FileFault::Damaged).unwrap();
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
    let missing = ready().distrusted(FileFault::Missing).unwrap();
    assert_eq!(missing.distrusted(FileFault::Missing), None);
    let damaged = missing.distrusted(FileFault::Damaged).unwrap();
    assert_eq!(damaged.distrusted(FileFault::Missing), None);
    assert_eq!(wanted().distrusted(FileFault::Damaged), None, "it has no file");
}

//! How a job continues when its image cannot be had from the cache.

use test_case::test_case;

use super::*;
use crate::{ImagePolicy, Phase, fixtures::submitted_job, job::stored::Job};

const NO_IMAGE: &str = "enroot import exited with code 1: [ERROR] URL https://r.io/v2/a/b/manifests/1 returned error \
                        code: 404 Not Found";
const NO_LOGIN: &str = "enroot import exited with code 22: [INFO] Authenticating with user: <anonymous>";
const NO_ANSWER: &str = "enroot import exited with code 6: curl: (6) Could not resolve host: r.io";

pub(super) fn job(phase: Phase, require_sqsh: bool) -> Job {
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

pub(super) fn ready() -> Conversion {
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

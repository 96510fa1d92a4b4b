//! How a job continues, given what is known of its image.

use test_case::test_case;

use super::*;
use crate::Phase;

const NO_IMAGE: &str = "enroot import exited with code 1: [ERROR] URL https://r.io/v2/a/b/manifests/1 returned error \
                        code: 404 Not Found";
const NO_LOGIN: &str = "enroot import exited with code 22: [INFO] Authenticating with user: <anonymous>";
const NO_ANSWER: &str = "enroot import exited with code 6: curl: (6) Could not resolve host: r.io";

fn choose(phase: Phase, image: &CachedImage, minutes_later: i64) -> ImageChoice {
    choose_image(&job(phase, false), image, now() + TimeDelta::minutes(minutes_later))
}

fn failed(error: &str) -> CachedImage {
    known(&ended(Status::Error, error), ImageFile::Absent)
}

#[test]
fn a_file_is_looked_at_once_in_ten_minutes() {
    assert_eq!(choose(Phase::Queued, &wanted(), 0), ImageChoice::Look);
    let chosen = choose(Phase::Queued, &ready(), 9);
    assert!(
        matches!(&chosen, ImageChoice::Launch(launch) if launch.image == ImageRef::File(ready().cache_path)),
        "{chosen:?}"
    );
    assert_eq!(choose(Phase::Queued, &ready(), 10), ImageChoice::Look);
}

#[test]
fn a_conversion_is_waited_for_until_it_ends_or_slurm_does_not_start_it_for_an_hour() {
    let mut image = making(wanted());
    let until = |chosen| {
        let ImageChoice::Wait { until, .. } = chosen else { panic!("{chosen:?}") };
        until - now()
    };
    let later = 300;
    assert_eq!(
        until(choose(Phase::Queued, &image, later)),
        TimeDelta::minutes(330),
        "Slurm does not have it"
    );
    let conversion = image.conversion.as_mut().unwrap();
    (conversion.phase, conversion.submitted_at) = (Phase::InQueue, Some(now() + TimeDelta::minutes(300)));
    assert_eq!(until(choose(Phase::Queued, &image, later)), TimeDelta::minutes(360));
    assert_eq!(given_up(&image, now() + TimeDelta::minutes(359)), None);
    assert!(matches!(choose(Phase::ConvertingImage, &image, 360), ImageChoice::Launch(_)), "unconverted");
    assert!(given_up(&image, now() + TimeDelta::minutes(360)).is_some());
    image.conversion.as_mut().unwrap().phase = Phase::Running;
    assert_eq!(until(choose(Phase::ConvertingImage, &image, 360)), TimeDelta::minutes(390), "Slurm ends it");
    assert_eq!(choose(Phase::ConvertingImage, &ended(Status::Done, ""), 1), ImageChoice::Look);
}

#[test]
fn a_job_is_not_refused_with_an_answer_from_before_its_time() {
    let mut late = job(Phase::ConvertingImage, false);
    late.created_at = now() + TimeDelta::seconds(1);
    assert_eq!(choose_image(&late, &failed(NO_IMAGE), now()), ImageChoice::Look);
}

#[test]
fn who_requires_the_file_does_not_run_without_it() {
    let mut strict = job(Phase::ConvertingImage, true);
    let chosen = choose_image(&strict, &failed(NO_ANSWER), now());
    let ImageChoice::Refused { message } = chosen else { panic!("{chosen:?}") };
    assert!(message.contains("require_sqsh") && message.contains(NO_ANSWER), "{message}");
    strict.spec.image_policy.require_sqsh = false;
    let chosen = choose_image(&strict, &failed(NO_ANSWER), now());
    let ImageChoice::Launch(launch) = chosen else { panic!("{chosen:?}") };
    assert!(launch.image == wanted().image && launch.note.unwrap().contains(NO_ANSWER));
    assert_eq!(choose(Phase::Queued, &failed(NO_ANSWER), 6), ImageChoice::Look, "its five minutes are over");
}

#[test_case(NO_IMAGE, "does not exist in its registry. Job "; "no image")]
#[test_case(NO_LOGIN, "refuses the login"; "no login")]
fn an_image_that_the_registry_refuses_takes_no_node(error: &str, says: &str) {
    for require_sqsh in [false, true] {
        let waited = job(Phase::ConvertingImage, require_sqsh);
        let chosen = choose_image(&waited, &failed(error), now());
        let ImageChoice::Refused { message } = chosen else { panic!("{chosen:?}") };
        assert!(message.contains(says) && message.ends_with('.'), "{message}");
    }
    // Somebody may have pushed the image since.
    for phase in [Phase::Queued, Phase::RetryWait] {
        assert_eq!(choose(phase, &failed(error), 0), ImageChoice::Look);
    }
}

#[test]
fn a_tag_that_moves_is_converted_anew_for_jobs_that_came_since() {
    let mut fresh = job(Phase::Queued, false);
    fresh.spec.image_policy.force_reconvert_latest = true;
    fresh.created_at = now();
    let mut image = CachedImage { image: "r.io/a/b".parse().unwrap(), ..ready() };
    assert!(matches!(choose_image(&fresh, &image, now()), ImageChoice::Launch(_)));
    image.file_began_at = Some(now() - TimeDelta::seconds(1));
    let chosen = choose_image(&fresh, &image, now());
    let ImageChoice::Convert(target) = chosen else { panic!("{chosen:?}") };
    assert_ne!(target, image.cache_path, "somebody may be reading it");
    let renewing = making(image);
    assert!(matches!(choose_image(&fresh, &renewing, now()), ImageChoice::Wait { .. }));
    let late = 30;
    assert!(
        matches!(choose(Phase::Queued, &renewing, late), ImageChoice::Launch(_)),
        "the others have the old one"
    );
}

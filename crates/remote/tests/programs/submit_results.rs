//! Submitting: results directories that the service makes, and those that were there before.

use remote::{How, Submission, SubmitAnswer};

use crate::{
    site::Site,
    submit_batch::{entry, one, submit, submitted},
};

/// What is in a directory, by name.
fn names(site: &Site, dir: &str) -> Vec<String> {
    let entries = std::fs::read_dir(site.file(dir)).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort_unstable();
    names
}

#[test]
fn a_results_directory_that_is_made_bears_a_mark_that_says_whose_it_is() {
    let site = Site::new();
    submit(&site, vec![entry(&site, "a"), entry(&site, "b")]);
    for key in ["a", "b"] {
        let mark = site.read(&format!("results/{key}/.tao-slurm"));
        assert_eq!(mark.lines().next(), Some(key));
    }
    assert_eq!(names(&site, "results"), ["a", "b"], "nothing is left beside them");
    assert_eq!(names(&site, "state/a"), ["slurm_id", "submit.1"]);
}

#[test]
fn a_results_directory_that_was_there_before_is_used_and_never_marked() {
    let site = Site::new();
    site.write("results/a/precious", "x");
    assert_eq!(one(&site, entry(&site, "a")), submitted(101, How::New));
    assert_eq!(names(&site, "results/a"), ["precious"]);
}

#[test]
fn one_that_appears_while_another_is_made_is_not_replaced_nor_marked() {
    let site = Site::new();
    site.program("mv", "mkdir -p \"$SITE/results/a\"; exec /usr/bin/mv \"$@\"");
    assert_eq!(one(&site, entry(&site, "a")), submitted(101, How::New));
    assert_eq!(names(&site, "results/a"), <[&str; 0]>::default());
}

#[test]
fn the_next_attempt_keeps_the_mark_of_the_first() {
    let site = Site::new();
    one(&site, entry(&site, "a"));
    site.write("results/a/epoch_1.pth", "x");
    let results_dir = Some(site.path("results/a"));
    one(&site, Submission { results_dir, ..entry(&site, "a-r2") });
    assert_eq!(names(&site, "results/a"), [".tao-slurm", "epoch_1.pth"]);
    assert_eq!(names(&site, "results"), ["a"]);
}

#[test]
fn a_job_without_a_place_for_its_results_is_not_submitted() {
    let site = Site::new();
    site.link("nowhere", "results/a");
    let answers = submit(&site, vec![entry(&site, "a"), entry(&site, "b")]);
    assert!(matches!(answers[0], SubmitAnswer::StageFailed(_)), "{answers:?}");
    assert_eq!(answers[1], submitted(101, How::New));
}

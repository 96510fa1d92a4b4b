//! A directory of one job that hangs, has no end, or leads elsewhere: of the others everything is seen.

use remote::{Concluded, PollAnswer, Watched};
use test_case::test_case;

use crate::{
    conclude::{conclude, job},
    poll::{poll, row, watched},
    site::Site,
};

const SLEEP: &str = "exec sleep 100";
const NO_END: &str = "exec yes \"1 1 1.0 $SITE/results/7/x/status.json\"";

/// What searches of directories with this in their paths do.
fn when_searched(site: &Site, part: &str, what: &str) {
    site.program("timeout", "shift 3\nexec /usr/bin/timeout -k 1 3 \"$@\"");
    site.program("find", &format!("case $* in *{part}*) {what} ;; esac\nexec /usr/bin/find \"$@\""));
}

fn seen(site: &Site) -> PollAnswer {
    let watch = |number: u32| {
        site.write(&format!("results/{number}/status.json"), "x\n");
        Watched { signs_of_life: Some(site.path("logs")), ..watched(site, number) }
    };
    site.write("queue", row(7, "RUNNING") + &row(8, "RUNNING") + &row(9, "RUNNING"));
    poll(site, vec![watch(7), watch(8), watch(9)])
}

#[test_case(SLEEP; "one that hangs")]
#[test_case(NO_END; "one without an end")]
fn results_that_cannot_be_searched_hide_no_other_job(what: &str) {
    let site = Site::new();
    when_searched(&site, "results/7", what);
    let answer = seen(&site);
    let mut files: Vec<&str> = answer.status.iter().map(|chunk| chunk.key.as_str()).collect();
    files.sort_unstable();
    assert_eq!(files, ["job-8", "job-9"]);
    let mut signs: Vec<&str> = answer.signs_of_life.keys().map(String::as_str).collect();
    signs.sort_unstable();
    assert!(signs.ends_with(&["job-8", "job-9"]), "{signs:?}");
}

fn last_words(site: &Site) -> (Vec<bool>, Vec<usize>) {
    let concluding = |key: &str| {
        site.write(&format!("state/{key}/exit"), "7 0 0 1700000000\n");
        site.write(&format!("results/{key}/status.json"), "{}\n");
        job(site, key)
    };
    let concluded = conclude(site, vec![concluding("a"), concluding("b"), concluding("c")]);
    let files = concluded.iter().map(|one: &Concluded| one.status.len()).collect();
    (concluded.iter().map(|one| one.readable).collect(), files)
}

#[test_case("results/b"; "its results")]
#[test_case("state/b"; "its state directory")]
fn a_job_that_ends_beside_one_that_cannot_be_searched_has_been_looked_at(part: &str) {
    let site = Site::new();
    when_searched(&site, part, SLEEP);
    assert_eq!(last_words(&site), (vec![true, false, true], vec![1, 0, 1]));
}

#[test]
fn results_that_are_a_link_are_not_followed_and_that_is_known() {
    let site = Site::new();
    site.write("elsewhere/sub/status.json", "{}\n");
    site.link("../elsewhere", "results/b");
    site.link("../elsewhere", "results/7");
    assert_eq!(last_words(&site), (vec![true, false, true], vec![1, 0, 1]));
    let answer = seen(&site);
    assert_eq!((answer.status.len(), answer.signs_of_life.len()), (2, 2));
}

#[test]
fn what_a_site_links_above_the_results_is_followed() {
    let site = Site::new();
    site.write("disk/x", "");
    site.link("disk", "results");
    assert_eq!(last_words(&site), (vec![true, true, true], vec![1, 1, 1]));
}

#[test]
fn a_status_file_that_cannot_be_told_of_is_said_to_be_left_out() {
    let site = Site::new();
    for key in ["a", "b"] {
        site.write(&format!("state/{key}/submit.1"), "");
    }
    site.write("results/a/100%/status.json", "{}\n");
    site.write("results/b/train/status.json", "{}\n");
    let concluded = conclude(&site, vec![job(&site, "a"), job(&site, "b")]);
    let left_out: Vec<_> = concluded.iter().map(|one| (one.left_out, one.readable)).collect();
    assert_eq!(left_out, [(true, true), (false, true)]);
}

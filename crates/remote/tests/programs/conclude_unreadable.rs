//! Concluding: a file system that is not there, or slow, is not a job that wrote nothing.

use std::{fs, os::unix::fs::PermissionsExt};

use remote::{Conclude, Concluded, Concluding};
use test_case::test_case;

use crate::{
    conclude::{conclude, job},
    site::Site,
};

/// Two jobs of which everything can be read.
fn two(site: &Site) -> Vec<Concluding> {
    for key in ["a", "b"] {
        site.write(&format!("state/{key}/submit.1"), "");
        site.write(&format!("results/{key}/status.json"), "{}\n");
        site.write(&format!("env/{key}"), "SECRET=1");
    }
    vec![job(site, "a"), job(site, "b")]
}

fn readable(concluded: &[Concluded]) -> Vec<bool> {
    concluded.iter().map(|one| one.readable).collect()
}

#[test]
fn a_job_without_a_state_directory_has_not_been_looked_at() {
    let site = Site::new();
    let jobs = two(&site);
    fs::remove_dir_all(site.file("state/a")).unwrap();
    assert_eq!(readable(&conclude(&site, jobs)), [false, true]);
}

#[test]
fn a_file_system_that_comes_or_goes_meanwhile_has_not_been_looked_at() {
    let site = Site::new();
    let jobs = two(&site);
    fs::rename(site.file("state/a"), site.file("state/away")).unwrap();
    site.program("find", "mv \"$SITE/state/away\" \"$SITE/state/a\" 2>/dev/null\nexec /usr/bin/find \"$@\"");
    assert_eq!(readable(&conclude(&site, jobs.clone())), [false, true], "it came");
    site.program("find", "rm -rf -- \"$SITE/state/b\"\nexec /usr/bin/find \"$@\"");
    assert_eq!(readable(&conclude(&site, jobs)), [true, false], "it went");
}

#[test]
fn results_that_were_never_written_are_no_failure() {
    let site = Site::new();
    let jobs = two(&site);
    fs::remove_dir_all(site.file("results/a")).unwrap();
    let concluded = conclude(&site, jobs);
    assert_eq!(readable(&concluded), [true, true]);
    assert_eq!((concluded[0].status.len(), concluded[1].status.len()), (0, 1));
}

#[test_case("-name run"; "for the claims")]
#[test_case("-name status.json"; "for the status files")]
fn a_search_that_runs_out_of_time_says_nothing_about_any_job(which: &str) {
    let site = Site::new();
    let jobs = two(&site);
    let slow = format!("case $* in *'{which}'*) exit 124 ;; esac\nexec /usr/bin/timeout \"$@\"");
    site.program("timeout", &slow);
    assert_eq!(readable(&conclude(&site, jobs)), [false, false]);
}

#[test_case("find: '$SITE/results/a/x': Input/output error", [false, true]; "one directory is broken")]
#[test_case("find: '$SITE/results/b': Stale file handle", [true, false]; "the other one is")]
#[test_case("find: '$SITE/results/a': Permission denied", [false, true]; "one may not be entered")]
#[test_case("find: '$SITE/results/a/x': Permission denied", [true, true]; "a job has locked away something of its own")]
#[test_case("find: '$SITE/results/a/x': No such file or directory", [true, true]; "something went away meanwhile")]
#[test_case("find: cannot work today", [false, false]; "about no directory")]
fn a_search_that_failed_for_one_job_is_a_failure_for_that_one(complaint: &str, expected: [bool; 2]) {
    let site = Site::new();
    let jobs = two(&site);
    site.program(
        "find",
        &format!(
            "case $* in *status.json*) echo \"{complaint}\" >&2; /usr/bin/find \"$@\"; exit 1 ;; esac\n\
             exec /usr/bin/find \"$@\""
        ),
    );
    assert_eq!(readable(&conclude(&site, jobs)), expected);
}

#[test]
fn a_status_file_that_cannot_be_read_to_its_end_is_a_failure() {
    let site = Site::new();
    let jobs = two(&site);
    site.program("dd", "case $* in */results/a/*) exit 1 ;; esac\nexec /usr/bin/dd \"$@\"");
    let concluded = conclude(&site, jobs);
    assert_eq!(readable(&concluded), [false, true]);
    assert!(!concluded[0].status[0].complete && concluded[1].status[0].complete);
}

#[test]
fn a_status_file_whose_read_hangs_holds_up_no_other_job() {
    let site = Site::new();
    site.patience_of_reads(3);
    let mut jobs = two(&site);
    site.write("results/c/status.json", "{}\n");
    site.write("state/c/submit.1", "");
    jobs.push(job(&site, "c"));
    site.program("dd", "case $* in */results/b/*) exec sleep 600 ;; esac\nexec /usr/bin/dd \"$@\"");
    let concluded = conclude(&site, jobs);
    assert_eq!(readable(&concluded), [true, false, true]);
    let whole: Vec<_> = concluded.iter().map(|one| one.status[0].complete).collect();
    assert_eq!(whole, [true, false, true]);
}

#[test]
fn a_log_that_cannot_be_read_is_a_failure() {
    let site = Site::new();
    let jobs = two(&site);
    site.write("logs/b/main.out", "text\n");
    site.program("tail", "case $* in */main.out) exit 1 ;; esac\nexec /usr/bin/tail \"$@\"");
    assert_eq!(readable(&conclude(&site, jobs)), [true, false]);
}

#[test]
fn a_mark_that_is_there_and_cannot_be_read_is_a_failure() {
    let site = Site::new();
    let jobs = two(&site);
    // A builtin cannot be faked, but bash drops NULs, so it gets nothing out of a file that has a size.
    site.write("state/a/exit", "\0\0\0");
    let concluded = conclude(&site, jobs);
    assert_eq!((readable(&concluded), concluded[0].markers.exit), (vec![false, true], None));
}

#[test]
fn a_mark_whose_read_hangs_holds_up_no_other_job() {
    let site = Site::new();
    site.patience_of_reads(3);
    let mut jobs = two(&site);
    site.write("state/c/submit.1", "");
    jobs.push(job(&site, "c"));
    for key in ["a", "b", "c"] {
        site.write(&format!("state/{key}/started"), "7 0 1700000000 node01\n");
        site.write(&format!("state/{key}/exit"), "7 0 3 1700000000\n");
    }
    let _hung = site.hang("state/b/exit");
    let concluded = conclude(&site, jobs);
    assert_eq!(readable(&concluded), [true, false, true]);
    let exits: Vec<_> = concluded.iter().map(|one| one.markers.exit.map(|exit| exit.code)).collect();
    assert_eq!(exits, [Some(3), None, Some(3)]);
}

#[test]
fn a_mark_of_nothing_but_nuls_takes_no_time() {
    let site = Site::new();
    // One that ran out of time would be followed by another.
    site.program(
        "timeout",
        "case $* in *' walk exit '*) echo >>\"$SITE/readers\" ;; esac\nexec /usr/bin/timeout \"$@\"",
    );
    let jobs = two(&site);
    site.write("state/a/exit", "");
    fs::OpenOptions::new().write(true).open(site.file("state/a/exit")).unwrap().set_len(1 << 40).unwrap();
    site.write("state/b/exit", "7 0 3 1700000000\n");
    let concluded = conclude(&site, jobs);
    assert_eq!((readable(&concluded), site.read("readers").lines().count()), (vec![false, true], 1));
    assert!(concluded[1].markers.exit.is_some());
}

#[test]
fn reads_that_are_slow_and_do_not_hang_come_to_their_end() {
    let site = Site::new();
    // Whoever reads is stopped after each job.
    site.program(
        "timeout",
        "case $* in *' walk '*) shift 3; head -n 1 | \"$@\"; exit 124 ;; esac\nexec /usr/bin/timeout \"$@\"",
    );
    let jobs = two(&site);
    for key in ["a", "b"] {
        site.write(&format!("state/{key}/exit"), "7 0 3 1700000000\n");
    }
    let concluded = conclude(&site, jobs);
    assert_eq!(readable(&concluded), [true, true]);
    assert!(concluded.iter().all(|one| one.markers.exit.is_some()));
}

#[test]
fn files_in_a_directory_that_is_not_there_are_not_removed() {
    let site = Site::new();
    let mut jobs = two(&site);
    jobs[0].remove = vec![site.path("gone/env/secret")];
    let concluded = conclude(&site, jobs);
    assert_eq!((concluded[0].removed, concluded[1].removed), (false, true));
    fs::write(site.file("env/b"), "SECRET=1").unwrap();
    fs::set_permissions(site.file("env"), fs::Permissions::from_mode(0o000)).unwrap();
    let locked = fs::read_dir(site.file("env")).is_err();
    let concluded = conclude(&site, vec![job(&site, "b")]);
    fs::set_permissions(site.file("env"), fs::Permissions::from_mode(0o755)).unwrap();
    // Nothing is locked to root.
    assert_eq!(concluded[0].removed, !locked);
}

#[test]
fn status_files_share_a_budget_and_what_did_not_fit_is_said() {
    let site = Site::new();
    let jobs = two(&site);
    for key in ["a", "b"] {
        site.write(&format!("results/{key}/status.json"), "x".repeat(800));
    }
    let concluded = conclude(&site, jobs.clone());
    let mut chunks: Vec<_> =
        concluded.iter().map(|one| (one.status[0].bytes.len(), one.status[0].complete)).collect();
    chunks.sort_unstable();
    assert_eq!(chunks, [(200, false), (800, true)]);
    assert_eq!(readable(&concluded), [true, true], "there was only no room");
    let none = site.run(&Conclude { jobs, tail_bytes: 10, status_bytes_total: 0 });
    assert!(none.iter().all(|one| one.status[0].bytes.is_empty() && !one.status[0].complete));
}

#[test]
fn an_answer_about_many_jobs_has_a_limit_that_can_be_kept_in_memory() {
    use remote::RemoteCommand;
    let site = Site::new();
    let jobs: Vec<_> = std::iter::repeat_n(job(&site, "a"), 64).collect();
    let command = Conclude { jobs, tail_bytes: 8192, status_bytes_total: 8 * 1024 * 1024 };
    assert!(command.render().stdout_limit < 16 * 1024 * 1024);
}

//! Submitting: what a job needs has to be there before anything of it is staged.

use std::{fs, os::unix::fs::PermissionsExt, time::Duration};

use remote::{How, RemoteCommand as _, Submission, SubmitAnswer, SubmitBatch};
use slurm::{FailureClass, RemotePath};

use crate::{
    site::Site,
    submit_batch::{entry, one, submit, submitted},
};

fn with(site: &Site, key: &str, inputs: &[&str]) -> Submission {
    Submission { inputs: inputs.iter().map(|name| site.path(name)).collect(), ..entry(site, key) }
}

fn missing(site: &Site, inputs: &[&str]) -> SubmitAnswer {
    SubmitAnswer::MissingInputs { paths: inputs.iter().map(|name| site.path(name)).collect() }
}

/// A path that is not below the site.
fn outside(path: &str) -> RemotePath {
    path.parse().unwrap()
}

#[test]
fn a_job_whose_inputs_are_there_is_submitted() {
    let site = Site::new();
    site.write("data/a b/c'd\"$x;é*", "");
    site.link("a b", "data/link");
    let job = with(&site, "a", &["data", "data/a b/c'd\"$x;é*", "data/link"]);
    assert_eq!(one(&site, job), submitted(101, How::New));
}

#[test]
fn every_missing_input_is_named_and_nothing_is_staged() {
    let site = Site::new();
    site.write("data/here", "");
    site.link("nowhere", "data/dangling");
    let names =
        ["data/x\" $(touch y)", "data/here", "data/here/below a file", "none/at/all", "data/dangling"];
    assert_eq!(
        one(&site, with(&site, "a", &names)),
        missing(&site, &[names[0], names[2], names[3], names[4]])
    );
    assert_eq!(site.calls("sbatch"), 0);
    assert!(!site.exists("env") && !site.exists("state/a"), "nothing was staged");
}

#[test]
fn a_missing_input_costs_only_its_own_job() {
    let site = Site::new();
    site.write("data/here", "");
    let jobs = vec![with(&site, "a", &["data/here"]), with(&site, "b", &["data/none"]), entry(&site, "c")];
    let answers = submit(&site, jobs);
    assert_eq!(answers[1], missing(&site, &["data/none"]));
    assert!(matches!(answers[0], SubmitAnswer::Submitted { .. }), "{answers:?}");
    assert!(matches!(answers[2], SubmitAnswer::Submitted { .. }), "{answers:?}");
}

/// Whoever asked must have his answers before he gives up waiting, and a dead file system may hold any number of inputs.
#[test]
fn inputs_that_hang_are_not_all_waited_for() {
    let site = Site::new();
    let names: Vec<String> = (0..40).map(|number| format!("dead/{number}/data")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let entries = vec![with(&site, "a", &names), with(&site, "b", &["dead/last"]), entry(&site, "c")];
    // What needs none of them begins although the others were waited for.
    let command = SubmitBatch { begin_within: Duration::from_mins(2), ..SubmitBatch::new(entries) };
    let hung = site.hang_all("/dead/");
    let raw = site.raw_with(&command, &hung.each_ref().map(|(name, text)| (*name, text.as_str())));
    let answers = command.parse(&raw).unwrap();
    let SubmitAnswer::StageFailed(failure) = &answers[0] else { panic!("{answers:?}") };
    assert!(failure.excerpt.contains("no answer within 5 s"), "{failure:?}");
    assert_eq!(answers[1], SubmitAnswer::Skipped, "nobody has looked");
    assert_eq!(answers[2], submitted(101, How::New), "it needs none of them");
}

#[test]
fn very_many_missing_inputs_are_all_named() {
    let site = Site::patient();
    let names: Vec<String> = (0..1000).map(|number| format!("none/{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    assert_eq!(one(&site, with(&site, "a", &names)), missing(&site, &names));
}

#[test]
fn a_job_that_is_submitted_already_needs_its_inputs_no_more() {
    let site = Site::new();
    site.write("data/here", "");
    one(&site, with(&site, "a", &["data/here"]));
    site.remove("data/here");
    assert_eq!(one(&site, with(&site, "a", &["data/here"])), submitted(101, How::Replay));
}

#[test]
fn an_input_that_may_not_be_read_is_as_good_as_missing() {
    let site = Site::new();
    site.write("data/here", "");
    // A superuser may read everything: the command that looks says it instead.
    site.program(
        "stat",
        "case \" $* \" in *--printf*) exit 1 ;; esac\necho \"stat: cannot statx 'x': Permission denied\" >&2\nexit 1",
    );
    assert_eq!(one(&site, with(&site, "a", &["data/here"])), missing(&site, &["data/here"]));
}

#[test]
fn a_file_system_that_does_not_answer_is_no_missing_input() {
    let site = Site::new();
    for said in ["Stale file handle", "Transport endpoint is not connected", "Input/output error"] {
        site.program(
            "stat",
            &format!("case \" $* \" in *--printf*) exit 1 ;; esac\necho \"stat: cannot statx 'x': {said}\" >&2\nexit 1"),
        );
        let answer = one(&site, with(&site, "a", &["data/here"]));
        let SubmitAnswer::StageFailed(failure) = answer else { panic!("{answer:?}") };
        assert!(failure.excerpt.ends_with(said), "{failure:?}");
        assert_ne!(failure.class, FailureClass::Permanent);
    }
    assert_eq!(site.calls("sbatch"), 0);
}

#[test]
fn while_the_base_directory_cannot_be_used_nothing_is_missing() {
    let site = Site::new();
    site.write("base", "a file where a directory should be");
    let job = Submission { base_dir: site.path("base"), ..with(&site, "a", &["data/none"]) };
    let answer = one(&site, job);
    let SubmitAnswer::StageFailed(failure) = answer else { panic!("{answer:?}") };
    assert!(failure.excerpt.contains("cannot be read"), "{failure:?}");
}

#[test]
fn an_empty_directory_at_the_top_is_a_file_system_that_is_not_mounted() {
    // Only what every machine has can be used here: /srv or /mnt or /media, whichever is empty.
    let Some(empty) = ["/media", "/mnt", "/srv", "/opt"].into_iter().find(|dir| {
        fs::read_dir(dir).is_ok_and(|mut entries| entries.next().is_none())
            && fs::metadata(dir).is_ok_and(|meta| meta.permissions().mode() & 0o005 == 0o005)
    }) else {
        return;
    };
    let site = Site::new();
    let job = Submission { inputs: vec![outside(&format!("{empty}/data/a"))], ..entry(&site, "a") };
    let answer = one(&site, job);
    let SubmitAnswer::StageFailed(failure) = answer else { panic!("{answer:?}") };
    assert!(failure.excerpt.contains("is its file system mounted"), "{failure:?}");
}

use remote::{RemoteCommand, TestOnly, TestVerdict};
use slurm::FailureClass;

use crate::site::Site;

fn question(site: &Site, paths: &[&str]) -> TestOnly {
    TestOnly {
        script: Some("#!/bin/bash\n#SBATCH --job-name=x\ntrue\n".to_owned()),
        paths: paths.iter().map(|name| site.path(name)).collect(),
    }
}

#[test]
fn sbatch_gets_the_script_whole_and_submits_nothing() {
    let site = Site::new();
    // As 22.05 says it.
    site.program(
        "sbatch",
        "printf '%s\\n' \"$1\" >\"$SITE/option\"; cat \"$2\" >\"$SITE/script\"\n\
         echo 'sbatch: Job 1 to start at 2026-11-21T10:51:23 using 1 processors on nodes node01 in partition polar' >&2",
    );
    site.write("a b", "");
    let command = question(&site, &["a b", "absent", "tmp"]);
    let answer = site.run(&command);
    assert_eq!(
        (site.read("option").trim(), site.read("script")),
        ("--test-only", command.script.clone().unwrap())
    );
    assert_eq!((answer.missing, answer.unknown), (vec![site.path("absent")], vec![]));
    let Some(TestVerdict::Accepted(said)) = answer.script else { panic!("{:?}", answer.script) };
    assert!(said.contains("on nodes node01"), "{said}");
}

#[test]
fn a_refusal_comes_in_slurms_own_words_with_its_class() {
    let site = Site::new();
    site.program("sbatch", "echo 'allocation failure: Requested time limit is invalid (missing or exceeds some limit)' >&2; exit 1");
    let Some(TestVerdict::Refused(failure)) = site.run(&question(&site, &[])).script else { panic!() };
    assert_eq!(failure.class, FailureClass::Permanent);
    assert!(failure.excerpt.contains("time limit"), "{}", failure.excerpt);
}

#[test]
fn without_a_script_only_the_paths_are_looked_at() {
    let site = Site::new();
    site.program("sbatch", "touch \"$SITE/asked\"");
    let answer = site.run(&TestOnly { script: None, paths: vec![site.path("absent")] });
    assert_eq!((answer.script, answer.missing.len(), site.exists("asked")), (None, 1, false));
}

#[test]
fn a_question_that_was_cut_asks_nothing() {
    let site = Site::new();
    site.program("sbatch", "touch \"$SITE/asked\"");
    let command = question(&site, &["a"]);
    for length in 0..command.render().stdin.len() {
        let raw = site.raw_cut(&command, length);
        assert_eq!(command.parse(&raw).unwrap_err().class(), FailureClass::NotDone, "{length}");
    }
    assert!(!site.exists("asked"));
}

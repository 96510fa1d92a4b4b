//! Submitting: what can go wrong.

use std::time::Duration;

use remote::{How, ParseError, RemoteCommand, StagedFile, Submission, SubmitAnswer, SubmitBatch};
use slurm::FailureClass;
use test_case::test_case;

use crate::{
    site::Site,
    submit_batch::{entry, one, submit, submitted},
    submit_leftovers::stages,
};

#[test_case("1", "sbatch: error: Batch job submission failed: Unable to contact slurm controller (connect failure)", FailureClass::NotDone; "not done")]
#[test_case("1", "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation", FailureClass::Ambiguous; "ambiguous")]
#[test_case("1", "sbatch: error: Batch job submission failed: Invalid partition name specified", FailureClass::Permanent; "permanent")]
#[test_case("255", "sbatch: unrecognized option '--nope'", FailureClass::Permanent; "wrong options")]
#[test_case("1", "sbatch: error: QOSMaxSubmitJobPerUserLimit", FailureClass::Capacity; "capacity")]
#[test_case("1", "sbatch: error: Batch job submission failed: I/O error writing script/environment to file", FailureClass::Infra; "infra")]
#[test_case("1", "sbatch: error: the moon is full", FailureClass::Ambiguous; "unknown text")]
#[test_case("124", "sbatch: error: Batch job submission failed: Invalid partition name specified", FailureClass::Ambiguous; "killed by its time limit")]
fn a_refusal_has_a_class_and_leaves_the_claim(code: &str, stderr: &str, class: FailureClass) {
    let site = Site::new();
    site.write("sbatch.rc", code);
    site.write("sbatch.err", stderr);
    let SubmitAnswer::Refused { failure, rc } = one(&site, entry(&site, "a")) else { panic!("refused") };
    assert_eq!((failure.class, rc), (class, code.parse().unwrap()));
    assert_eq!(failure.excerpt, stderr);
    assert!(site.exists("state/a/submit.1"));
    assert!(!site.exists("state/a/slurm_id"));
    assert_eq!(stages(&site, "env"), 0);
}

#[test]
fn a_warning_beside_an_id_is_no_refusal() {
    let site = Site::new();
    site.write(
        "sbatch.err",
        "sbatch: error: Slurm temporarily unable to accept job, sleeping and retrying\n",
    );
    assert_eq!(one(&site, entry(&site, "a")), submitted(101, How::New));
}

#[test]
fn a_success_without_an_id_is_ambiguous() {
    let site = Site::new();
    site.write("sbatch.rc", "0");
    let SubmitAnswer::Refused { failure, rc } = one(&site, entry(&site, "a")) else { panic!("refused") };
    assert_eq!((failure.class, rc), (FailureClass::Ambiguous, 0));
}

#[test]
fn a_refused_entry_is_retaken() {
    let site = Site::new();
    site.write("sbatch.rc", "1");
    site.write("sbatch.lost", "");
    assert!(matches!(one(&site, entry(&site, "a")), SubmitAnswer::Refused { .. }));
    site.remove("sbatch.rc");
    assert_eq!(one(&site, entry(&site, "a")), SubmitAnswer::Uncertain, "not without saying so");
    assert_eq!(one(&site, Submission { send: 2, cleared: 1, ..entry(&site, "a") }), submitted(102, How::New));
}

#[test]
fn a_file_that_cannot_be_written_fails_its_entry_only() {
    let site = Site::new();
    site.write("blocked", "a file where a directory should be");
    let mut bad = entry(&site, "a");
    bad.files.insert(0, StagedFile { path: site.path("blocked/x"), mode: 0o600, bytes: vec![7; 100_000] });
    let answers = submit(&site, vec![bad, entry(&site, "b")]);
    let SubmitAnswer::StageFailed(failure) = &answers[0] else { panic!("{answers:?}") };
    assert_eq!(failure.class, FailureClass::NotDone);
    assert!(failure.excerpt.contains("Not a directory"), "{failure}");
    assert_eq!(answers[1], submitted(101, How::New));
}

#[test]
fn a_full_disk_is_the_sites_fault_and_fails_only_what_is_on_it() {
    let site = Site::new();
    site.program(
        "mv",
        "if [ \"$3\" = \"$SITE/full\" ]; then echo \"mv: cannot create: No space left on device\" >&2; exit 1; fi\n\
         exec /usr/bin/mv \"$@\"",
    );
    let mut full = entry(&site, "b");
    full.make_dirs.push(site.path("full"));
    full.files
        .insert(1, StagedFile { path: site.path("full/spec"), mode: 0o640, bytes: vec![b'7'; 100_000] });
    let answers = submit(&site, vec![entry(&site, "a"), full, entry(&site, "c")]);
    // Which of the two gets the first id is a race: they wait for the controller at the same time.
    assert!(matches!(answers[0], SubmitAnswer::Submitted { how: How::New, .. }));
    let SubmitAnswer::StageFailed(failure) = &answers[1] else { panic!("{answers:?}") };
    assert_eq!(failure.class, FailureClass::Infra);
    assert!(matches!(answers[2], SubmitAnswer::Submitted { .. }));
    assert_eq!(site.calls("sbatch"), 2);
    assert_eq!(std::fs::read_dir(site.file("full")).unwrap().count(), 0, "nothing is left beside");
}

#[test]
fn a_question_that_was_cut_anywhere_submits_nothing_that_is_not_whole() {
    let site = Site::new();
    let batch = SubmitBatch::new(vec![entry(&site, "a"), entry(&site, "b")]);
    let whole = batch.render().stdin.len();
    for length in (0..whole).step_by(61) {
        let raw = site.raw_cut(&batch, length);
        assert_eq!(batch.parse(&raw).unwrap_err().class(), FailureClass::NotDone, "{length} of {whole}");
        assert_eq!(stages(&site, "env"), 0, "{length} of {whole}");
    }
    assert_eq!(site.calls("sbatch"), 0);
}

#[test]
fn a_file_that_arrived_short_is_not_put_into_its_place() {
    let site = Site::new();
    site.write("env/a", "old");
    site.program(
        "tar",
        "/usr/bin/tar \"$@\"\nfor f in \"$SITE\"/env/.stage.*/a; do printf A >\"$f\"; done\nexit 2",
    );
    let SubmitAnswer::StageFailed(failure) = one(&site, entry(&site, "a")) else { panic!("stage failed") };
    assert!(failure.excerpt.contains("not all bytes were written"), "{failure}");
    assert_eq!((site.read("env/a").as_str(), stages(&site, "env")), ("old", 0));
}

#[test]
fn what_cannot_be_begun_in_time_is_skipped() {
    let site = Site::new();
    site.program(
        "mkdir",
        "case \" $* \" in *\" $SITE/state/a \"*) sleep 7 ;; esac\nexec /usr/bin/mkdir \"$@\"",
    );
    let batch = SubmitBatch::new(vec![entry(&site, "a"), entry(&site, "b")]);
    let answers = site.run(&SubmitBatch { begin_within: Duration::from_secs(1), ..batch });
    assert_eq!(answers, [SubmitAnswer::Skipped, SubmitAnswer::Skipped]);
    assert!(!site.exists("state/b/submit.1"));
    assert_eq!(site.calls("sbatch"), 0);
}

#[test]
fn no_room_for_temporary_files_means_nothing_was_done() {
    let site = Site::new();
    let batch = SubmitBatch::new(vec![entry(&site, "a")]);
    let raw = site.raw_with(&batch, &[("TMPDIR", "/nonexistent")]);
    let error = batch.parse(&raw).unwrap_err();
    assert!(matches!(error, ParseError::Failed(_)), "{error}");
    assert_eq!(site.calls("sbatch"), 0);
}

#[test]
fn an_answer_that_was_cut_is_ambiguous_wherever_it_was_cut() {
    let site = Site::new();
    let batch = SubmitBatch::new(vec![entry(&site, "a"), entry(&site, "b")]);
    let mut raw = site.raw(&batch);
    while raw.stdout.pop().is_some() {
        assert_eq!(batch.parse(&raw).unwrap_err().class(), FailureClass::Ambiguous);
    }
}

//! Submitting: refusals, an `sbatch` that hangs, and a full disk.

use std::time::Duration;

use remote::{How, ParseError, RemoteCommand, StagedFile, Submission, SubmitAnswer, SubmitBatch};
use slurm::FailureClass;
use test_case::test_case;

use crate::{
    room::{silently, while_full},
    site::{Site, id},
    submit_batch::{entry, one, submit, submitted},
    submit_files::stages,
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

#[test]
fn an_sbatch_that_hangs_is_ended_is_not_taken_for_a_refusal_and_holds_up_only_those_behind_it() {
    let site = Site::new();
    let real = std::fs::read_to_string(site.file("bin/sbatch")).unwrap();
    site.program("sbatch", &format!("case $* in */a.sh) exec sleep 600 ;; esac\n{real}"));
    site.program(
        "timeout",
        "case $* in *' lanes '*) shift 3; set -- -k 1 5 \"$@\" ;; esac\nexec /usr/bin/timeout \"$@\"",
    );
    let answers = submit(&site, ["a", "b", "c", "d", "e", "f"].map(|name| entry(&site, name)).into());
    let SubmitAnswer::Refused { failure, .. } = &answers[0] else { panic!("{answers:?}") };
    assert_eq!(failure.class, FailureClass::Ambiguous, "{failure:?}");
    for beside in [1, 2, 3, 5] {
        assert!(matches!(answers[beside], SubmitAnswer::Submitted { how: How::New, .. }), "{answers:?}");
    }
    assert_eq!(answers[4], SubmitAnswer::Skipped, "it waits in the lane of the one that hangs");
}

#[test]
fn an_sbatch_that_is_deaf_does_not_outlive_its_time() {
    let site = Site::new();
    site.program("sbatch", "trap '' TERM\nfor i in {1..60}; do sleep 1; done\necho >\"$SITE/late\"");
    site.program(
        "timeout",
        "case $* in *' lanes '*) shift 3; set -- -k 1 5 \"$@\" ;; esac\nexec /usr/bin/timeout \"$@\"",
    );
    let answers = submit(&site, vec![entry(&site, "a"), entry(&site, "b")]);
    for answer in answers {
        let SubmitAnswer::Refused { failure, rc: 137 } = &answer else { panic!("{answer:?}") };
        assert_eq!(failure.class, FailureClass::Ambiguous, "{failure:?}");
    }
    let left = std::process::Command::new("pgrep")
        .args(["-f", &site.file("bin/sbatch").display().to_string()])
        .output();
    assert!(left.unwrap().stdout.is_empty(), "one goes on");
}

#[test]
fn what_is_said_not_to_have_begun_does_not_begin_any_more() {
    let site = Site::new();
    // The lanes begin after whoever waits for them has given them up. He knows that the first entry has not begun, and is
    // still busy with the second one, of which he must think that it has.
    site.program(
        "timeout",
        "case $* in *' lanes '*) ;; *) exec /usr/bin/timeout \"$@\" ;; esac\n\
         shift 3\n\
         : >\"${9}/out.1\"; echo something >\"${9}/err.1\"\n\
         (while [ ! -e \"$SITE/busy\" ]; do sleep 0.05; done; \"$@\"; echo >\"$SITE/over\") >&2 &\n\
         exit 137",
    );
    site.program(
        "base64",
        "echo >\"$SITE/busy\"; while [ ! -e \"$SITE/over\" ]; do sleep 0.05; done; exec /usr/bin/base64 \"$@\"",
    );
    let answers = submit(&site, vec![entry(&site, "a"), entry(&site, "b"), entry(&site, "c")]);
    assert_eq!(answers[0], SubmitAnswer::Skipped);
    assert!(matches!(answers[1], SubmitAnswer::Refused { rc: 137, .. }), "{answers:?}");
    assert!(matches!(answers[2], SubmitAnswer::Submitted { .. }), "{answers:?}");
    assert_eq!(site.calls("sbatch"), 1);
}

/// The lanes go on while what they write to is taken away, file by file.
#[test]
fn what_is_said_not_to_have_begun_does_not_begin_while_its_traces_are_removed() {
    let site = Site::new();
    site.program(
        "timeout",
        "case $* in *' lanes '*) ;; *) exec /usr/bin/timeout \"$@\" ;; esac\n\
         shift 3\n\
         (while [ ! -e \"$SITE/removing\" ]; do sleep 0.05; done; \"$@\"; echo >\"$SITE/over\") >&2 &\n\
         exit 137",
    );
    site.program(
        "rm",
        "case $* in *slurm-call*) for path; do if [ -d \"$path\" ]; then find \"$path\" -name 'out.*' -delete; fi; done\n\
         echo >\"$SITE/removing\"\n\
         while [ ! -e \"$SITE/over\" ]; do sleep 0.05; done ;; esac\nexec /bin/rm \"$@\"",
    );
    let answers = submit(&site, vec![entry(&site, "a"), entry(&site, "b")]);
    assert_eq!(answers, [SubmitAnswer::Skipped, SubmitAnswer::Skipped]);
    assert_eq!(site.calls("sbatch"), 0);
}

#[test]
fn a_function_of_the_site_is_not_taken_for_sbatch() {
    let site = Site::new();
    let command = remote::SubmitBatch::new(vec![entry(&site, "a")]);
    let function = [("BASH_FUNC_sbatch%%", "() { echo 'Welcome to the cluster'; }")];
    let raw = site.raw_with(&command, &function);
    let answers = remote::RemoteCommand::parse(&command, &raw).unwrap();
    assert!(matches!(answers[0], SubmitAnswer::Submitted { how: How::New, .. }), "{answers:?}");
}

/// There is none as soon as files are taken out of the archive.
fn full_while_staging(site: &Site) {
    site.program("tar", "cat /dev/zero >\"$TMPDIR/filling\" 2>/dev/null\nexec /usr/bin/tar \"$@\"");
}

/// Whether Slurm has the job, or may have it.
fn may_be_there(answer: &SubmitAnswer) -> bool {
    match answer {
        SubmitAnswer::Submitted { .. } | SubmitAnswer::Uncertain => true,
        SubmitAnswer::Refused { failure, .. } => failure.class == FailureClass::Ambiguous,
        _ => false,
    }
}

/// What sbatch says while it tries again would be a reason that nothing was submitted, had it been its last word.
#[test]
fn a_submission_whose_end_cannot_be_noted_is_not_taken_for_a_refusal() {
    for room in [8, 64] {
        let site = Site::new();
        let real = std::fs::read_to_string(site.file("bin/sbatch")).unwrap();
        let retries = "Slurm temporarily unable to accept job, sleeping and retrying";
        site.program(
            "sbatch",
            &format!(
                "echo 'sbatch: error: {retries}' >&2\ncat /dev/zero >\"$TMPDIR/filling\" 2>/dev/null\n{{\n{real}\n}} 2>/dev/null\nexit 0"
            ),
        );
        let batch = SubmitBatch::new(["a", "b", "c"].map(|key| entry(&site, key)).to_vec());
        let Ok(answers) = remote::RemoteCommand::parse(&batch, &site.raw_in_room(&batch, room)) else {
            continue;
        };
        assert!(answers.iter().all(may_be_there), "{room} KiB: {answers:?}");
    }
}

/// A queue of which nothing could be kept is not an empty one.
#[test]
fn what_the_queue_has_is_not_submitted_again_for_want_of_room() {
    let site = Site::new();
    site.write("queue", "77|RUNNING|None|n1|1|2|3|polar|a\n");
    silently(&site);
    let again = Submission { send: 2, cleared: 1, ..entry(&site, "a") };
    while_full(&site, &SubmitBatch::new(vec![again]), &[" squeue "], |answers| {
        !matches!(answers[0], SubmitAnswer::Submitted { how: How::New, .. })
    });
    assert_eq!(site.calls("sbatch"), 0);
}

#[test]
fn who_is_answered_already_gets_no_files() {
    let site = Site::new();
    full_while_staging(&site);
    site.write("state/a/slurm_id", "7\n");
    let file = |path| StagedFile { path: site.path(path), mode: 0o600, bytes: b"secret".to_vec() };
    let (mut known, mut missing) = (entry(&site, "a"), entry(&site, "b"));
    known.files.push(file("state/a/command.sh"));
    missing.files.push(file("other/b.secret"));
    missing.make_dirs.push(site.path("other"));
    missing.inputs.push(site.path("not/there"));
    let batch = SubmitBatch::new(vec![known, missing, entry(&site, "c")]);
    let raw = site.raw_in_room(&batch, 64);
    let answers = remote::RemoteCommand::parse(&batch, &raw).unwrap();
    assert_eq!(answers[0], SubmitAnswer::Submitted { id: id(7), how: How::Replay, extra: vec![] });
    assert!(matches!(answers[1], SubmitAnswer::MissingInputs { .. }), "{answers:?}");
    for path in ["state/a/command.sh", "env/a", "sbatch/a.sh", "env/b", "other", "sbatch/b.sh"] {
        assert!(!site.exists(path), "{path}");
    }
    assert_eq!((stages(&site, "env"), stages(&site, "sbatch")), (0, 0));
}

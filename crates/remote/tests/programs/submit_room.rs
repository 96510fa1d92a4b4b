//! Submitting where temporary files have no room.

use remote::{How, StagedFile, Submission, SubmitAnswer, SubmitBatch};
use slurm::FailureClass;

use crate::{
    room::{silently, while_full},
    site::{Site, id},
    submit_batch::entry,
    submit_leftovers::stages,
};

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

//! Submitting where temporary files have no room.

use slurm::{How, StagedFile, SubmitAnswer, SubmitBatch};

use crate::{
    site::{Site, id},
    submit_batch::entry,
    submit_leftovers::stages,
};

/// There is none as soon as files are taken out of the archive.
fn full_while_staging(site: &Site) {
    site.program("tar", "cat /dev/zero >\"$TMPDIR/filling\" 2>/dev/null\nexec /usr/bin/tar \"$@\"");
}

/// None of them can be taken for one that is complete.
#[test]
fn what_is_submitted_is_all_there() {
    for room in [4, 64] {
        let site = Site::new();
        full_while_staging(&site);
        let keys = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];
        let batch = SubmitBatch::new(keys.map(|key| entry(&site, key)).to_vec());
        // The script of an attempt before: it must not be taken for this one's.
        for key in keys {
            site.write(&format!("sbatch/{key}.sh"), "of an earlier attempt");
        }
        let raw = site.raw_in_room(&batch, room);
        let Ok(answers) = slurm::RemoteCommand::parse(&batch, &raw) else { continue };
        for (key, answer) in keys.iter().zip(&answers) {
            let is_new = site.read(&format!("sbatch/{key}.sh")).contains(&format!("--job-name={key}"));
            let claims_to_be =
                matches!(answer, SubmitAnswer::Submitted { .. } | SubmitAnswer::Refused { .. });
            assert!(is_new || !claims_to_be, "{room} KiB, {key}: {answer:?}");
        }
    }
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
    let answers = slurm::RemoteCommand::parse(&batch, &raw).unwrap();
    assert_eq!(answers[0], SubmitAnswer::Submitted { id: id(7), how: How::Replay, extra: vec![] });
    assert!(matches!(answers[1], SubmitAnswer::MissingInputs { .. }), "{answers:?}");
    for path in ["state/a/command.sh", "env/a", "sbatch/a.sh", "env/b", "other", "sbatch/b.sh"] {
        assert!(!site.exists(path), "{path}");
    }
    assert_eq!((stages(&site, "env"), stages(&site, "sbatch")), (0, 0));
}

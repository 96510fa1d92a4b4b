//! Submitting: the files and directories of an entry.

use std::{fs, time::Duration};

use remote::{How, StagedFile, Submission, SubmitAnswer, SubmitBatch};

use crate::{
    site::{Site, mode},
    submit_batch::{entry, one, submit, submitted},
};

/// An entry with one file more, and its parent.
fn with_file(site: &Site, key: &str, parent: &str, name: &str, text: &str) -> Submission {
    let mut entry = entry(site, key);
    entry.make_dirs.push(site.path(parent));
    let path = site.path(&format!("{parent}/{name}"));
    entry.files.push(StagedFile { path, mode: 0o640, bytes: text.as_bytes().to_vec() });
    entry
}

#[test]
fn a_path_is_meant_as_it_is_written() {
    let site = Site::new();
    let long = format!("{}/{}", "d".repeat(120), "e".repeat(120));
    for (key, parent, name) in [
        ("a", "state/a/.stage", "x"),
        ("b", "state/b/-C /", "*"),
        ("c", "-x/[a-z]?", "a b'\"$(touch oops)"),
        ("d", long.as_str(), "\u{e9}~1"),
        ("e", "x/.stage/y", ".stage"),
    ] {
        let entry = with_file(&site, key, parent, name, "text");
        assert!(
            matches!(one(&site, entry), SubmitAnswer::Submitted { how: How::New, .. }),
            "{parent}/{name}"
        );
        let path = format!("{parent}/{name}");
        assert_eq!((site.read(&path).as_str(), mode(&site.file(&path))), ("text", 0o640), "{path}");
        let beside = std::fs::read_dir(site.file(parent)).unwrap().count();
        assert_eq!(beside, 1, "{path}: nothing is left beside it");
    }
}

#[test]
fn a_link_in_its_own_directory_is_replaced_and_not_followed() {
    let site = Site::new();
    site.write("elsewhere", "precious");
    site.write("state/a/bin/x", "");
    std::os::unix::fs::symlink(site.file("elsewhere"), site.file("state/a/bin/tool")).unwrap();
    assert_eq!(one(&site, with_file(&site, "a", "state/a/bin", "tool", "text")), submitted(101, How::New));
    assert_eq!(
        (site.read("elsewhere").as_str(), site.read("state/a/bin/tool").as_str()),
        ("precious", "text")
    );
    assert!(!std::fs::symlink_metadata(site.file("state/a/bin/tool")).unwrap().is_symlink());
}

#[test]
fn what_tar_has_not_written_is_missed_whatever_it_returns() {
    let site = Site::new();
    site.program("tar", "/usr/bin/tar \"$@\"\nrm -f \"$SITE\"/env/.stage.*/b\nexit 0");
    let answers = submit(&site, vec![entry(&site, "a"), entry(&site, "b")]);
    assert_eq!(answers[0], submitted(101, How::New));
    assert!(matches!(answers[1], SubmitAnswer::StageFailed(_)), "{answers:?}");
}

#[test]
fn what_stands_in_the_way_of_one_entry_is_no_other_ones() {
    let site = Site::new();
    // A file where a directory is to be, and a directory where a file is to be.
    site.write("state/a/bin", "");
    site.write("state/b/bin/tool/x", "");
    let answers = submit(
        &site,
        ["a", "b", "c"]
            .map(|key| with_file(&site, key, &format!("state/{key}/bin"), "tool", "text"))
            .to_vec(),
    );
    for at in [0, 1] {
        let SubmitAnswer::StageFailed(failure) = &answers[at] else { panic!("{answers:?}") };
        assert!(failure.excerpt.contains("bin"), "{failure}");
    }
    assert!(matches!(answers[2], SubmitAnswer::Submitted { how: How::New, .. }), "{answers:?}");
    assert_eq!(site.calls("sbatch"), 1);
}

#[test]
fn options_of_somebody_else_and_no_tar_at_all() {
    let site = Site::new();
    let raw = site
        .raw_with(&remote::SubmitBatch::new(vec![entry(&site, "a")]), &[("TAR_OPTIONS", "--no-such-option")]);
    assert!(String::from_utf8_lossy(&raw.stdout).contains("OK 0 101 new"), "{raw:?}");
    site.program("tar", "echo 'tar: not today' >&2; cat >/dev/null; exit 2");
    let SubmitAnswer::StageFailed(failure) = one(&site, entry(&site, "b")) else { panic!("stage failed") };
    assert!(failure.excerpt.contains("tar: not today"), "{failure}");
    assert_eq!(site.calls("sbatch"), 1);
}

#[test]
fn an_archive_without_an_end_is_not_used() {
    let site = Site::new();
    // Only so much of what was sent arrives, and then what follows it.
    site.program("head", "/usr/bin/head \"$@\" | /usr/bin/head -c 700");
    site.program("tar", "/usr/bin/tar \"$@\"; code=$?; cat >/dev/null; exit \"$code\"");
    let SubmitAnswer::StageFailed(failure) = one(&site, entry(&site, "a")) else { panic!("stage failed") };
    assert!(failure.excerpt.contains("not all bytes were written"), "{failure}");
    assert_eq!(site.calls("sbatch"), 0);
}

#[test]
fn what_an_earlier_send_has_left_is_not_taken_for_what_arrives() {
    let site = Site::new();
    // As large as what is sent.
    site.write("state/a/bin/tool", "TEXT");
    site.program("tar", "echo 'tar: not today' >&2; cat >/dev/null; exit 2");
    let entry = with_file(&site, "a", "state/a/bin", "tool", "text");
    let only = Submission { files: entry.files[3..].to_vec(), ..entry };
    let SubmitAnswer::StageFailed(failure) = one(&site, only) else { panic!("stage failed") };
    assert!(failure.excerpt.contains("tar: not today"), "{failure}");
    assert_eq!(site.calls("sbatch"), 0);
}

/// An entry with a program below its state directory.
fn with_its_own(site: &Site, key: &str) -> Submission {
    let mut entry = entry(site, key);
    let path = site.path(&format!("state/{key}/bin/tool"));
    entry.make_dirs.push(site.path(&format!("state/{key}/bin")));
    entry.files.push(StagedFile { path, mode: 0o755, bytes: b"#!/bin/sh\n".to_vec() });
    entry
}

#[test]
fn what_is_new_there_costs_no_process_for_each_entry() {
    let site = Site::new();
    site.program("mv", "echo \"$*\" >>\"$SITE/mv.calls\"\nexec /usr/bin/mv \"$@\"");
    let answers = submit(&site, vec![with_its_own(&site, "a"), with_its_own(&site, "b")]);
    assert!(answers.iter().all(|answer| matches!(answer, SubmitAnswer::Submitted { .. })), "{answers:?}");
    for key in ["a", "b"] {
        let tool = format!("state/{key}/bin/tool");
        assert_eq!((site.read(&tool).as_str(), mode(&site.file(&tool))), ("#!/bin/sh\n", 0o755));
    }
    assert_eq!(site.calls("mv"), 3, "one for env, one for sbatch, one for results");
}

#[test]
fn what_an_earlier_send_has_left_there_is_replaced() {
    let site = Site::new();
    site.write("state/a/submit.1", "");
    site.write("state/a/bin/tool", "#!/b");
    // Whoever has it open goes on with what it was.
    std::fs::hard_link(site.file("state/a/bin/tool"), site.file("opened")).unwrap();
    let again = Submission { send: 2, cleared: 1, ..with_its_own(&site, "a") };
    assert_eq!(one(&site, again), submitted(101, How::New));
    assert_eq!(site.read("state/a/bin/tool"), "#!/bin/sh\n");
    assert_eq!(mode(&site.file("state/a/bin/tool")), 0o755);
    assert_eq!(site.read("opened"), "#!/b");
    assert_eq!(stages(&site, "state/a/bin"), 0);
}

#[test]
fn nothing_is_submitted_while_something_there_is_not_whole() {
    let site = Site::new();
    site.program("tar", "/usr/bin/tar \"$@\"\nprintf '#!/' >\"$SITE/state/a/bin/tool\"\nexit 2");
    let SubmitAnswer::StageFailed(failure) = one(&site, with_its_own(&site, "a")) else {
        panic!("stage failed")
    };
    assert!(failure.excerpt.contains("bin/tool: not all bytes were written"), "{failure}");
    assert_eq!(site.calls("sbatch"), 0);
}

/// Three entries, of which so many ask for a directory that cannot be made; which of them were submitted.
fn submitted_of(wanted_by: usize) -> Vec<bool> {
    let site = Site::new();
    site.write("taken", "");
    let mut entries = ["a", "b", "c"].map(|key| entry(&site, key));
    for entry in &mut entries[..wanted_by] {
        entry.make_dirs.push(site.path("taken/dir"));
    }
    let answers = submit(&site, entries.to_vec());
    let is_submitted = |answer: &SubmitAnswer| match answer {
        SubmitAnswer::Submitted { .. } => true,
        SubmitAnswer::StageFailed(failure) if failure.excerpt.contains("taken") => false,
        other => panic!("{other:?}"),
    };
    answers.iter().map(is_submitted).collect()
}

#[test]
fn one_that_cannot_be_made_is_lacked_by_those_who_ask_for_it() {
    assert_eq!(submitted_of(2), [false, false, true]);
    assert_eq!(submitted_of(3), [false, false, false], "all of them");
}

#[test]
fn those_of_an_entry_that_is_answered_already_are_not_made() {
    let site = Site::new();
    let ask = |key, own: &str| {
        let mut entry = entry(&site, key);
        entry.make_dirs.push(site.path(own));
        entry
    };
    let missing = Submission { inputs: vec![site.path("not/there")], ..ask("a", "other/a") };
    submit(&site, vec![missing, ask("b", "other/b")]);
    assert!(site.exists("other/b") && !site.exists("other/a"));
}

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
    let results_dir = site.path("results/a");
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

/// How many directories for unfinished files there are in a directory; none if it does not exist.
pub(crate) fn stages(site: &Site, dir: &str) -> usize {
    let Ok(entries) = fs::read_dir(site.file(dir)) else { return 0 };
    entries
        .filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().starts_with(".stage."))
        .count()
}

fn abandoned(site: &Site, dir: &str, hours: u64) {
    site.write(&format!("{dir}/env"), "SECRET=1");
    let file = fs::File::open(site.file(dir)).unwrap();
    let now = file.metadata().unwrap().modified().unwrap();
    file.set_modified(now - Duration::from_hours(hours)).unwrap();
}

#[test]
fn what_was_abandoned_a_day_ago_is_removed_from_every_directory_of_the_batch() {
    let site = Site::new();
    for dir in ["env", "sbatch", "elsewhere"] {
        abandoned(&site, &format!("{dir}/.stage.old"), 25);
        abandoned(&site, &format!("{dir}/.stage.young"), 23);
        abandoned(&site, &format!("{dir}/not.stage.old"), 25);
    }
    assert_eq!(one(&site, entry(&site, "a")), submitted(101, How::New));
    for dir in ["env", "sbatch"] {
        assert!(!site.exists(&format!("{dir}/.stage.old")));
        assert!(site.exists(&format!("{dir}/.stage.young/env")), "it may be another call's");
        assert!(site.exists(&format!("{dir}/not.stage.old/env")));
    }
    assert!(site.exists("elsewhere/.stage.old/env"));
}

#[test]
fn a_program_that_is_told_to_end_takes_its_unfinished_files_away() {
    let site = Site::new();
    site.program(
        "tar",
        "/usr/bin/tar \"$@\"\n\
         ls -d \"$SITE\"/env/.stage.*/a >\"$SITE/seen\"\n\
         read -r _ _ _ main _ <\"/proc/$PPID/stat\"; kill -TERM \"$main\"",
    );
    let raw = site.raw(&SubmitBatch::new(vec![entry(&site, "a")]));
    assert_ne!(raw.exit_code, 0);
    assert!(site.read("seen").contains(".stage."), "there was something to take away");
    assert_eq!((stages(&site, "env"), stages(&site, "sbatch"), site.calls("sbatch")), (0, 0, 0));
}

#[test]
fn a_batch_whose_caller_is_gone_is_submitted_to_its_end() {
    let site = Site::new();
    let keys = ["a", "b", "c", "d", "e", "f"];
    site.unheard(&SubmitBatch::new(keys.map(|key| entry(&site, key)).to_vec()));
    let kept = keys.map(|key| site.exists(&format!("state/{key}/slurm_id")));
    assert_eq!((kept, site.calls("sbatch")), ([true; 6], 6));
}

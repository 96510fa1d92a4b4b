//! Submitting: the archive in which files arrive.

use remote::{How, StagedFile, Submission, SubmitAnswer};

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

//! Submitting: files in the directory that is the attempt's alone.

use remote::{How, StagedFile, Submission, SubmitAnswer};

use crate::{
    site::{Site, mode},
    submit_batch::{entry, one, submit, submitted},
    submit_leftovers::stages,
};

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

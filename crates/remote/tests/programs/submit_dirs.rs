//! Submitting: directories that are to be there, whether or not a file comes into them.

use remote::{Submission, SubmitAnswer};

use crate::{
    site::Site,
    submit_batch::{entry, submit},
};

/// Three entries, of which so many ask for a directory that cannot be made; which of them were submitted.
fn submitted(wanted_by: usize) -> Vec<bool> {
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
    assert_eq!(submitted(2), [false, false, true]);
    assert_eq!(submitted(3), [false, false, false], "all of them");
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

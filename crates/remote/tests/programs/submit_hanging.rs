//! Submitting through an sbatch that gives no answer.

use remote::{How, SubmitAnswer};
use slurm::FailureClass;

use crate::{
    site::Site,
    submit_batch::{entry, submit},
};

#[test]
fn an_sbatch_that_hangs_is_ended_is_not_taken_for_a_refusal_and_holds_up_only_those_behind_it() {
    let site = Site::new();
    let real = std::fs::read_to_string(site.file("bin/sbatch")).unwrap();
    site.program("sbatch", &format!("case $* in */a.sh) exec sleep 600 ;; esac\n{real}"));
    site.program(
        "timeout",
        "case $* in *' lanes '*) shift 3; set -- -k 1 1 \"$@\" ;; esac\nexec /usr/bin/timeout \"$@\"",
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
    site.program(
        "sbatch",
        "trap '' TERM\nfor i in 1 2 3 4 5 6 7 8 9; do sleep 1; done\necho >\"$SITE/late\"",
    );
    site.program(
        "timeout",
        "case $* in *' lanes '*) shift 3; set -- -k 1 1 \"$@\" ;; esac\nexec /usr/bin/timeout \"$@\"",
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

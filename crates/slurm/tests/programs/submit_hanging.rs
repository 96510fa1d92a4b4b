//! Submitting through an sbatch that gives no answer.

use slurm::{FailureClass, How, SubmitAnswer};

use crate::{
    site::Site,
    submit_batch::{entry, submit},
};

#[test]
fn an_sbatch_that_hangs_is_ended_is_not_taken_for_a_refusal_and_holds_up_no_other() {
    let site = Site::new();
    let real = std::fs::read_to_string(site.file("bin/sbatch")).unwrap();
    site.program("sbatch", &format!("case $* in */a.sh) exec sleep 600 ;; esac\n{real}"));
    site.program(
        "timeout",
        "case $* in *' sbatch '*) shift 3; set -- -k 1 1 \"$@\" ;; esac\nexec /usr/bin/timeout \"$@\"",
    );
    let answers = submit(&site, vec![entry(&site, "a"), entry(&site, "b")]);
    let SubmitAnswer::Refused { failure, .. } = &answers[0] else { panic!("{answers:?}") };
    assert_eq!(failure.class, FailureClass::Ambiguous, "{failure:?}");
    assert!(matches!(answers[1], SubmitAnswer::Submitted { how: How::New, .. }), "{answers:?}");
}

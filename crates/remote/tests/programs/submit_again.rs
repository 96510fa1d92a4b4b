//! Submitting: many that were sent before.

use remote::{How, Submission, SubmitAnswer};

use crate::{
    site::Site,
    submit_batch::{entry, submit, submitted},
};

fn again(site: &Site, key: &str) -> Submission {
    Submission { send: 2, cleared: 1, ..entry(site, key) }
}

/// On a cluster with a long queue each question takes so long that a batch of them would never come to its first sbatch.
#[test]
fn all_of_a_batch_are_looked_for_with_one_question() {
    let site = Site::new();
    site.write(
        "queue",
        "77|RUNNING|None|n1|1|2|3|polar|b\n78|PENDING|None||1|2|3|polar|b\n79|RUNNING|None|n1|1|2|3|polar|other\n",
    );
    site.link("80", "state/c/run");
    let answers = submit(&site, ["a", "b", "c", "d"].map(|key| again(&site, key)).to_vec());
    let new = |answer: &SubmitAnswer| matches!(answer, SubmitAnswer::Submitted { how: How::New, .. });
    assert!(new(&answers[0]) && new(&answers[3]), "{answers:?}");
    let SubmitAnswer::Submitted { id, how: How::Adopted, extra } = &answers[1] else { panic!("{answers:?}") };
    assert_eq!((id.get(), extra.iter().map(|id| id.get()).collect()), (77, vec![78]));
    assert_eq!(answers[2], submitted(80, How::Adopted));
    assert_eq!((site.calls("squeue"), site.calls("sbatch")), (1, 2));
}

#[test]
fn while_the_queue_does_not_answer_it_is_asked_once_and_nothing_is_begun() {
    let site = Site::new();
    site.write("squeue.rc", "1");
    let answers = submit(&site, ["a", "b", "c"].map(|key| again(&site, key)).to_vec());
    assert!(answers.iter().all(|answer| matches!(answer, SubmitAnswer::StageFailed(_))), "{answers:?}");
    assert_eq!((site.calls("squeue"), site.calls("sbatch")), (1, 0));
}

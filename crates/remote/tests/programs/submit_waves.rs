//! Submitting: many entries, of which the first are submitted while the others are staged.

use remote::{RemoteCommand as _, Submission, SubmitAnswer, SubmitBatch};
use slurm::FailureClass;

use crate::{
    site::Site,
    submit_batch::{entry, submit},
};

const KEYS: [&str; 10] = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];
/// As many of ten as are submitted first.
const FIRST: usize = 3;

fn entries(site: &Site) -> Vec<Submission> {
    KEYS.map(|key| entry(site, key)).to_vec()
}

fn is_submitted(answer: &SubmitAnswer) -> bool {
    matches!(answer, SubmitAnswer::Submitted { .. })
}

#[test]
fn the_others_are_staged_while_the_first_are_submitted() {
    let site = Site::new();
    let plain = site.read("bin/sbatch");
    let (shebang, rest) = plain.split_once('\n').unwrap();
    // It waits for what comes after it, and fails if that waits for it.
    let waits = "for i in {1..100}; do if [ -e \"$SITE/sbatch/j.sh\" ]; then break; fi; sleep 0.1; done\n\
                 [ -e \"$SITE/sbatch/j.sh\" ] || exit 1";
    site.write("bin/sbatch", format!("{shebang}\n{waits}\n{rest}"));
    let answers = submit(&site, entries(&site));
    assert!(answers.iter().all(is_submitted), "{answers:?}");
    assert_eq!(site.calls("sbatch"), KEYS.len());
    for key in KEYS {
        assert!(site.read(&format!("sbatch/{key}.sh")).contains(&format!("--job-name={key}")));
    }
}

#[test]
fn what_did_not_arrive_keeps_back_nothing_that_did() {
    let site = Site::new();
    let batch = SubmitBatch::new(entries(&site));
    let whole = batch.render().stdin.len();
    let answers = batch.parse(&site.raw_cut(&batch, whole - 20)).unwrap();
    assert!(answers[..FIRST].iter().all(is_submitted), "{answers:?}");
    for answer in &answers[FIRST..] {
        let SubmitAnswer::StageFailed(failure) = answer else { panic!("{answers:?}") };
        assert_eq!(failure.class, FailureClass::NotDone);
        assert!(failure.excerpt.contains("did not arrive whole"), "{failure}");
    }
    assert_eq!(site.calls("sbatch"), FIRST);
}

#[test]
fn an_entry_that_cannot_be_staged_keeps_back_no_wave() {
    let site = Site::new();
    // Of the first wave one, and of the second the first and the last.
    for key in ["b", "d", "j"] {
        site.write(&format!("sbatch/{key}.sh/in/the/way"), "");
    }
    let answers = submit(&site, entries(&site));
    for (key, answer) in KEYS.iter().zip(&answers) {
        assert_eq!(is_submitted(answer), !["b", "d", "j"].contains(key), "{key}: {answer:?}");
    }
}

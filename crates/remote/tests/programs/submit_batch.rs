//! Submitting: once, and only once, in two waves.

use remote::{How, RemoteCommand as _, StagedFile, Submission, SubmitAnswer, SubmitBatch};
use slurm::FailureClass;

use crate::site::{self, Site, id, mode};

pub(crate) fn entry(site: &Site, key: &str) -> Submission {
    let script = format!("#!/bin/bash\n#SBATCH --job-name={key}\nexit 0\n");
    Submission {
        key: site::key(key),
        state_dir: site.path(&format!("state/{key}")),
        files: vec![
            StagedFile { path: site.path(&format!("env/{key}")), mode: 0o600, bytes: b"A='\0\n".to_vec() },
            StagedFile {
                path: site.path(&format!("sbatch/{key}.sh")),
                mode: 0o750,
                bytes: script.into_bytes(),
            },
            StagedFile { path: site.path(&format!("env/{key}.empty")), mode: 0o644, bytes: vec![] },
        ],
        script_path: site.path(&format!("sbatch/{key}.sh")),
        make_dirs: vec![site.path("env"), site.path("sbatch"), site.path("results")],
        results_dir: site.path(&format!("results/{key}")),
        inputs: vec![],
        base_dir: site.path(""),
        send: 1,
        cleared: 0,
    }
}

pub(crate) fn submit(site: &Site, entries: Vec<Submission>) -> Vec<SubmitAnswer> {
    site.run(&SubmitBatch::new(entries))
}

pub(crate) fn one(site: &Site, entry: Submission) -> SubmitAnswer {
    submit(site, vec![entry]).remove(0)
}

pub(crate) fn submitted(number: u32, how: How) -> SubmitAnswer {
    SubmitAnswer::Submitted { id: id(number), how, extra: vec![] }
}

#[test]
fn an_empty_batch_is_answered() {
    assert_eq!(submit(&Site::new(), vec![]), []);
}

#[test]
fn files_are_staged_with_their_modes_and_nothing_is_left_beside_them() {
    let site = Site::new();
    assert_eq!(one(&site, entry(&site, "a")), submitted(101, How::New));
    assert_eq!(site.read("env/a"), "A='\0\n");
    assert_eq!(site.read("env/a.empty"), "");
    assert_eq!(mode(&site.file("env/a")), 0o600);
    assert_eq!(mode(&site.file("env/a.empty")), 0o644);
    assert_eq!(mode(&site.file("sbatch/a.sh")), 0o750);
    assert_eq!(std::fs::read_dir(site.file("env")).unwrap().count(), 2);
    assert!(site.exists("results/a"));
    assert_eq!(site.read("state/a/slurm_id"), "101\n");
    let call = site.read("sbatch.calls");
    assert_eq!(call, format!("--parsable {}\n", site.path("sbatch/a.sh")));
}

#[test]
fn every_byte_of_a_file_arrives() {
    let site = Site::new();
    let mut bytes: Vec<u8> = (0..=255).cycle().take(20_000).collect();
    bytes.extend_from_slice(b"\\c \\n \\0 \x007\n\n");
    let mut all = entry(&site, "a");
    all.files[0].bytes.clone_from(&bytes);
    assert_eq!(one(&site, all), submitted(101, How::New));
    assert_eq!(std::fs::read(site.file("env/a")).unwrap(), bytes);
}

#[test]
fn a_second_submission_answers_the_same_id_and_submits_nothing() {
    let site = Site::new();
    one(&site, entry(&site, "a"));
    let mut again = entry(&site, "a");
    again.files[0].bytes = b"other".to_vec();
    assert_eq!(one(&site, again), submitted(101, How::Replay));
    assert_eq!(site.calls("sbatch"), 1);
    assert_eq!(site.read("env/a"), "A='\0\n", "a replay touches no file");
}

#[test]
fn a_batch_is_answered_entry_by_entry() {
    let site = Site::new();
    one(&site, entry(&site, "b"));
    let keys = ["a", "b", "c", "d", "e", "f", "g"];
    let answers = submit(&site, keys.iter().map(|key| entry(&site, key)).collect());
    assert_eq!(answers[1], submitted(101, How::Replay));
    assert_eq!(site.calls("sbatch"), 7);
    for (key, answer) in keys.iter().zip(&answers) {
        let SubmitAnswer::Submitted { id, .. } = answer else { panic!("{answer:?}") };
        assert_eq!(site.read(&format!("state/{key}/slurm_id")), format!("{id}\n"));
    }
}

#[test]
fn a_claim_without_a_job_is_uncertain_and_nothing_is_submitted() {
    let site = Site::new();
    site.write("state/a/submit.1", "");
    assert_eq!(submit(&site, vec![entry(&site, "a"), entry(&site, "b")])[0], SubmitAnswer::Uncertain);
    assert_eq!(site.calls("sbatch"), 1, "only b");
    assert!(!site.exists("env/a"), "nothing was staged");
}

#[test]
fn a_send_submits_what_a_cleared_one_has_left_behind() {
    let site = Site::new();
    site.write("state/a/submit.1", "");
    let second = || Submission { send: 2, cleared: 1, ..entry(&site, "a") };
    assert_eq!(one(&site, second()), submitted(101, How::New));
    assert_eq!(one(&site, second()), submitted(101, How::Replay));
    assert_eq!(site.calls("sbatch"), 1);
}

#[test]
fn a_send_after_a_cleared_one_adopts_a_job_that_is_in_the_queue_after_all() {
    let site = Site::new();
    site.write("queue", "77|RUNNING|None|n1|1|2|3|polar|a\n");
    let second = Submission { send: 2, cleared: 1, ..entry(&site, "a") };
    assert_eq!(one(&site, second), submitted(77, How::Adopted));
    assert_eq!(site.calls("sbatch"), 0);
    assert_eq!(site.read("state/a/slurm_id"), "77\n");
}

#[test]
fn a_send_after_a_cleared_one_begins_nothing_while_the_queue_does_not_answer() {
    let site = Site::new();
    let second = || Submission { send: 2, cleared: 1, ..entry(&site, "a") };
    let begun = |answer| !matches!(answer, SubmitAnswer::StageFailed(_));
    site.write("squeue.rc", "1");
    assert!(!begun(one(&site, second())));
    site.remove("squeue.rc");
    site.write("squeue.err", "slurm_load_jobs error: Unable to contact slurm controller (connect failure)\n");
    let answer = one(&site, second());
    assert!(answer_says(&answer, "connect failure"), "rc 0 with an error: {answer:?}");
    assert!(!begun(answer));
    assert!(!site.exists("state/a/submit.2"), "the next one finds no trace of it");
    assert_eq!(site.calls("sbatch"), 0);
}

#[test]
fn a_send_that_comes_after_a_later_one_submits_nothing() {
    let site = Site::new();
    site.write("state/a/submit.2", "");
    assert_eq!(one(&site, entry(&site, "a")), SubmitAnswer::Uncertain);
    assert!(!site.exists("env/a"), "nothing was staged");
    assert_eq!(site.calls("sbatch"), 0);
}

#[test]
fn a_send_that_is_overtaken_before_it_stages_leaves_nothing_behind() {
    for claim in [": >\"$SITE/state/a/submit.2\"", "ln -s no-owner \"$SITE/state/a/submit.1\""] {
        let site = Site::new();
        site.program("mkdir", &format!("/bin/mkdir \"$@\"; [ -e \"$SITE/state/a\" ] && {claim}"));
        assert_eq!(one(&site, entry(&site, "a")), SubmitAnswer::Uncertain, "{claim}");
        assert!(site.exists("state/a"), "it had come that far");
        assert!(!site.exists("env/a"), "no file with secrets comes after whoever looked for one");
        assert_eq!(site.calls("sbatch"), 0);
    }
}

#[test]
fn whoever_stages_has_claimed() {
    let site = Site::new();
    site.program(
        "mv",
        "if [ -e \"$SITE/state/a/submit.1\" ]; then : >\"$SITE/claimed\"; fi; exec /bin/mv \"$@\"",
    );
    assert_eq!(one(&site, entry(&site, "a")), submitted(101, How::New));
    assert!(site.exists("claimed"));
}

fn answer_says(answer: &SubmitAnswer, text: &str) -> bool {
    matches!(answer, SubmitAnswer::StageFailed(failure) if failure.excerpt.contains(text))
}

#[test]
fn a_send_waits_for_what_becomes_of_one_before_it() {
    let site = Site::new();
    site.write("state/a/submit.1", "");
    let second = || Submission { send: 2, ..entry(&site, "a") };
    assert_eq!(one(&site, second()), SubmitAnswer::Uncertain);
    site.write("queue", "77|RUNNING|None|n1|1|2|3|polar|a\n");
    assert_eq!(one(&site, second()), submitted(77, How::Adopted));
    assert_eq!(site.calls("sbatch"), 0);
}

#[test]
fn a_warning_of_the_site_is_no_silence_of_the_queue() {
    let site = Site::new();
    site.write("squeue.err", "squeue: This cluster will be down on Friday.\n");
    site.write("state/a/submit.1", "");
    let second = || Submission { send: 2, cleared: 1, ..entry(&site, "a") };
    assert_eq!(one(&site, second()), submitted(101, How::New));
    site.remove("state/a/slurm_id");
    assert_eq!(one(&site, second()), submitted(101, How::Adopted));
}

#[test]
fn a_lost_answer_is_found_by_the_name() {
    let site = Site::new();
    one(&site, entry(&site, "a"));
    site.remove("state/a/slurm_id");
    assert_eq!(one(&site, entry(&site, "a")), submitted(101, How::Adopted));
    assert_eq!(site.calls("sbatch"), 1);
}

#[test]
fn a_job_that_slurm_has_forgotten_is_found_by_its_claim() {
    let site = Site::new();
    site.write("state/a/submit.1", "");
    site.link("55", "state/a/run");
    assert_eq!(one(&site, entry(&site, "a")), submitted(55, How::Adopted));
}

#[test]
fn of_several_jobs_the_one_that_runs_is_adopted_and_the_others_are_named() {
    let site = Site::new();
    site.write("state/a/submit.1", "");
    let row = |id: u32, state| format!("{id}|{state}|None|n1|1|2|3|polar|a\n");
    site.write("queue", format!("{}{}{}", row(9, "RUNNING"), row(100, "PENDING"), row(11, "RUNNING")));
    let adopted = |it, others: &[u32]| SubmitAnswer::Submitted {
        id: id(it),
        how: How::Adopted,
        extra: others.iter().copied().map(id).collect(),
    };
    assert_eq!(
        one(&site, entry(&site, "a")),
        adopted(9, &[100]),
        "the lowest, by number; 11 may have the claim"
    );
    site.remove("state/a/slurm_id");
    site.link("11", "state/a/run");
    assert_eq!(one(&site, entry(&site, "a")), adopted(11, &[9, 100]));
}

#[test]
fn an_id_file_that_holds_no_id_is_no_replay() {
    let site = Site::new();
    site.write("state/a/slurm_id", "0x7\n");
    assert_eq!(one(&site, entry(&site, "a")), submitted(101, How::New));
}

#[test]
fn the_job_gets_the_environment_of_the_site_and_not_ours() {
    let site = Site::new();
    let batch = SubmitBatch::new(vec![entry(&site, "a")]);
    site.raw_with(&batch, &[("TZ", "Europe/Berlin"), ("LC_ALL", "C.UTF-8"), ("SBATCH_PARTITION", "wrong")]);
    let mut env: Vec<String> = site.read("sbatch.env").lines().map(str::to_owned).collect();
    let umask = env.pop();
    env.sort();
    assert_eq!(env, ["LC_ALL=C.UTF-8", "POSIXLY_CORRECT=1", "TZ=Europe/Berlin"]);
    assert_ne!(umask.as_deref(), Some("0077"));
}

#[test]
fn an_id_that_no_submission_can_have_kept_is_none() {
    let site = Site::new();
    site.write("state/a/slurm_id", concat!("\0\0", "77\n"));
    site.write("state/b/slurm_id", "99999999999999999999\n");
    site.write("state/c/slurm_id", "77");
    let answers = submit(&site, ["a", "b", "c"].map(|key| entry(&site, key)).to_vec());
    let new = |answer: &SubmitAnswer| matches!(answer, SubmitAnswer::Submitted { how: How::New, .. });
    assert!(answers.iter().all(new), "{answers:?}");
}

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
    let waits = "for i in {1..900}; do if [ -e \"$SITE/sbatch/j.sh\" ]; then break; fi; sleep 0.1; done\n\
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

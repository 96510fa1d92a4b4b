mod choices;
mod damaged;
mod returned;

use chrono::DateTime;
use proptest::prelude::*;
use remote::{ExitRecord, Markers, script};
use slurm::{AccountingRow, QueueRow, SlurmState, timestamp};
use test_case::test_case;

use super::*;
use crate::{
    cluster::policy::ImageSettings,
    run::{
        evidence::{Observation, Records},
        graces::Graces,
        submission::Lookup,
    },
};

fn now() -> Timestamp {
    DateTime::from_timestamp(1_800_000_000, 0).unwrap()
}

fn one_waits() -> Demand {
    Demand { waiters: 1, ..Demand::default() }
}

fn wanted() -> Conversion {
    Conversion {
        id: Uuid::from_u128(7),
        cluster: "dgx".parse().unwrap(),
        cache_path: "/lustre/sqsh/r.io~a+b=1.sqsh".parse().unwrap(),
        image: "r.io/a/b:1".parse().unwrap(),
        state: ConversionState::Requested,
        message: String::new(),
        file: None,
        file_seen_at: None,
        damaged_files: Vec::new(),
        damaged_at: None,
        file_began_at: None,
        error: None,
        failures: 0,
        retry_at: None,
        mishaps: 0,
        abandoned: None,
        run: None,
        version: 1,
    }
}

/// Slurm has it, as job 9.
fn running() -> Conversion {
    let base = "/lustre/tao".parse().unwrap();
    let begun = wanted().checked(ImageFile::Absent, &one_waits(), &base, now()).conversion;
    let mut running = begun.submitting();
    running.state = ConversionState::Running;
    let run = running.run.as_mut().unwrap();
    (run.slurm_id, run.submitted_at) = (SlurmJobId::new(9), Some(now()));
    running
}

fn cluster() -> crate::Cluster {
    crate::Cluster {
        name: "dgx".parse().unwrap(),
        user: "tao".parse().unwrap(),
        hosts: Vec::new(),
        base_dir: "/lustre/tao".parse().unwrap(),
        account: None,
        partitions: None,
        mounts: Vec::new(),
        node_local: Vec::new(),
        resources: crate::Resources::packaged().unwrap(),
        max_time_hours: 4.0,
        images: ImageSettings::packaged(&"/lustre/tao".parse().unwrap()).unwrap(),
        retries: crate::RetrySettings::default(),
        batch: crate::BatchSettings::default(),
        submit: crate::SubmitSettings::default(),
        rpc_budget: None,
    }
}

/// What becomes of a run that ended in this state and left this.
fn ended(state: SlurmState, code: Option<u8>, err: &[u8], file: ImageFile) -> Conversion {
    let mut conversion = running();
    conversion.state = ConversionState::Finishing;
    let run = conversion.run.as_mut().unwrap();
    (run.slurm_state, run.finishing_since) = (Some(state), Some(now() - TimeDelta::hours(1)));
    let exit = code.map(|code| ExitRecord { slurm_id: SlurmJobId::new(9).unwrap(), restart: 0, code, at: 0 });
    let markers = Markers { exit, ..Markers::default() };
    let found = ConversionFindings { markers: &markers, err_tail: err, file };
    conclude_conversion(&conversion, &found, &one_waits(), &cluster(), &Graces::default(), now()).conversion
}

#[test]
fn a_token_and_a_state_directory_belong_to_one_row_and_one_run() {
    let first = running().run.unwrap();
    assert_eq!(first.token.as_str(), "tao-sqsh-00000000000000000000000000000007-1");
    assert_eq!(first.state_dir.as_str(), "/lustre/tao/state/images/00000000000000000000000000000007/1");
    let base = "/lustre/tao".parse().unwrap();
    let second = running().checked(ImageFile::Broken, &one_waits(), &base, now()).conversion;
    assert_eq!(second.run.unwrap().no.get(), 2);
}

#[test_case(ConversionState::Requested, 1 => ConversionStep::Check; "a wanted one is looked for")]
#[test_case(ConversionState::Requested, 0 => ConversionStep::Shelve; "nobody wants it")]
#[test_case(ConversionState::Submitting, 1 => ConversionStep::Submit; "it is submitted")]
#[test_case(ConversionState::Submitting, 0 => ConversionStep::Locate; "nobody wants what may have been submitted")]
#[test_case(ConversionState::SubmitUncertain, 0 => ConversionStep::Locate; "a lost answer is looked for whoever waits")]
#[test_case(ConversionState::InQueue, 1 => ConversionStep::Rest; "the poll moves it")]
#[test_case(ConversionState::Running, 0 => ConversionStep::Cancel(Abandoned::Unneeded); "nobody waits any more")]
#[test_case(ConversionState::Finishing, 0 => ConversionStep::Conclude; "its last words are read whoever waits")]
#[test_case(ConversionState::Ready, 0 => ConversionStep::Rest; "ready")]
#[test_case(ConversionState::Failed, 5 => ConversionStep::Rest; "failed")]
fn a_conversion_takes_one_step(state: ConversionState, waiters: u32) -> ConversionStep {
    let mut conversion = Conversion { state, ..running() };
    if state == ConversionState::Submitting {
        conversion.run.as_mut().unwrap().slurm_id = None;
    }
    conversion_step(&conversion, &Demand { waiters, ..Demand::default() })
}

/// Slurm has it in this state, so many minutes from now. `submitted` minutes from now it was last put into the queue.
fn seen_after(before: &Conversion, state: SlurmState, submitted: i64, minutes: i64) -> Conversion {
    let row = QueueRow {
        id: SlurmJobId::new(9).unwrap(),
        state,
        reason: "Resources".to_owned(),
        nodes: String::new(),
        submit: Some((now() + TimeDelta::minutes(submitted)).timestamp()),
        start: None,
        end: None,
        partition: "cpu".to_owned(),
        name: before.run.as_ref().unwrap().token.to_string(),
    };
    let seen = Observation { queue_answered: true, queue: Some(&row), ..Observation::default() };
    let later = now() + TimeDelta::minutes(minutes);
    observe_conversion(before, &seen, TimeDelta::zero(), &Graces::default(), later)
        .unwrap_or_else(|| before.clone())
}

fn queued() -> Conversion {
    let base = "/lustre/tao".parse().unwrap();
    let begun = wanted().checked(ImageFile::Absent, &one_waits(), &base, now()).conversion.submitting();
    conversion_after_lookup(&begun, Lookup::Found(SlurmJobId::new(9).unwrap()), now()).conversion
}

#[test]
fn a_conversion_that_never_starts_is_given_up_once_it_is_seen_waiting_after_an_hour() {
    let waiting = seen_after(&queued(), SlurmState::Pending, 0, 59);
    assert_eq!(conversion_step(&waiting, &one_waits()), ConversionStep::Rest);
    let never = seen_after(&waiting, SlurmState::Pending, 0, 60);
    assert_eq!(conversion_step(&never, &one_waits()), ConversionStep::Cancel(Abandoned::NeverStarted));
    let at_last = seen_after(&never, SlurmState::Running, 0, 61);
    assert_eq!(conversion_step(&at_last, &one_waits()), ConversionStep::Rest, "it has a node now");
    assert_eq!(
        conversion_step(&at_last, &Demand::default()),
        ConversionStep::Cancel(Abandoned::NeverStarted)
    );
}

#[test]
fn a_run_that_slurm_puts_back_waits_anew() {
    let ran = seen_after(&queued(), SlurmState::Running, 0, 50);
    let back = seen_after(&ran, SlurmState::Pending, 0, 70);
    assert_eq!(back.abandoned, None, "it has waited for no time at all");
    assert_eq!(seen_after(&back, SlurmState::Pending, 0, 129).abandoned, None);
    let never = seen_after(&back, SlurmState::Pending, 0, 130);
    assert_eq!(never.abandoned, Some(Abandoned::NeverStarted));
}

#[test]
fn a_run_that_no_poll_saw_shows_in_its_new_time_of_submission() {
    let waiting = seen_after(&queued(), SlurmState::Pending, 0, 30);
    assert_eq!(seen_after(&waiting, SlurmState::Pending, 40, 90).abandoned, None);
    let once_known = seen_after(&waiting, SlurmState::Pending, 40, 90);
    assert_eq!(
        seen_after(&once_known, SlurmState::Pending, 40, 100).abandoned,
        Some(Abandoned::NeverStarted)
    );
}

#[test]
fn a_new_run_has_all_its_patience() {
    let base = "/lustre/tao".parse().unwrap();
    let never = seen_after(&queued(), SlurmState::Pending, 0, 60);
    let again = never.checked(ImageFile::Absent, &one_waits(), &base, now()).conversion;
    assert_eq!((again.abandoned, again.run.unwrap().queued_since), (None, None));
}

#[test]
fn a_conversion_without_a_path_has_failed_and_says_why() {
    let base = format!("/{}", "b".repeat(2990)).parse().unwrap();
    let ConversionTransition { conversion, due_at } =
        wanted().checked(ImageFile::Absent, &one_waits(), &base, now());
    assert_eq!((conversion.state, due_at), (ConversionState::Failed, None));
    assert!(conversion.retry_at.unwrap() > now());
    assert!(conversion.error.unwrap().contains("an absolute path of at most 3000 bytes"));
}

#[test]
fn an_earlier_submission_is_looked_for_before_a_conversion_is_said_to_be_unplannable() {
    let submitting = Conversion { state: ConversionState::Submitting, ..running() };
    let lost = conversion_unplannable(&submitting, true, &"no path", now());
    assert_eq!((lost.conversion.state, lost.due_at), (ConversionState::SubmitUncertain, Some(now())));
    let failed = conversion_unplannable(&submitting, false, &"no path", now());
    assert_eq!((failed.conversion.state, failed.due_at), (ConversionState::Failed, None));
    assert!(failed.conversion.message.contains("no path"), "{}", failed.conversion.message);
}

#[test_case(SlurmState::Completed, Some(0), ImageFile::Whole, ConversionState::Ready, ""; "made")]
#[test_case(SlurmState::Failed, Some(1), ImageFile::Whole, ConversionState::Ready, ""; "somebody else has made it")]
#[test_case(SlurmState::Failed, Some(6), ImageFile::Absent, ConversionState::Failed, "code 6: [ERROR] no"; "enroot failed")]
#[test_case(SlurmState::Completed, Some(0), ImageFile::Absent, ConversionState::Failed, "all nodes share"; "a cache that nobody shares")]
#[test_case(SlurmState::Timeout, Some(143), ImageFile::Absent, ConversionState::Failed, "conversion_minutes"; "time")]
#[test_case(SlurmState::OutOfMemory, None, ImageFile::Absent, ConversionState::Failed, "conversion_memory_gb"; "memory")]
#[test_case(SlurmState::Cancelled, Some(143), ImageFile::Absent, ConversionState::Failed, "canceled on the cluster"; "by hand")]
#[test_case(SlurmState::NodeFail, None, ImageFile::Absent, ConversionState::Requested, ""; "a dead node")]
#[test_case(SlurmState::Preempted, None, ImageFile::Absent, ConversionState::Requested, ""; "preempted")]
fn an_end_has_one_meaning(
    state: SlurmState,
    code: Option<u8>,
    file: ImageFile,
    expected: ConversionState,
    says: &str,
) {
    let conversion = ended(state, code, b"[INFO] begun\n[ERROR] no\nslurmstepd: bye\n", file);
    assert_eq!(conversion.state, expected, "{}", conversion.message);
    assert!(conversion.error.unwrap_or_default().contains(says));
}

#[test]
fn the_status_of_an_answer_says_more_than_its_page() {
    let error = |err: &[u8]| ended(SlurmState::Failed, Some(1), err, ImageFile::Absent).error.unwrap();
    let both = b"[ERROR] URL https://r.io/token returned error code: 401 Unauthorized\n[ERROR] Could not process JSON input\n";
    assert!(error(both).ends_with("401 Unauthorized"));
    assert!(error(b"[INFO] x\n[ERROR] Could not process JSON input\n").ends_with("JSON input"));
    let ended = b"[INFO] Authenticating with user: ann\nsrun: error: cpu01: task 0: Exited with exit code 1\nsrun: launch/slurm: _step_signal: x\n";
    assert!(error(ended).ends_with("[INFO] Authenticating with user: ann"), "{}", error(ended));
}

#[test]
fn dead_nodes_are_not_blamed_on_the_image_for_ever() {
    let mut conversion = running();
    for _ in 0..4 {
        conversion.state = ConversionState::Finishing;
        let run = conversion.run.as_mut().unwrap();
        run.slurm_state = Some(SlurmState::NodeFail);
        let found =
            ConversionFindings { markers: &Markers::default(), err_tail: b"", file: ImageFile::Absent };
        let terms = (&one_waits(), &cluster(), &Graces::default());
        conversion = conclude_conversion(&conversion, &found, terms.0, terms.1, terms.2, now()).conversion;
    }
    assert_eq!(conversion.state, ConversionState::Failed);
}

#[test]
fn failures_in_a_row_wait_longer_up_to_an_hour() {
    let mut conversion = running();
    let waits: Vec<_> = (0..6)
        .map(|_| {
            conversion.failed("no".to_owned(), now());
            (conversion.retry_at.unwrap() - now()).num_minutes()
        })
        .collect();
    assert_eq!(waits, [5, 10, 20, 40, 60, 60]);
}

#[test]
fn a_poll_that_was_not_answered_changes_nothing() {
    let seen =
        observe_conversion(&running(), &Observation::default(), TimeDelta::zero(), &Graces::default(), now());
    assert!(seen.is_none());
}

#[test]
fn somebody_elses_record_of_its_id_says_nothing() {
    let row = AccountingRow {
        id: SlurmJobId::new(9).unwrap(),
        state: SlurmState::Completed,
        exit_code: None,
        reason: String::new(),
        start: None,
        end: None,
        nodes: String::new(),
        name: "another".to_owned(),
        canceled_by: None,
        before: None,
    };
    let seen = Observation {
        queue_answered: true,
        accounting: Some(&row),
        records: Records::Answered,
        ..Observation::default()
    };
    let seen = observe_conversion(&running(), &seen, TimeDelta::zero(), &Graces::default(), now()).unwrap();
    assert_eq!(seen.state, ConversionState::Running, "it is missing, and nothing more");
    assert_eq!(seen.run.unwrap().missing_since, Some(now()));
}

#[test]
fn an_import_is_fresh_for_those_who_were_accepted_before_it_began() {
    let mut ready = running();
    ready.ready(ready.cache_path.clone(), Some(now()), now());
    let demand = |seconds| Demand { fresh_since: Some(now() + TimeDelta::seconds(seconds)), ..one_waits() };
    let base = "/lustre/tao".parse().unwrap();
    let after = |seconds| ready.checked(ImageFile::Whole, &demand(seconds), &base, now()).conversion;
    assert_eq!(after(0).state, ConversionState::Ready);
    let again = after(1);
    assert_eq!(again.state, ConversionState::Submitting);
    assert_ne!(again.run.unwrap().target, ready.cache_path, "the file that jobs read stays as it is");
}

proptest! {
    #[test]
    fn no_log_makes_a_message_long_or_unprintable(tail in any::<Vec<u8>>()) {
        let error = ended(SlurmState::Failed, Some(1), &tail, ImageFile::Absent).error.unwrap();
        prop_assert!(error.chars().count() < 700);
        prop_assert!(!error.contains(char::is_control));
    }
}

#[test]
fn a_conversion_asks_for_no_memory_where_the_site_refuses_that() {
    let script = |cluster: &crate::Cluster| {
        let conversion = running();
        let submission = plan_conversion(&conversion, conversion.run.as_ref().unwrap(), cluster).unwrap();
        let script = submission.files.iter().find(|file| file.path == submission.script_path).unwrap();
        String::from_utf8(script.bytes.clone()).unwrap()
    };
    let mut cluster = cluster();
    assert!(script(&cluster).contains("#SBATCH --mem=32G\n"));
    cluster.submit.options.others.insert("mem".parse().unwrap(), slurm::OptionValue::Drop);
    assert!(!script(&cluster).contains("--mem"));
}

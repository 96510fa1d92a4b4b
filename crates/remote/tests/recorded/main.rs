//! What two releases of Slurm really said of jobs in each state, as the poll program saw it. `record`, beside this file,
//! has brought the states about on the sandbox and written the answers down; run it again when the program changes.

#![expect(clippy::unwrap_used, reason = "in a test a failing unwrap is a failing test")]

mod expected;

use std::{collections::BTreeSet, fs, path::PathBuf};

use remote::{
    AttemptKey, Poll, PollAnswer, RawOutput, RemoteCommand, ReportFiles, SacctOutcome, SqueueOutcome,
    Subject, Watched,
};
use slurm::{AccountingRow, QueueRow, SlurmJobId, SlurmState};
use test_case::test_case;

use expected::{EVERYWHERE, Expected, ONLY_22_05, ONLY_24_11};

fn directory(release: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/recorded")).join(release)
}

/// The answer as the parser reads it, and the id of the job.
fn recorded(release: &str, state: &str) -> (SlurmJobId, PollAnswer) {
    let stdout = fs::read(directory(release).join(state)).unwrap();
    let text = String::from_utf8(stdout.clone()).unwrap();
    let row = text.lines().find_map(|line| line.strip_prefix("ROW ")).unwrap();
    let id: SlurmJobId = row.split('|').next().unwrap().parse().unwrap();
    let jobs = [state, "somebody-else"].map(|key| Watched {
        id,
        key: AttemptKey { subject: Subject::Cluster, name: key.parse().unwrap() },
        results_dir: "/r".parse().unwrap(),
        state_dir: "/nonexistent".parse().unwrap(),
        status: Vec::new(),
        signs_of_life: None,
        reports: ReportFiles::default(),
        index: None,
    });
    let poll = Poll {
        jobs: jobs.into(),
        arrays: Vec::new(),
        status_bytes_per_file: 1000,
        status_bytes_total: 1000,
        others: None,
    };
    let answer = poll.parse(&RawOutput { stdout, ..RawOutput::default() });
    (id, answer.unwrap_or_else(|error| panic!("{release} {state}: {error}")))
}

fn rows(release: &str, state: &str) -> (QueueRow, Option<AccountingRow>) {
    let (id, answer) = recorded(release, state);
    assert_eq!(answer.dropped_rows, 0, "{release} {state}");
    let SqueueOutcome::Answered(mut queue) = answer.squeue else { panic!("{release} {state}: no queue") };
    let SacctOutcome::Answered(mut records) = answer.sacct else {
        panic!("{release} {state}: no accounting")
    };
    (queue.remove(&id).unwrap(), records.remove(&id))
}

#[test_case("22.05", ONLY_22_05; "22.05")]
#[test_case("24.11", ONLY_24_11; "24.11")]
fn every_state_reads_as_it_is(release: &str, own: &[Expected]) {
    for &(state, queue, record) in EVERYWHERE.iter().chain(own) {
        let (row, accounting) = rows(release, state);
        assert_eq!(format!("{} {}", row.state, row.reason), queue, "{release} {state}: squeue");
        let accounting = accounting.map(|row| {
            let exit = row.exit_code.unwrap_or_else(|| panic!("{release} {state}: no exit code"));
            format!("{} {exit}", row.state)
        });
        assert_eq!(accounting.as_deref().unwrap_or("nothing"), record, "{release} {state}: sacct");
    }
}

#[test_case("22.05", ONLY_22_05; "22.05")]
#[test_case("24.11", ONLY_24_11; "24.11")]
fn every_recording_is_looked_at(release: &str, own: &[Expected]) {
    let names = EVERYWHERE.iter().chain(own).map(|(state, ..)| (*state).to_owned());
    let files = fs::read_dir(directory(release)).unwrap();
    let files: BTreeSet<_> = files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    assert_eq!(names.collect::<BTreeSet<_>>(), files);
}

/// A job that never got a node never started, though Slurm gives a time (22.05 always, 24.11 in squeue) and, for its
/// nodes, words.
#[test_case("22.05", ONLY_22_05; "22.05")]
#[test_case("24.11", ONLY_24_11; "24.11")]
fn times_and_nodes_are_those_of_the_job(release: &str, own: &[Expected]) {
    for (state, ..) in EVERYWHERE.iter().chain(own) {
        let (row, record) = rows(release, state);
        let (remote_time, about) = (recorded(release, state).1.remote_time, format!("{release} {state}"));
        let recent = |time: Option<i64>| time.is_some_and(|t| (remote_time - 100..=remote_time).contains(&t));
        assert!(recent(row.submit), "{about}: {row:?}");
        let waits = matches!(row.state, SlurmState::Pending | SlurmState::SpecialExit);
        if row.state.is_final() {
            assert!(recent(row.end), "{about}: {row:?}");
            assert_eq!(recent(row.start), !row.nodes.is_empty(), "{about}: {row:?}");
        } else {
            assert_eq!(recent(row.start), !waits, "{about}: {row:?}");
            assert_eq!(row.nodes.is_empty(), waits, "{about}: {row:?}");
        }
        let Some(record) = record else { continue };
        assert_eq!(recent(record.start), !record.nodes.is_empty(), "{about}: {record:?}");
        assert_eq!(
            recent(record.end),
            record.state.is_final() || record.state == SlurmState::Requeued,
            "{about}: {record:?}"
        );
        assert!(!record.nodes.contains("assigned"), "{about}: {record:?}");
    }
}

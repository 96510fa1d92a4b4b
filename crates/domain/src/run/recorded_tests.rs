//! What becomes of a job in each state that two releases of Slurm were recorded in (`crates/remote/tests/recorded`): the
//! same, whichever of them says it, and whether squeue still knows the job or only accounting does.

use std::{fs, path::PathBuf};

use chrono::{DateTime, TimeDelta};
use remote::{
    AttemptKey, ExitRecord, Markers, Poll, RawOutput, RemoteCommand, ReportFiles, SacctOutcome,
    SqueueOutcome, StartedMarker, Subject, Watched,
};
use slurm::{AccountingRow, QueueRow, SlurmState};
use test_case::test_case;
use uuid::Uuid;

use crate::{
    clock::Timestamp,
    fixtures::submitted_job,
    job::{status::Phase, stored::Job},
    run::{
        conclude::{Ending, Findings, conclude},
        evidence::{Observation, Records},
        graces::Graces,
        observe::observe,
    },
};

/// The state, and what becomes of the job; of one that failed, with its exit code.
const VERDICTS: &[(&str, &str)] = &[
    ("begin_time", "Pending InQueue"),
    ("canceled_by_root", "Canceled"),
    ("canceled_by_user", "Canceled"),
    ("canceled_while_pending", "Canceled"),
    ("completed", "Done"),
    ("completing", "Running Running"),
    ("deadline", "Error"),
    ("dependency", "Pending InQueue"),
    ("dependency_canceled", "Canceled"),
    ("dependency_never_satisfied", "Pending InQueue"),
    ("exit_3", "Error 3:0"),
    ("held", "Pending InQueue"),
    ("held_by_admin", "Pending InQueue"),
    ("no_output_directory", "again 0:53"),
    ("node_fail", "again"),
    ("node_fail_requeued", "Pending InQueue"),
    ("node_fail_running_again", "Running Running"),
    ("out_of_memory", "Error"),
    ("over_memory", "Error 0:9"),
    ("preempted_cancel", "Canceled"),
    ("preempted_no_requeue", "Canceled"),
    ("preempted_requeued", "Pending InQueue"),
    ("preempted_running_again", "Running Running"),
    ("requeued", "Pending InQueue"),
    ("requeued_running_again", "Running Running"),
    ("requeuehold", "Pending InQueue"),
    ("resources", "Pending InQueue"),
    ("running", "Running Running"),
    ("signal_15", "again 0:15"),
    ("signal_9", "Error 0:9"),
    ("special_exit", "Pending InQueue"),
    ("suspended", "Paused Suspended"),
    ("timeout", "Error"),
];

fn key(name: &str) -> AttemptKey {
    AttemptKey { subject: Subject::Job(Uuid::nil()), name: name.parse().unwrap() }
}

fn recorded(release: &str, state: &str) -> (QueueRow, Option<AccountingRow>) {
    let directory = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../remote/tests/recorded"));
    let stdout = fs::read(directory.join(release).join(state)).unwrap();
    let text = String::from_utf8_lossy(&stdout);
    let id =
        text.lines().find_map(|line| line.strip_prefix("ROW ")?.split('|').next()?.parse().ok()).unwrap();
    let watched = Watched {
        id,
        key: key(state),
        results_dir: "/r".parse().unwrap(),
        state_dir: "/nonexistent".parse().unwrap(),
        status: Vec::new(),
        signs_of_life: None,
        reports: ReportFiles::default(),
        index: None,
    };
    let other = Watched { key: key("somebody-else"), ..watched.clone() };
    let poll = Poll {
        jobs: vec![watched, other],
        arrays: Vec::new(),
        status_bytes_per_file: 1000,
        status_bytes_total: 1000,
        others: None,
    };
    let answer = poll.parse(&RawOutput { stdout, ..RawOutput::default() }).unwrap();
    let SqueueOutcome::Answered(mut queue) = answer.squeue else { panic!("{state}") };
    let SacctOutcome::Answered(mut records) = answer.sacct else { panic!("{state}") };
    (queue.remove(&id).unwrap(), records.remove(&id))
}

/// What the service says of the job after this observation and, if Slurm is through with it, after its last words.
fn verdict(job: &Job, seen: &Observation<'_>, markers: &Markers, now: Timestamp) -> String {
    let Some(next) = observe(job, seen, &Graces::default(), now) else { return "unchanged".to_owned() };
    if next.job.phase != Phase::Finishing {
        return format!("{:?} {:?}", next.job.status, next.job.phase);
    }
    let found = Findings {
        readable: true,
        left_out: false,
        markers,
        status: &[],
        out_tail: b"",
        err_tail: b"",
        role_tails: b"",
        errors: &[],
        ended_with: None,
        progress: None,
        results: Some(&[]),
        unhealthy: &[],
        spare: None,
    };
    let (word, job) = match conclude(&next.job, &found, &Graces::default(), now + TimeDelta::hours(1)) {
        Ending::Ended(job) => (format!("{:?}", job.status), job),
        Ending::Retry { .. } => ("again".to_owned(), next.job),
        other @ (Ending::Paused(_) | Ending::Adopt(_) | Ending::Wait { .. }) => panic!("{other:?}"),
    };
    match job.run.exit.filter(|_| job.run.state == Some(SlurmState::Failed)) {
        Some(exit) => format!("{word} {exit}"),
        None => word,
    }
}

#[test_case("22.05"; "22.05")]
#[test_case("24.11"; "24.11")]
fn every_recorded_state_has_the_same_verdict(release: &str) {
    for &(state, expected) in VERDICTS {
        let mut job = submitted_job();
        let name = job.attempt.as_ref().unwrap().token.to_string();
        let (mut row, mut record) = recorded(release, state);
        row.name.clone_from(&name);
        let now = DateTime::from_timestamp(row.submit.unwrap() + 600, 0).unwrap();
        if let Some(attempt) = &mut job.attempt {
            attempt.slurm_id = Some(row.id);
        }
        // The script itself leaves a mark when it is not killed.
        let code = record.as_ref().and_then(|record| record.exit_code).filter(|exit| exit.signal == 0);
        let by_itself = matches!(row.state, SlurmState::Completed | SlurmState::Failed);
        let exit = code.filter(|_| by_itself).map(|exit| ExitRecord {
            slurm_id: row.id,
            restart: 0,
            code: exit.code,
            at: row.end.unwrap(),
        });
        let started =
            row.start.map(|at| StartedMarker { slurm_id: row.id, restart: 0, at, hostname: String::new() });
        let markers = Markers { exit, started, run_claim: Some(row.id), ..Markers::default() };

        if let Some(record) = &mut record {
            record.name.clone_from(&name);
        }
        let seen = Observation {
            queue: Some(&row),
            queue_answered: true,
            accounting: record.as_ref().filter(|_| row.reason == "JobLaunchFailure"),
            records: Records::Answered,
            markers: Some(&markers),
            ..Observation::default()
        };
        assert_eq!(verdict(&job, &seen, &markers, now), expected, "{release} {state}");
        if row.state.is_final() {
            // The end of a run that Slurm may have put back counts once the queue has not shown it for long enough.
            job.run.missing_since = Some(now - Graces::default().missing);
            let seen = Observation {
                queue_answered: true,
                accounting: record.as_ref(),
                records: Records::Answered,
                markers: Some(&markers),
                ..Observation::default()
            };
            assert_eq!(
                verdict(&job, &seen, &markers, now),
                expected,
                "{release} {state}, forgotten by squeue"
            );
        }
    }
}

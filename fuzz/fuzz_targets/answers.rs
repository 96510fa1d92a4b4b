//! The answers to all other commands. The first byte selects the command.
#![no_main]

use libfuzzer_sys::fuzz_target;
use remote::{
    Allocations, AttemptKey, Cancel, CheckImages, Checkpoints, Conclude, Concluding, Locate, LogFrom,
    LogQuestion, Preflight, Purge, RawOutput, ReadLogs, RemoteCommand, Remove, Requeued, Sought,
    StagedSecret, Subject, Submission, SubmitBatch,
};
use slurm::{RemotePath, SlurmJobId};

fn path() -> RemotePath {
    "/lustre/users/tao/state/1".parse().expect("a path")
}

fn key() -> AttemptKey {
    AttemptKey { subject: Subject::Cluster, name: "tao-job-1".parse().expect("a name") }
}

fn id() -> SlurmJobId {
    SlurmJobId::new(7).expect("an id")
}

fn submission() -> Submission {
    Submission {
        key: key(),
        state_dir: path(),
        files: Vec::new(),
        script_path: path(),
        make_dirs: Vec::new(),
        results_dir: path(),
        inputs: vec![path()],
        base_dir: path(),
        send: 1,
        cleared: 0,
    }
}

fn concluding() -> Concluding {
    Concluding {
        is_bare: false,
        may_have_failed: true,
        key: key(),
        id: Some(id()),
        state_dir: path(),
        logs: Vec::new(),
        results_dir: path(),
        status: Vec::new(),
        status_backlog: remote::STATUS_BACKLOG,
        role_logs: Some(path()),
        results: Vec::new(),
        remove: vec![path()],
    }
}

fuzz_target!(|input: &[u8]| {
    let Some((which, stdout)) = input.split_first() else { return };
    let raw =
        RawOutput { stdout: stdout.to_vec(), stderr: stdout.to_vec(), exit_code: i32::from(*which) & 1 };
    match which >> 1 {
        0 => {
            let answer = SubmitBatch::new(vec![submission(), submission()]).parse(&raw);
            // One answer per entry, or an error.
            assert!(
                answer.is_ok_and(|answers| answers.len() == 2)
                    || SubmitBatch::new(vec![submission(), submission()]).parse(&raw).is_err()
            );
        }
        1 => {
            let jobs = vec![Sought { key: key(), state_dir: path(), base_dir: path(), send: 1, cleared: 0 }];
            if let Ok(answer) = (Locate { jobs, since_unix: 0 }).parse(&raw) {
                assert_eq!(answer.located.len(), 1);
            }
        }
        2 => {
            let command = Conclude { jobs: vec![concluding()], tail_bytes: 1000, status_bytes_total: 1000 };
            if let Ok(answer) = command.parse(&raw) {
                assert!(answer.len() <= 1);
            }
        }
        3 => drop(Cancel { jobs: vec![(id(), key())], ..Cancel::default() }.parse(&raw)),
        4 => drop(CheckImages { paths: vec![path()], superseded: Vec::new(), jobs: Vec::new() }.parse(&raw)),
        5 => drop(Checkpoints { jobs: Vec::new() }.parse(&raw)),
        6 => {
            let files = vec![StagedSecret { job: Default::default(), state_dir: path(), path: path() }];
            drop(Remove { files, close: vec![path()] }.parse(&raw));
        }
        7 => {
            drop(Requeued { jobs: vec![(id(), key())] }.parse(&raw));
            drop(Allocations { jobs: vec![(id(), key())] }.parse(&raw));
        }
        8 => {
            let questions = vec![
                LogQuestion::Part {
                    subject: Subject::Cluster,
                    paths: vec![path()],
                    from: LogFrom::Offset(0),
                    max_bytes: 1000,
                },
                LogQuestion::Files { subject: Subject::Cluster, directory: path(), most: 10 },
            ];
            if let Ok(answers) = (ReadLogs { questions }).parse(&raw) {
                assert_eq!(answers.len(), 2);
            }
        }
        9 => drop(Purge { jobs: Vec::new() }.parse(&raw)),
        _ => {
            let command = Preflight {
                deep: which & 2 == 0,
                base_dir: path(),
                account: None,
                partitions: None,
                gpus: 1,
            };
            drop(command.parse(&raw));
        }
    }
});

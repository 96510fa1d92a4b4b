//! The answer to a poll: rows of squeue and sacct, exit records, and parts of status files.
#![no_main]

use libfuzzer_sys::fuzz_target;
use remote::{AttemptKey, Poll, RawOutput, RemoteCommand, Subject, Watched};
use slurm::{SlurmJobId, SlurmState};

/// The ids and the name in the recorded answers, which are the seeds.
fn question(stdout: &[u8]) -> Poll {
    let first = String::from_utf8_lossy(stdout)
        .lines()
        .find_map(|line| line.strip_prefix("ROW ")?.split('|').next()?.parse().ok())
        .or_else(|| SlurmJobId::new(7));
    let watched = |key: &str| {
        Some(Watched {
            id: first?,
            key: AttemptKey { subject: Subject::Cluster, name: key.parse().ok()? },
            results_dir: "/lustre/results".parse().expect("a path"),
            state_dir: "/lustre/state".parse().ok()?,
            status: Vec::new(),
            signs_of_life: "/lustre/logs".parse().ok(),
            reports: remote::ReportFiles {
                services: true,
                progress: "/lustre/p".parse().ok(),
                usage: Some(1000),
            },
            index: None,
        })
    };
    Poll {
        jobs: ["running", "tao-job-1"].into_iter().filter_map(watched).collect(),
        arrays: Vec::new(),
        status_bytes_per_file: 1000,
        status_bytes_total: 4000,
        others: "tao-".parse().ok(),
    }
}

fuzz_target!(|stdout: &[u8]| {
    let raw = RawOutput { stdout: stdout.to_vec(), ..RawOutput::default() };
    let Ok(answer) = question(stdout).parse(&raw) else { return };
    if let remote::SqueueOutcome::Answered(rows) = &answer.squeue {
        for (id, row) in rows {
            assert_eq!(*id, row.id);
            // An unknown state must not display as a known one.
            assert_eq!(row.state.to_string().parse::<SlurmState>().ok().as_ref(), Some(&row.state));
            assert!(slurm::node_list::expand(&row.nodes).len() <= row.nodes.len() + 1024);
        }
    }
    for chunk in &answer.status {
        assert!(chunk.bytes.len() <= stdout.len());
    }
});

//! A job's status file, which arrives in pieces: parses it, then applies it to the job.
#![no_main]

use chrono::DateTime;
use domain::{Graces, Job, Observation, Phase, Status, observe, read_lines};
use libfuzzer_sys::fuzz_target;
use remote::StatusChunk;
use serde_json::Value;
use slurm::RemotePath;

/// No real status of one job is larger than this.
const MOST_STATE: usize = 256 * 1024;

fn running() -> Job {
    let mut job = testkit::tao_job(1);
    let mut attempt = job
        .new_attempt("/lustre/users/tao".parse().expect("a path"), DateTime::UNIX_EPOCH)
        .expect("a first attempt");
    attempt.slurm_id = slurm::SlurmJobId::new(7);
    job.attempt = Some(attempt);
    (job.phase, job.status) = (Phase::Running, Status::Running);
    job
}

fn chunk(job: &Job, start: usize, bytes: &[u8], end: usize) -> StatusChunk {
    let path: RemotePath =
        format!("/lustre/users/tao/results/{}/status.json", job.id).parse().expect("a path");
    StatusChunk {
        key: String::new(),
        path,
        inode: 1,
        size: end as u64,
        written_at: 1,
        note: None,
        start_offset: start as u64,
        skipped: 0,
        before: Vec::new(),
        bytes: bytes.to_vec(),
        complete: true,
        restarted: false,
    }
}

fn is_storable(value: &Value) -> bool {
    match value {
        Value::String(text) => !text.contains('\0'),
        Value::Array(values) => values.iter().all(is_storable),
        Value::Object(fields) => fields.iter().all(|(key, value)| !key.contains('\0') && is_storable(value)),
        Value::Null | Value::Bool(_) | Value::Number(_) => true,
    }
}

fuzz_target!(|input: &[u8]| {
    let (lines, taken) = read_lines(input);
    assert!(taken <= input.len() && lines.len() <= taken);
    let mut job = running();
    let middle = input.len() / 2;
    for (start, end) in [(0, middle), (middle, input.len())] {
        let chunks = [chunk(&job, start, &input[start..end], end)];
        let seen = Observation { status: &chunks, ..Observation::default() };
        if let Some(next) = observe(&job, &seen, &Graces::default(), DateTime::UNIX_EPOCH) {
            // A status file alone must never end a job without an answer of Slurm.
            assert!(!next.job.status.is_final());
            job = next.job;
        }
    }
    let kept = serde_json::to_string(&job.run.status).expect("JSON").len()
        + serde_json::to_string(&job.run.progress).expect("JSON").len();
    assert!(kept <= MOST_STATE, "{kept} bytes are stored of {} bytes read", input.len());
    for event in job.run.status.events() {
        assert!(is_storable(&event.data), "Postgres stores no NUL");
    }
});

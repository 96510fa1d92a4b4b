//! Jobs in several phases, for the tests of this crate.

use std::collections::{BTreeMap, BTreeSet};

use chrono::DateTime;
use remote::StatusChunk;
use serde_json::{Map, json};
use slurm::SlurmJobId;
use uuid::Uuid;

use crate::{
    clock::Timestamp,
    cluster::{
        policy::{BatchSettings, ImagePolicy, ImageSettings, RetrySettings, SubmitSettings},
        resources::Resources,
        target::Cluster,
    },
    job::{
        identity::JobId,
        status::Phase,
        stored::{Job, Owner},
    },
    request::{
        program::ProgramSettings,
        restart::Restart,
        spec::{DEFAULT_MASTER_PORT, JobSpec, Work},
    },
    run::{status_lines::absorb_status, task::Task},
};

/// A job that was just accepted.
pub(crate) fn command_job() -> Job {
    let spec = JobSpec {
        name: None,
        labels: BTreeMap::new(),
        work: Work::Command { text: "true".to_owned() },
        array: None,
        needs: Vec::new(),
        pipeline: None,
        results: Vec::new(),
        progress: None,
        image: None,
        image_policy: ImagePolicy::default(),
        env: BTreeMap::new(),
        secret_env: BTreeSet::new(),
        cloud_plain: Map::new(),
        cloud_secret_keys: BTreeSet::new(),
        inputs: Vec::new(),
        required_paths: Vec::new(),
        resources: Resources::packaged().unwrap(),
        requested_gpus: None,
        master_port: Some(DEFAULT_MASTER_PORT),
        program: ProgramSettings::default(),
        max_retries: 10,
        restart: Restart::default(),
        use_requeue: true,
        timeout_minutes: None,
        idle_policy: None,
        mounts: Vec::new(),
        mount_home: None,
        partitions: None,
        options: slurm::SubmitOptions::default(),
        begin: None,
        deadline: None,
        notes: Vec::new(),
        trace: None,
    };
    let id = JobId::new(Uuid::from_u128(1));
    Job::accepted(id, Owner::new("tester"), "dgx".parse().unwrap(), spec, DateTime::UNIX_EPOCH)
}

/// A job whose submission is in progress.
pub(crate) fn submitting_job() -> Job {
    let mut job = command_job();
    let mut attempt = job.new_attempt("/lustre/tao".parse().unwrap(), DateTime::UNIX_EPOCH).unwrap();
    attempt.fence.begin();
    job.attempt = Some(attempt);
    job.phase = Phase::Submitting;
    job
}

/// A job in Slurm, as job 7.
pub(crate) fn submitted_job() -> Job {
    let mut job = submitting_job();
    if let Some(attempt) = &mut job.attempt {
        attempt.slurm_id = SlurmJobId::new(7);
        attempt.submitted_at = Some(DateTime::UNIX_EPOCH);
    }
    job.submitted_at = Some(DateTime::UNIX_EPOCH);
    job.phase = Phase::InQueue;
    job
}

/// The job has read these parts of its status files, while it ran.
pub(crate) fn absorb(job: &mut Job, chunks: &[StatusChunk], now: Timestamp) {
    let mut run = job.run.clone();
    if let Some(task) = Task::of(job) {
        absorb_status(&mut run, &task, chunks, false, now);
    }
    job.run = run;
}

/// The job as a TAO training, which reports its success in its status file.
pub(crate) fn as_tao(mut job: Job) -> Job {
    job.spec.work = Work::Tao {
        network_arch: "classification_pyt".parse().unwrap(),
        action: "train".parse().unwrap(),
        specs: json!({}),
    };
    job
}

/// The cluster `dgx` of user `tao`.
pub(crate) fn cluster() -> Cluster {
    let base_dir: slurm::RemotePath = "/lustre/users/tao".parse().unwrap();
    Cluster {
        name: "dgx".parse().unwrap(),
        user: "tao".parse().unwrap(),
        hosts: vec!["login1".to_owned()],
        account: Some("team".parse().unwrap()),
        partitions: Some("polar,grizzly".parse().unwrap()),
        mounts: Vec::new(),
        node_local: Vec::new(),
        resources: Resources::packaged().unwrap(),
        max_time_hours: 4.0,
        images: ImageSettings::packaged(&base_dir).unwrap(),
        retries: RetrySettings::default(),
        batch: BatchSettings::default(),
        submit: SubmitSettings::default(),
        rpc_budget: None,
        base_dir,
    }
}

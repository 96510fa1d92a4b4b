//! Jobs and a cluster for tests.

use std::collections::{BTreeMap, BTreeSet};

use chrono::DateTime;
use domain::{
    BatchSettings, Cluster, DEFAULT_MASTER_PORT, ImagePolicy, ImageSettings, Job, JobId, JobSpec, Owner,
    ProgramSettings, Resources, Restart, RetrySettings, Timestamp, Work,
};
use serde_json::{Map, json};
use uuid::Uuid;

/// Parses a value written in the test; an invalid value is an error of the test.
fn parsed<T: std::str::FromStr<Err: std::fmt::Debug>>(text: &str) -> T {
    match text.parse() {
        Ok(value) => value,
        Err(error) => panic!("invalid value {text:?} in a test: {error:?}"),
    }
}

/// The cluster `dgx` of user `tao`.
pub fn cluster() -> Cluster {
    Cluster {
        name: parsed("dgx"),
        user: parsed("tao"),
        hosts: vec!["login1".to_owned()],
        base_dir: parsed("/lustre/users/tao"),
        account: Some(parsed("team")),
        partitions: Some(parsed("polar,grizzly")),
        mounts: vec![parsed("/lustre")],
        node_local: Vec::new(),
        resources: resources(),
        max_time_hours: 4.0,
        images: images(),
        // Differs from the default, so that a test sees which setting applies.
        retries: RetrySettings { node_exclusion_hours: 6, ..RetrySettings::default() },
        batch: BatchSettings::default(),
        submit: domain::SubmitSettings::default(),
        rpc_budget: None,
    }
}

fn images() -> ImageSettings {
    match ImageSettings::packaged(&parsed("/lustre/users/tao")) {
        Ok(images) => images,
        Err(error) => panic!("the packaged defaults are invalid: {error}"),
    }
}

fn resources() -> Resources {
    match Resources::packaged() {
        Ok(resources) => resources,
        Err(error) => panic!("the packaged defaults are invalid: {error}"),
    }
}

pub fn spec(work: Work) -> JobSpec {
    JobSpec {
        name: None,
        labels: BTreeMap::new(),
        work,
        array: None,
        needs: Vec::new(),
        pipeline: None,
        results: Vec::new(),
        progress: None,
        image: Some(parsed("/lustre/images/tao.sqsh")),
        image_policy: ImagePolicy::default(),
        env: BTreeMap::new(),
        secret_env: BTreeSet::new(),
        cloud_plain: Map::new(),
        cloud_secret_keys: BTreeSet::new(),
        inputs: Vec::new(),
        required_paths: Vec::new(),
        resources: resources(),
        requested_gpus: None,
        master_port: Some(DEFAULT_MASTER_PORT),
        program: ProgramSettings::default(),
        max_retries: 10,
        restart: Restart::default(),
        use_requeue: true,
        timeout_minutes: None,
        idle_policy: None,
        mounts: vec![parsed("/lustre")],
        mount_home: None,
        partitions: Some(parsed("polar")),
        options: slurm::SubmitOptions::default(),
        begin: None,
        deadline: None,
        notes: Vec::new(),
        trace: None,
    }
}

/// A job that was just accepted.
pub fn job_at(number: u128, work: Work, now: Timestamp) -> Job {
    Job::accepted(JobId::new(Uuid::from_u128(number)), Owner::new("tester"), parsed("dgx"), spec(work), now)
}

/// A plain command, accepted at the Unix epoch.
pub fn command_job(number: u128) -> Job {
    job_at(number, Work::Command { text: "true".to_owned() }, DateTime::UNIX_EPOCH)
}

/// A TAO training, accepted at the Unix epoch.
pub fn tao_job(number: u128) -> Job {
    let work = Work::Tao {
        network_arch: parsed("classification_pyt"),
        action: parsed("train"),
        specs: json!({"train": {"num_epochs": 3}}),
    };
    job_at(number, work, DateTime::UNIX_EPOCH)
}

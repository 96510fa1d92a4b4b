use serde_json::json;
use test_case::test_case;

use super::*;
use crate::{
    cluster::Cluster,
    policy::{BatchSettings, ImageSettings, RetrySettings},
    secret::Secrets,
};

fn clusters() -> Vec<Cluster> {
    let cluster = |name: &str, user: &str, host: &str| Cluster {
        name: name.parse().unwrap(),
        user: user.parse().unwrap(),
        hosts: vec![host.to_owned()],
        base_dir: "/lustre/users/tao".parse().unwrap(),
        account: None,
        partitions: Some("polar,grizzly".parse().unwrap()),
        mounts: vec!["/lustre".parse().unwrap()],
        resources: Resources::packaged().unwrap(),
        max_time_hours: 4.0,
        images: ImageSettings::packaged(&"/lustre/users/tao".parse().unwrap()).unwrap(),
        retries: RetrySettings::default(),
        batch: BatchSettings::default(),
    };
    vec![cluster("dgx", "tao", "login1"), cluster("other", "svc", "far")]
}

fn faults(request: Value) -> Vec<String> {
    let request = serde_json::from_value(request).unwrap();
    match JobSpec::from_request(request, &clusters()) {
        Ok(_) => Vec::new(),
        Err(faults) => faults.into_iter().map(|f| format!("{} {}", f.pointer, f.code)).collect(),
    }
}

fn accepted(request: Value) -> (JobSpec, Secrets, String) {
    let clusters = clusters();
    let (spec, secrets, cluster) =
        JobSpec::from_request(serde_json::from_value(request).unwrap(), &clusters).unwrap();
    (spec, secrets, cluster.name.to_string())
}

#[test]
fn a_command_gets_the_clusters_defaults() {
    let (spec, secrets, cluster) = accepted(json!({"command": "true"}));
    assert_eq!(cluster, "dgx");
    assert_eq!(spec.partitions.unwrap().to_string(), "polar,grizzly");
    assert_eq!(spec.resources, Resources::packaged().unwrap());
    assert!(secrets.is_empty());
}

#[test]
fn secrets_leave_the_spec_by_map_and_by_name() {
    let (spec, secrets, _) = accepted(json!({
        "command": "true",
        "docker_env_vars": {"WANDB_PROJECT": "x", "WANDB_API_KEY": "hunter2"},
        "secret_env_vars": {"PLAIN": "hunter3"},
        "cloud_metadata": {"aws": {"b": {"secret_key": "hunter4"}}},
    }));
    let stored = serde_json::to_string(&spec).unwrap();
    assert!(!stored.contains("hunter"), "{stored}");
    assert_eq!(secrets.env.len(), 2);
    assert_eq!(spec.secret_env.iter().map(EnvKey::as_str).collect::<Vec<_>>(), ["PLAIN", "WANDB_API_KEY"]);
}

#[test]
fn a_tao_workspace_chooses_among_the_configured_clusters() {
    let (_, _, cluster) = accepted(json!({
        "command": "true", "cloud_metadata": {"slurm_user": "svc", "slurm_hostname": ["far"]},
    }));
    assert_eq!(cluster, "other");
}

#[test_case(json!({}), &[" required"] ; "nothing to run")]
#[test_case(json!({"command": "x", "action": "train", "network_arch": "a"}), &["/command contradiction"] ; "both shapes")]
#[test_case(json!({"action": "train", "image": "x"}), &["/network_arch required"] ; "half a TAO job")]
#[test_case(json!({"action": "train", "network_arch": "a"}), &["/image required"] ; "a TAO job without image")]
#[test_case(json!({"command": "x", "backend_details": {"cluster_name": "nope"}}), &["/backend_details/cluster_name unknown_cluster"] ; "a cluster nobody configured")]
#[test_case(json!({"command": "x", "cloud_metadata": {"slurm_user": "svc", "slurm_hostname": ["evil"]}}), &["/cloud_metadata/slurm_hostname unknown_cluster"] ; "a host nobody configured")]
#[test_case(json!({"command": "x", "backend_details": {"partition": "p\n#SBATCH --uid=0"}}), &["/backend_details/partition invalid"] ; "a newline in a directive")]
#[test_case(json!({"command": "x", "docker_env_vars": {"A=B": "1", "SLURM_JOB_ID": "1"}}), &["/docker_env_vars/A=B invalid", "/docker_env_vars/SLURM_JOB_ID reserved"] ; "keys that are no keys")]
#[test_case(json!({"command": "x", "docker_env_vars": {"A": "1"}, "secret_env_vars": {"A": "2"}}), &["/secret_env_vars/A contradiction"] ; "one key twice")]
#[test_case(json!({"command": "x", "num_gpu": 1, "resources": {"num_gpus": 2}}), &["/num_gpu contradiction"] ; "two numbers of GPUs")]
#[test_case(json!({"command": "x", "container": {"mounts": ["/a,/b", "rel"]}}), &["/container/mounts/0 invalid", "/container/mounts/1 invalid"] ; "mounts that are none")]
#[test_case(json!({"command": "x", "labels": {"a/b\n": "c"}}), &["/labels/a~1b\n invalid"] ; "a label with a newline")]
#[test_case(json!({"command": " ", "name": "a\u{0}b"}), &["/name invalid", "/command invalid"] ; "several faults at once")]
fn a_fault_names_its_field(request: Value, expected: &[&str]) {
    assert_eq!(faults(request), expected);
}

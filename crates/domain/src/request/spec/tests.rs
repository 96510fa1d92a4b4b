use serde_json::json;
use test_case::test_case;

use super::*;
use crate::{
    cluster::{
        policy::{BatchSettings, ImageSettings, RetrySettings, SubmitSettings},
        target::Cluster,
    },
    request::secret::Secrets,
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
        node_local: Vec::new(),
        resources: Resources::packaged().unwrap(),
        max_time_hours: 4.0,
        images: ImageSettings::packaged(&"/lustre/users/tao".parse().unwrap()).unwrap(),
        retries: RetrySettings::default(),
        batch: BatchSettings::default(),
        submit: SubmitSettings::default(),
        rpc_budget: None,
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
#[test_case(json!({"command": "x", "image": "x", "container": {"mounts": ["/a,/b", "rel"]}}), &["/container/mounts/0 invalid", "/container/mounts/1 invalid"] ; "mounts that are none")]
#[test_case(json!({"command": "x", "image": "x", "container": {"mounts": ["/a", "/b$HOME:/c"]}}), &["/container/mounts/1 invalid"] ; "a mount that a shell would expand")]
#[test_case(json!({"command": "x", "docker_env_vars": {"UID": "0"}, "secret_env_vars": {"RANDOM": "1"}}), &["/docker_env_vars/UID reserved", "/secret_env_vars/RANDOM reserved"] ; "variables of bash")]
#[test_case(json!({"command": "x", "labels": {"a/b\n": "c"}}), &["/labels/a~1b\n invalid"] ; "a label with a newline")]
#[test_case(json!({"command": " ", "name": "a\u{0}b"}), &["/name invalid", "/command invalid"] ; "several faults at once")]
#[test_case(json!({"command": "x", "timeout_minutes": 0}), &["/timeout_minutes out_of_range"] ; "no time at all")]
#[test_case(json!({"command": "x", "retry": {"max_retries": 101}}), &["/retry/max_retries out_of_range"] ; "too many retries")]
#[test_case(json!({"command": "x", "resources": {"master_port": 22}}), &["/resources/master_port out_of_range"] ; "a port of the system")]
#[test_case(json!({"command": "x", "resources": {"master_port": 65536}}), &["/resources/master_port out_of_range"] ; "no port")]
#[test_case(json!({"command": "x", "inputs": ["lustre:///a", "lustre://a", "a", "file:///a", "s3://a/b", "/a/../b"]}), &["/inputs/1 invalid", "/inputs/2 local_path", "/inputs/3 local_path", "/inputs/4 remote_data", "/inputs/5 invalid"] ; "inputs that are none")]
#[test_case(json!({"command": "x", "docker_env_vars": {"DATA": "lustre://rel"}}), &["/docker_env_vars/DATA invalid"] ; "a bad URI in the environment")]
#[test_case(json!({"network_arch": "a", "action": "train", "image": "x", "specs": {"dataset": "s3://b/a"}}), &["/specs/dataset remote_data"] ; "a data set that would be fetched")]
#[test_case(json!({"command": "x", "docker_env_vars": {"CUDA_OVERRIDE_VERSION": "12.8; id"}}), &["/docker_env_vars/CUDA_OVERRIDE_VERSION invalid"] ; "a CUDA version that is none")]
#[test_case(json!({"command": "x", "secret_env_vars": {"CUDA_OVERRIDE_VERSION": "12.8"}}), &["/secret_env_vars/CUDA_OVERRIDE_VERSION invalid"] ; "a secret CUDA version")]
#[test_case(json!({"network_arch": "cosmos-rl", "action": "train", "image": "x", "specs": {"policy": {"parallelism": {"tp_size": 13}}}}), &["/specs/policy/parallelism impossible_shape"] ; "a shape that fits no node")]
#[test_case(json!({"network_arch": "cosmos-rl", "action": "train", "image": "x", "num_gpu": 4, "specs": {"policy": {"parallelism": {"tp_size": 8}}}}), &["/resources/num_gpus contradiction"] ; "fewer GPUs than its specification needs")]
fn a_fault_names_its_field(request: Value, expected: &[&str]) {
    assert_eq!(faults(request), expected);
}

// Every contradiction that a request can have, each with the one field that it is laid to.
#[test_case(json!({"command": "x", "action": "train", "network_arch": "a"}), "/command" ; "a command and a TAO job")]
#[test_case(json!({"command": "x", "specs": {}}), "/specs" ; "a command and specs")]
#[test_case(json!({"command": "x", "num_gpu": 1, "resources": {"num_gpus": 2}}), "/num_gpu" ; "two numbers of GPUs")]
#[test_case(json!({"command": "x", "resources": {"num_gpus": 7, "gpus_per_node": 2}}), "/resources/num_gpus" ; "a total and a number for each node")]
#[test_case(json!({"command": "x", "resources": {"time_hours": 1, "timeout_hours": 2}}), "/resources/timeout_hours" ; "a limit behind the limit")]
#[test_case(json!({"command": "x", "docker_env_vars": {"A": "1"}, "secret_env_vars": {"A": "2"}}), "/secret_env_vars/A" ; "one variable twice")]
#[test_case(json!({"command": "x", "image": "x", "container": {"use_sqsh": false, "require_sqsh": true}}), "/container/require_sqsh" ; "required and switched off")]
#[test_case(json!({"command": "x", "image": "x", "container": {"use_sqsh": false, "force_reconvert_latest": true}}), "/container/force_reconvert_latest" ; "converted anew and not at all")]
#[test_case(json!({"command": "x", "image": "x", "container": {"runtime": "apptainer", "use_sqsh": true}}), "/container/use_sqsh" ; "converted for Apptainer")]
#[test_case(json!({"command": "x", "image": "x", "container": {"runtime": "apptainer", "require_sqsh": true}}), "/container/require_sqsh" ; "a file for Apptainer required")]
#[test_case(json!({"command": "x", "container": {"mounts": ["/a"]}}), "/container" ; "a container without image")]
#[test_case(json!({"command": "x", "backend_details": {"cluster_name": "dgx"}, "cloud_metadata": {"slurm_user": "svc", "slurm_hostname": ["far"]}}), "/backend_details/cluster_name" ; "a cluster and the workspace of another")]
fn every_contradiction_is_one_fault_with_its_field(request: Value, pointer: &str) {
    assert_eq!(faults(request), [format!("{pointer} contradiction")]);
}

#[test]
fn null_means_not_given() {
    let (spec, ..) = accepted(json!({
        "command": "true", "labels": null, "resources": null, "container": null, "retry": null, "inputs": null,
        "backend_details": null, "cloud_metadata": null, "docker_env_vars": null, "secret_env_vars": null,
        "use_requeue": null, "timeout_minutes": null, "image": null,
    }));
    let (plain, ..) = accepted(json!({"command": "true"}));
    assert_eq!(serde_json::to_value(spec).unwrap(), serde_json::to_value(plain).unwrap());
}

#[test_case(&json!({"delay_seconds": 5}) => true; "a policy for failures of the infrastructure")]
#[test_case(&json!({"on": ["node_failure"]}) => false; "some of its failures")]
#[test_case(&json!({"on": ["timeout"]}) => false; "time limits")]
#[test_case(&json!({"exit_codes": [75]}) => false; "exit codes")]
#[test_case(&json!({"max_total_hours": 5}) => false; "a total time")]
fn slurm_requeues_a_job_only_if_its_policy_has_nothing_to_say(restart: &Value) -> bool {
    let (spec, ..) = accepted(json!({"command": "true", "restart": restart}));
    spec.use_requeue
}

#[test]
fn a_policy_does_not_go_with_what_it_cannot_bound() {
    let both = json!({"command": "true", "use_requeue": true, "restart": {"max_total_hours": 5}});
    assert_eq!(faults(both), ["/use_requeue contradiction"]);
    let (spec, ..) =
        accepted(json!({"command": "true", "use_requeue": true, "restart": {"on": ["node_failure"]}}));
    assert!(spec.use_requeue);
    let waits = json!({"command": "true", "array": {"indices": "0-3"}, "restart": {"delay_seconds": 5}});
    assert_eq!(faults(waits), ["/restart/delay_seconds unsupported"]);
}

#[test]
fn what_a_job_says_wins_over_the_cluster() {
    let (spec, ..) = accepted(json!({
        "command": "true", "image": "x", "container": {"use_sqsh": false}, "retry": {"max_retries": 0},
        "use_requeue": false, "timeout_minutes": 30, "resources": {"master_port": 29600},
        "inputs": ["slurm://None/lustre/a", "/lustre/b/"],
    }));
    assert!(!spec.image_policy.use_sqsh && !spec.use_requeue);
    assert_eq!((spec.max_retries, spec.master_port), (0, Some(29600)));
    assert_eq!(spec.timeout_minutes.map(std::num::NonZeroU32::get), Some(30));
    assert_eq!(
        spec.inputs.iter().map(slurm::RemotePath::as_str).collect::<Vec<_>>(),
        ["/lustre/a", "/lustre/b"]
    );
    assert_eq!(spec.required_paths, spec.inputs);
}

#[test]
fn an_image_that_is_a_file_must_exist_like_an_input() {
    let (spec, ..) =
        accepted(json!({"command": "x", "image": "/lustre/images/a.sqsh", "inputs": ["/lustre/b"]}));
    assert_eq!(
        spec.required_paths.iter().map(slurm::RemotePath::as_str).collect::<Vec<_>>(),
        ["/lustre/b", "/lustre/images/a.sqsh"]
    );
    let outside = accepted(json!({"command": "x", "image": "/images/a.sqsh"})).0;
    assert_eq!(outside.warnings(&clusters()[0]), [], "the program need not see its own image");
    assert!(accepted(json!({"command": "x", "image": "registry.example/a:1"})).0.required_paths.is_empty());
}

#[test_case(&json!({"num_gpus": 12}), Some((12, 16)) ; "two whole nodes for one and a half")]
#[test_case(&json!({"num_nodes": 2, "num_gpus": 8}), Some((8, 16)) ; "whole nodes, as many as asked for")]
#[test_case(&json!({"num_nodes": 2, "num_gpus": 2}), Some((2, 4)) ; "per node")]
#[test_case(&json!({"num_nodes": 2, "num_gpus": 16}), None ; "the total that was asked for")]
#[test_case(&json!({"num_gpus": 4}), None ; "one node")]
#[test_case(&json!({"num_nodes": 2, "gpus_per_node": 6}), None ; "per node, explicitly")]
#[test_case(&json!({"num_nodes": 2, "gpus_per_node": 2, "num_gpus": 2}), Some((2, 4)) ; "the number per node, twice")]
#[test_case(&json!({"num_nodes": 2, "gpus_per_node": 8, "num_gpus": 8}), Some((8, 16)) ; "whole nodes, explicitly")]
#[test_case(&json!({"num_nodes": 2, "gpus_per_node": 2, "num_gpus": 4}), None ; "both say the same")]
#[test_case(&json!({"num_nodes": 2}), None ; "no number was asked for")]
fn another_number_of_gpus_than_was_asked_for_is_a_warning(resources: &Value, expected: Option<(u32, u32)>) {
    let (spec, ..) = accepted(json!({"command": "x", "resources": resources}));
    // As it is read from the database later.
    let spec: JobSpec = serde_json::from_value(serde_json::to_value(spec).unwrap()).unwrap();
    let warnings = spec.warnings(&clusters()[0]);
    let Some((asked, total)) = expected else { return assert_eq!(warnings, []) };
    let [warning] = warnings.as_slice() else { panic!("{warnings:?}") };
    assert_eq!((warning.pointer.as_str(), warning.code), ("/resources/num_gpus", "gpu_total"));
    let both = format!("is {asked}, but the job gets {total} GPUs");
    assert!(warning.detail.contains(&both) && warning.detail.contains("gpus_per_node"), "{warning:?}");
}

#[test]
fn a_job_of_an_earlier_release_reads_back() {
    let (spec, ..) = accepted(json!({"command": "true"}));
    let mut stored = serde_json::to_value(spec).unwrap();
    for field in [
        "image_policy",
        "cloud_plain",
        "cloud_secret_keys",
        "inputs",
        "required_paths",
        "master_port",
        "max_retries",
        "use_requeue",
        "timeout_minutes",
    ] {
        stored.as_object_mut().unwrap().remove(field).unwrap();
    }
    let spec: JobSpec = serde_json::from_value(stored).unwrap();
    assert_eq!((spec.master_port, spec.max_retries, spec.use_requeue), (None, 10, true));
}

#[test]
fn a_training_of_several_roles_gets_the_nodes_of_its_specification() {
    let (spec, _, _) = accepted(json!({
        "network_arch": "cosmos-rl", "action": "train", "image": "x",
        "specs": {"policy": {"parallelism": {"tp_size": 16}}, "rollout": {"parallelism": {"tp_size": 8}}},
    }));
    assert_eq!((spec.resources.nodes, spec.resources.gpus_per_node, spec.resources.exclusive), (3, 8, true));
    let (spec, _, _) = accepted(json!({
        "network_arch": "cosmos-rl", "action": "evaluate", "image": "x", "resources": {"num_gpus": 1},
    }));
    assert_eq!((spec.resources.nodes, spec.resources.gpus_per_node), (1, 1), "an evaluation has no roles");
}

#[test]
fn a_job_with_mpi_has_the_plugin_of_its_cluster() {
    let mut clusters = clusters();
    clusters[0].submit.mpi_plugin = "pmix".parse().ok();
    let stored = |request| {
        let (spec, ..) = JobSpec::from_request(serde_json::from_value(request).unwrap(), &clusters).unwrap();
        serde_json::to_value(spec).unwrap()
    };
    let command = stored(json!({"command": "solve", "launcher": "mpi"}));
    assert_eq!(command["program"]["launcher"]["plugin"], "pmix", "{command}");
    let steps = stored(json!({"steps": [{"name": "solve", "command": "solve", "launcher": "mpi"}]}));
    assert_eq!(steps["work"]["list"][0]["launcher"]["plugin"], "pmix", "{steps}");
}

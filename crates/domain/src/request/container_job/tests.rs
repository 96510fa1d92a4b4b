use serde_json::json;
use test_case::test_case;

use super::*;

const ID: &str = "0f8fad5b-d9cb-469f-a165-70867728950e";

fn images() -> ContainerImages {
    ContainerImages {
        by_network: [("dino".to_owned(), "registry.example/tao/dino:1".parse().unwrap())].into(),
        default: Some("registry.example/tao/all:1".parse().unwrap()),
    }
}

fn read(document: Value) -> ContainerJob {
    serde_json::from_value(document).unwrap()
}

fn job(network: &str, specs: &Value) -> JobRequest {
    let document = json!({"neural_network_name": network, "action_name": "train", "specs": specs});
    read(document).into_request(&images()).unwrap()
}

#[test]
fn each_field_becomes_the_one_that_means_the_same() {
    let request = read(json!({
        "neural_network_name": "dino", "action_name": "train", "specs": {"train": {"num_gpus": 2}},
        "cloud_metadata": {"slurm_user": "tao", "slurm_hostname": ["login1"]},
        "docker_env_vars": {"WANDB_PROJECT": "x", "HF_TOKEN": null},
        "job_id": ID, "statefulset_replicas": 3,
    }))
    .into_request(&images())
    .unwrap();
    assert_eq!(request.id.unwrap().to_string(), ID);
    assert_eq!(request.network_arch.as_deref(), Some("dino"));
    assert_eq!(request.action.as_deref(), Some("train"));
    assert_eq!(request.image.as_deref(), Some("registry.example#tao/dino:1"));
    assert_eq!((request.resources.num_nodes, request.resources.gpus_per_node), (Some(3), Some(2)));
    assert_eq!(request.docker_env_vars, [("WANDB_PROJECT".to_owned(), "x".to_owned())].into());
    assert_eq!(request.cloud_metadata["slurm_user"], "tao");
}

#[test]
fn a_network_without_an_image_of_its_own_gets_the_one_for_all_and_without_one_is_refused() {
    assert_eq!(job("segformer", &json!({})).image.as_deref(), Some("registry.example#tao/all:1"));
    let none = ContainerImages { default: None, ..images() };
    let document = json!({"neural_network_name": "segformer", "action_name": "train"});
    let refused = read(document).into_request(&none).unwrap_err();
    assert_eq!((refused.pointer.as_str(), refused.code), ("/neural_network_name", "no_image"));
    assert!(refused.detail.contains("tao.default_image"), "{}", refused.detail);
}

#[test]
fn where_a_job_runs_and_whom_it_calls_is_not_the_callers_to_say() {
    let document = json!({
        "neural_network_name": "dino", "action_name": "train",
        "docker_env_vars": {
            "CLOUD_BASED": "True", "TAO_API_RESULTS_DIR": "/elsewhere", "TAO_API_JOB_ID": "x",
            "TAO_EXECUTION_BACKEND": "local-k8s", "JOB_ID": ID,
        },
    });
    let request = read(document).into_request(&images()).unwrap();
    assert_eq!(request.docker_env_vars.keys().collect::<Vec<_>>(), ["JOB_ID"]);
}

#[test_case(&json!({}), None ; "nothing said: the cluster's default")]
#[test_case(&json!({"num_gpus": 2}), Some(2) ; "for every action")]
#[test_case(&json!({"train": {"num_gpus": 4}, "num_gpus": 1}), Some(4) ; "the highest counts")]
#[test_case(&json!({"evaluate": {"num_gpus": 4}}), None ; "of another action")]
#[test_case(&json!({"train": {"gpu_ids": [0, 1, 1, 2]}}), Some(3) ; "a list, each once")]
#[test_case(&json!({"train": {"gpu_id": 7}}), Some(1) ; "the number of one")]
#[test_case(&json!({"train": {"system": {"gpus": 8}}}), Some(8) ; "in the system section")]
#[test_case(&json!({"train": {"num_gpus": 0, "gpus": -1}}), None ; "none and all are no numbers")]
#[test_case(&json!({"train": [1], "gpus": "4"}), None ; "of another shape")]
fn gpus_are_those_that_the_specification_names(specs: &Value, gpus: Option<u32>) {
    assert_eq!(job("dino", specs).resources.gpus_per_node, gpus);
}

#[test]
fn the_roles_of_a_training_ask_for_themselves() {
    assert_eq!(job("cosmos-rl", &json!({"num_gpus": 2})).resources.gpus_per_node, None);
}

#[test_case("/image", "/neural_network_name")]
#[test_case("/network_arch", "/neural_network_name")]
#[test_case("/action", "/action_name")]
#[test_case("/id", "/job_id")]
#[test_case("/resources/num_nodes", "/statefulset_replicas")]
#[test_case("/resources/gpus_per_node", "/specs")]
#[test_case("/specs/train/dataset", "/specs/train/dataset")]
#[test_case("/cloud_metadata/slurm_hostname", "/cloud_metadata/slurm_hostname")]
fn a_fault_points_into_the_body_that_was_sent(ours: &str, theirs: &str) {
    assert_eq!(container_job_pointer(ours), theirs);
}

#[test_case("/results/0f8fad5b-d9cb-469f-a165-70867728950e", true ; "TAO's own place")]
#[test_case("s3://bucket/results/0f8fad5b-d9cb-469f-a165-70867728950e/", true ; "in a store, with a slash")]
#[test_case("/results/0f8fad5b-d9cb-469f-a165-70867728950e/other", false ; "below it")]
#[test_case("/results/exp-1", false ; "another name")]
#[test_case("", false ; "nothing")]
fn a_results_directory_names_a_job_by_its_last_part(text: &str, named: bool) {
    assert_eq!(ResultsDir::new(text).id.is_some(), named);
}

#[test]
fn a_results_directory_is_looked_for_as_it_was_stored() {
    assert_eq!(ResultsDir::new("lustre:///lustre/out").as_stored, "/lustre/out");
    assert_eq!(ResultsDir::new("s3://bucket/out").as_stored, "s3://bucket/out");
}

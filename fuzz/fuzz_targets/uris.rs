//! A complete request: URIs in specifications, inputs and environment, and all other fields.
#![no_main]

use domain::{JobRequest, JobSpec};
use libfuzzer_sys::fuzz_target;
use serde_json::json;

fn read(request: serde_json::Value) {
    if let Ok(request) = serde_json::from_value::<JobRequest>(request) {
        // A refusal must list at least one error.
        if let Err(faults) = JobSpec::from_request(request, &[testkit::cluster()]) {
            assert!(!faults.is_empty());
        }
    }
}

fuzz_target!(|input: &[u8]| {
    if let Ok(request) = serde_json::from_slice(input) {
        read(request);
    }
    let text = String::from_utf8_lossy(input);
    read(json!({
        "network_arch": "classification_pyt", "action": "train", "image": "registry.test/tao:1",
        "specs": {"train": {"dataset": &text}, "dataset": {"train_dataset": {"images_dir": &text}}},
        "inputs": [&text],
        "docker_env_vars": {"DATA": &text},
        "backend_details": {"backend_type": "slurm"},
    }));
});

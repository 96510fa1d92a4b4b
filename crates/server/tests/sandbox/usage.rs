//! What jobs use of GPUs that replay a trace, and the idle policy.

use serde_json::{Value, json};

use crate::{
    ending::held,
    options::service_with,
    service::{Service, fresh_id, until},
};

/// As long as the slowest machine takes.
const PATIENCE: std::time::Duration = std::time::Duration::from_mins(5);

/// A job on so many nodes with two GPUs each that replay this trace until the test lets it go.
fn submit(service: &Service, nodes: u32, trace: &[[u32; 2]], policy: &Value) -> String {
    let id = fresh_id();
    let lines: Vec<String> = trace.iter().map(|[first, second]| format!("{first} {second}")).collect();
    let lines = lines.join("\n");
    service
        .sandbox
        .login(&format!("mkdir -p ~/gpu-traces && printf '%s\\n' '{lines}' > ~/gpu-traces/tao-job-{id}"));
    let mut job = held("true");
    job["id"] = id.clone().into();
    job["idle_policy"] = policy.clone();
    job["resources"]["num_nodes"] = nodes.into();
    job["resources"]["gpus_per_node"] = 2.into();
    job["resources"].as_object_mut().unwrap().remove("num_gpus");
    service.submit(&job);
    id
}

fn usage(service: &Service, id: &str) -> Value {
    service.get(&format!("/jobs/{id}/usage")).json()
}

/// The mean of so many samples of one GPU.
fn mean(trace: &[[u32; 2]], gpu: usize, samples: usize) -> f64 {
    let sum: u32 = trace.iter().cycle().take(samples).map(|sample| sample[gpu]).sum();
    f64::from(sum) / f64::from(u32::try_from(samples).unwrap())
}

#[test]
fn a_trace_is_measured_on_each_node() {
    let service = service_with("usage_seconds = 1");
    let trace: Vec<[u32; 2]> = (0..40).map(|k| [(k * 37) % 101, if k % 5 == 0 { 90 } else { 0 }]).collect();
    let id = submit(&service, 2, &trace, &Value::Null);
    let mut told = Value::Null;
    until("both nodes to tell 15 samples", PATIENCE, || {
        told = usage(&service, &id);
        let gpus = told["measured"]["gpus"].as_array().map_or(&[][..], Vec::as_slice);
        gpus.len() == 4 && gpus.iter().all(|gpu| gpu["samples"].as_u64().unwrap() >= 15)
    });
    for gpu in told["measured"]["gpus"].as_array().unwrap() {
        let samples = usize::try_from(gpu["samples"].as_u64().unwrap()).unwrap();
        let expected = mean(&trace, usize::try_from(gpu["index"].as_u64().unwrap()).unwrap(), samples);
        assert!((gpu["percent"].as_f64().unwrap() - expected).abs() < 1.0, "{expected} of {gpu}");
    }
    let nodes = told["measured"]["nodes"].as_array().unwrap();
    assert_eq!(nodes.len(), 2, "{told}");
    assert!(told["notes"][0].as_str().unwrap().starts_with("4 GPUs, "), "{told}");
    let list = service.get("/jobs?status=Running").json();
    assert!(list["jobs"][0]["gpu_percent"].as_f64().is_some(), "{list}");
    service.let_go(&id);
    assert_eq!(service.wait_ended(&id)["status"], "Done");
    let mut ended = Value::Null;
    until("accounting", PATIENCE, || {
        ended = usage(&service, &id);
        ended["accounted"]["runs"] == 1
    });
    let seconds = ended["accounted"]["seconds"].as_u64().unwrap();
    assert_eq!(ended["accounted"]["gpu_seconds"], seconds * 4, "{ended}");
    assert!(
        ended["accounted"]["cpu_seconds_used"].is_u64()
            && ended["accounted"]["most_memory_mib"].is_u64()
            && ended["measured"]["gpus"][3].is_object(),
        "{ended}"
    );
}

#[test]
fn a_job_with_idle_gpus_is_paused_and_a_busy_one_goes_on() {
    let service = service_with("usage_seconds = 1");
    let policy = json!({"below_percent": 5, "minutes": 1, "action": "pause"});
    let idle = submit(&service, 1, &[[0, 1], [4, 0]], &policy);
    let busy = submit(&service, 1, &[[0, 0], [0, 0], [0, 60]], &policy);
    let canceled = submit(&service, 1, &[[0, 0]], &json!({"minutes": 1, "action": "cancel"}));
    let warned = service.wait(&idle, "a warning", |status| {
        status["message"].as_str().unwrap().contains("No GPU has reached 5 %")
    });
    assert_eq!(warned["status"], "Running", "{warned}");
    let paused = service.wait(&idle, "the pause", |status| status["status"] == "Paused");
    assert!(paused["slurm_state"] != "RUNNING", "{paused}");
    let ended = service.wait_ended(&canceled);
    assert_eq!(ended["status"], "Error", "{ended}");
    assert!(
        ended["message"].as_str().unwrap().starts_with("No GPU has reached 5 % for 1 min, since "),
        "{ended}"
    );
    assert_eq!(service.status(&busy)["status"], "Running");
    let busy_for = usage(&service, &busy);
    assert!(busy_for["measured"]["gpu_percent"].as_f64().unwrap() > 5.0, "{busy_for}");
    service.let_go(&busy);
    assert_eq!(service.wait_ended(&busy)["status"], "Done");
}

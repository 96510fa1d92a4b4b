//! What jobs ask for beyond nodes, GPUs and time, on a real Slurm: `sbatch --test-only` takes it, and steps get it.

use serde_json::{Value, json};
use test_case::test_case;

use crate::{clusters::learnt, service::Service};

/// A service whose cluster has these settings.
pub(crate) fn service_with(settings: &str) -> Service {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), format!("[[clusters]]\nname = \"sandbox\"\n{settings}\n")).unwrap();
    Service::start_with(&[("TAO_SLURM_CONFIG", file.path().to_str().unwrap())])
}

/// A short command with these resources and details.
fn job(resources: &Value, details: &Value) -> Value {
    let mut job =
        json!({"command": "true", "resources": {"num_gpus": 1, "cpus_per_task": 2, "time_hours": 0.1}});
    for (name, value) in resources.as_object().unwrap() {
        job["resources"][name] = value.clone();
    }
    job["backend_details"] = details.clone();
    job
}

/// What sbatch says of a valid request, and the directives of its script.
fn tested(service: &Service, job: &Value) -> (bool, String, String) {
    let answer = service.post("/jobs/validate?live=true", &job.to_string());
    assert_eq!(answer.status, 200, "{job}: {}", answer.text);
    let seen = answer.json();
    let script = seen["batch_script"].as_str().unwrap();
    let lines: Vec<&str> = script.lines().filter(|line| line.starts_with("#SBATCH")).collect();
    let output = seen["live"]["sbatch_output"].as_str().unwrap().to_owned();
    (seen["live"]["accepted"] == true, output, lines.join("\n"))
}

#[test]
fn slurm_takes_every_option_that_this_cluster_has() {
    let service = Service::start();
    let cases = [
        (json!({"memory": "64G"}), json!({}), "--mem=64G"),
        (json!({"memory": "0", "exclusive": true}), json!({}), "--exclusive"),
        (json!({"memory": {"per_cpu": "1G"}}), json!({}), "--mem-per-cpu=1G"),
        (json!({"memory": {"per_gpu": "8G"}}), json!({}), "--mem-per-gpu=8G"),
        (json!({"tasks_per_node": 4, "num_nodes": 2}), json!({}), "--ntasks=8"),
        (json!({"constraint": "gpu"}), json!({}), "--constraint=gpu"),
        (json!({"nodelist": "node[01-02]", "num_nodes": 2}), json!({}), "--nodelist=node[01-02]"),
        (json!({"exclude": "node03"}), json!({}), "--exclude=node03"),
        (json!({"switches": "1@00:10:00"}), json!({}), "--switches=1@00:10:00"),
        (json!({}), json!({"account": "tao_account", "qos": "normal"}), "--qos=normal"),
        (json!({}), json!({"nice": 100}), "--nice=100"),
        (json!({}), json!({"begin": "now+1hour", "deadline": "now+12hours"}), "--deadline=now+43"),
        (
            json!({}),
            json!({"comment": "it's \"quoted\" #1 \\ here"}),
            r#"--comment="it's \"quoted\" #1 \\ here""#,
        ),
        (json!({}), json!({"sbatch_options": {"hint": "nomultithread", "contiguous": true}}), "--contiguous"),
        (json!({}), json!({"sbatch_options": {"gres": null, "wait-all-nodes": false}}), "--nodes=1"),
        (
            json!({"gpus_per_node": 8, "num_gpus": null, "tasks_per_node": 8, "memory": {"per_gpu": "8G"}}),
            json!({"sbatch_options": {"gpus-per-task": 1, "cpus-per-gpu": 4, "cpus-per-task": null}}),
            "--gpus-per-task=1",
        ),
    ];
    for (resources, details, line) in cases {
        let job = job(&resources, &details);
        let (accepted, output, lines) = tested(&service, &job);
        assert!(accepted, "{job}: {output}\n{lines}");
        assert!(lines.contains(line), "{line}: {lines}");
    }
}

#[test_case(&json!({"licenses": "matlab:2"}), &json!({}), "license" ; "licenses")]
#[test_case(&json!({}), &json!({"reservation": "course"}), "reservation" ; "a reservation")]
fn slurm_reads_the_options_that_this_cluster_lacks(resources: &Value, details: &Value, said: &str) {
    let service = Service::start();
    let (accepted, output, lines) = tested(&service, &job(resources, details));
    assert!(!accepted && output.to_lowercase().contains(said), "{output}\n{lines}");
}

#[test]
fn gpus_are_asked_for_as_the_cluster_is_configured() {
    let service = service_with(
        "gpu_request = \"gpus-per-node\"\nqos = \"normal\"\nsbatch_options = { hint = \"nomultithread\" }",
    );
    let (accepted, output, lines) = tested(&service, &job(&json!({"num_gpus": 2}), &json!({})));
    assert!(accepted, "{output}");
    assert!(lines.contains("--gpus-per-node=2") && !lines.contains("--gres"), "{lines}");
    assert!(lines.contains("--qos=normal") && lines.contains("--hint=nomultithread"), "{lines}");
}

#[test]
fn what_the_cluster_does_not_have_is_refused_with_what_it_has() {
    let service = Service::start();
    let list = learnt(&service);
    let polar = list["partitions"].as_array().unwrap().iter().find(|one| one["name"] == "polar").unwrap();
    assert_eq!(polar["accounts"], json!({"tao_account": ["normal"]}), "{polar}");
    assert_eq!((&polar["features"], &polar["gres"]), (&json!(["gpu"]), &json!({"gpu": 8})), "{polar}");
    let cases = [
        (json!({"memory": "501G"}), json!({}), "memory_limit", "512000 MiB"),
        (json!({"cpus_per_task": 65}), json!({}), "cpu_limit", "more than 64"),
        (json!({"gpu_type": "a100"}), json!({}), "unknown_gpu_type", "`gpu`"),
        (json!({"constraint": "ib"}), json!({}), "unknown_feature", "`gpu`"),
        (json!({}), json!({"account": "other"}), "unknown_account", "`tao_account`"),
        (json!({}), json!({"qos": "high"}), "unknown_qos", "`normal`"),
    ];
    for (resources, details, code, part) in cases {
        let answer = service.post("/jobs", &job(&resources, &details).to_string());
        assert_eq!(answer.status, 422, "{}", answer.text);
        let error = answer.json()["errors"][0].clone();
        assert_eq!(error["code"], code, "{error}");
        assert!(error["detail"].as_str().unwrap().contains(part), "{error}");
    }
}

#[test]
fn every_task_gets_its_cpus_and_the_comment_reaches_slurm() {
    let service = Service::start();
    let mut job = job(
        &json!({"tasks_per_node": 2, "cpus_per_task": 3, "num_nodes": 2, "num_gpus": 2}),
        &json!({"comment": "{\"idle_gpu\": \"exempt\"}"}),
    );
    // srun sets this variable for its tasks from the number that it was given.
    job["command"] = "echo \"task $SLURM_PROCID of $SLURM_NTASKS has $SRUN_CPUS_PER_TASK CPUs and GPUs $CUDA_VISIBLE_DEVICES\"; \
                      scontrol show job $SLURM_JOB_ID | grep Comment= >&2"
        .into();
    let id = service.submit(&job);
    assert_eq!(service.wait_ended(&id)["status"], "Done");
    let out = service.get(&format!("/jobs/{id}/logs?stream=out")).text;
    for task in 0..4 {
        assert!(out.contains(&format!("task {task} of 4 has 3 CPUs and GPUs 0,1\n")), "{out}");
    }
    let err = service.get(&format!("/jobs/{id}/logs?stream=err")).text;
    assert!(err.contains("Comment={\"idle_gpu\": \"exempt\""), "{err}");
}

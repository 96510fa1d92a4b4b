//! The requests of `deploy/examples`: what each of them becomes in the batch script, on a cluster like that of a Slurm guide.

use std::{collections::BTreeMap, fs, path::PathBuf};

use serde_json::{Value, json};
use sqlx::PgPool;

use crate::{clusters::learn, support::TestApi};

/// Two partitions: nodes without GPUs, and nodes with GPUs, instances of MIG, MPS and shards.
const SINFO: &str = "compute*|up|7-00:00:00|n/a|100|idle|64|256000|(null)|(null)\n\
    gpu|up|7-00:00:00|n/a|32|idle|128|1024000|gpu:a100:8,gpu:1g.5gb:4,mps:800,shard:64|a100,nvlink";

/// For each file the directives that it is about, in their order, and those that it must not have.
const EXPECTED: &[(&str, &[&str], &[&str])] = &[
    ("account-qos", &["account=ml-team", "partition=gpu", "qos=high"], &[]),
    ("apptainer", &["nodes=1", "ntasks-per-node=1", "gres=gpu:1", "time=04:00:00"], &["exclusive"]),
    ("begin-deadline", &["begin=now+7200seconds", "deadline=now+43200seconds"], &[]),
    ("constraint", &["gres=gpu:8", "mem=512G", "constraint=a100&nvlink", "exclusive"], &[]),
    (
        "cpu",
        &[
            "partition=compute",
            "nodes=1",
            "ntasks-per-node=4",
            "ntasks=4",
            "cpus-per-task=2",
            "mem=16G",
            "time=02:00:00",
        ],
        &["gres", "exclusive"],
    ),
    (
        "deepspeed",
        &[
            "nodes=4",
            "ntasks-per-node=1",
            "gres=gpu:8",
            "cpus-per-task=64",
            "mem=0",
            "time=4-00:00:00",
            "exclusive",
        ],
        &[],
    ),
    (
        "gpu-type",
        &["nodes=1", "gres=gpu:a100:2", "cpus-per-task=8", "mem=64G", "time=12:00:00"],
        &["exclusive"],
    ),
    ("gpus-any-type", &["gres=gpu:2"], &["mem", "constraint"]),
    ("gpus-per-node", &["nodes=4", "ntasks-per-node=1", "ntasks=4", "gres=gpu:8"], &[]),
    (
        "gpus-per-task",
        &[
            "ntasks-per-node=8",
            "ntasks=8",
            "gres=gpu:8",
            "mem-per-gpu=32G",
            "cpus-per-gpu=8",
            "gpu-bind=closest",
            "gpus-per-task=1",
        ],
        &["cpus-per-task"],
    ),
    ("gres-mig", &["gres=gpu:1g.5gb:1"], &[]),
    ("gres-mps", &["gres=mps:50"], &["gpus-per-node"]),
    ("gres-several-types", &["gres=gpu:a100:1,gpu:1g.5gb:2"], &[]),
    ("gres-shard", &["gres=shard:2"], &[]),
    ("launcher-accelerate", &["nodes=2", "ntasks-per-node=1", "gres=gpu:8"], &[]),
    ("launcher-deepspeed", &["nodes=2", "ntasks-per-node=1", "gres=gpu:8"], &[]),
    ("launcher-mpi", &["nodes=4", "ntasks-per-node=4", "ntasks=16", "gres=gpu:4", "cpus-per-task=8"], &[]),
    ("launcher-ray", &["nodes=4", "ntasks-per-node=1", "gres=gpu:8", "cpus-per-task=64"], &[]),
    ("launcher-torchrun", &["nodes=2", "ntasks-per-node=1", "gres=gpu:8"], &[]),
    ("licenses", &["licenses=matlab:2"], &["gres"]),
    (
        "memory-per-cpu",
        &[
            "nodes=8",
            "ntasks-per-node=32",
            "ntasks=256",
            "cpus-per-task=1",
            "mem-per-cpu=4G",
            "time=1-00:00:00",
            "exclusive",
        ],
        &["gres", "mem"],
    ),
    ("nice-comment", &["nice=100", r#"comment="{\"idle_gpu\": \"exempt\"}""#], &[]),
    ("nodelist", &["nodes=2", "nodelist=gpu[001-002]", "exclude=gpu[013,017]"], &[]),
    ("pyxis", &["nodes=4", "gres=gpu:8", "exclusive"], &[]),
    (
        "ray-experiments",
        &[
            "array=0-5%2",
            "nodes=4",
            "ntasks-per-node=1",
            "gres=gpu:1",
            "cpus-per-task=8",
            "mem-per-cpu=4G",
            "time=08:00:00",
            "exclusive",
        ],
        &["mem"],
    ),
    ("reservation", &["reservation=course"], &[]),
    ("restart", &["nodes=1", "gres=gpu:1", "time=04:00:00"], &[]),
    ("restart-prequeue", &["nodes=1", "gres=gpu:1", "time=04:00:00"], &[]),
    ("sbatch-options", &["contiguous", "hint=nomultithread", "threads-per-core=1", "tmp=10G"], &[]),
    ("sbatch-options-dropped", &["nodes=1", "cpus-per-task=16"], &["ntasks-per-node", "wait-all-nodes"]),
    ("services-and-steps", &["nodes=2", "gres=gpu:8"], &[]),
    (
        "sweep",
        &["array=0-19%5", "nodes=1", "ntasks-per-node=1", "gres=gpu:1", "mem=32G", "time=06:00:00"],
        &["exclusive"],
    ),
    ("sweep-by-number", &["array=0-999%50", "gres=gpu:1"], &[]),
    ("switches", &["nodes=4", "switches=1@00:30:00"], &[]),
    (
        "whole-nodes",
        &[
            "nodes=4",
            "ntasks-per-node=1",
            "gres=gpu:8",
            "cpus-per-task=64",
            "mem=0",
            "time=3-00:00:00",
            "exclusive",
        ],
        &[],
    ),
];

/// The body of each file, by its name.
fn examples() -> BTreeMap<String, Value> {
    let directory = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../deploy/examples");
    let files = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let json = files.filter(|path| path.extension().is_some_and(|end| end == "json"));
    json.map(|path| {
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        (name, serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap())
    })
    .collect()
}

/// The directives of a script, without their beginning.
fn directives(script: &str) -> Vec<&str> {
    script.lines().filter_map(|line| line.strip_prefix("#SBATCH --")).collect()
}

fn option(directive: &str) -> &str {
    directive.split('=').next().unwrap_or(directive)
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn each_file_becomes_its_directives(pool: PgPool) {
    let api = TestApi::new(pool);
    learn(&api, SINFO).await;
    let examples = examples();
    let named: Vec<&str> = EXPECTED.iter().map(|(name, ..)| *name).collect();
    assert_eq!(examples.keys().map(String::as_str).collect::<Vec<_>>(), named);
    for (name, expected, missing) in EXPECTED {
        let answer = api.post("/jobs/validate", &examples[*name]).await;
        assert_eq!(answer.status, 200, "{name}: {}", answer.text());
        let seen = answer.json();
        assert_eq!(seen["warnings"], json!([]), "{name}");
        let script = seen["batch_script"].as_str().unwrap();
        let found = directives(script);
        let about: Vec<&str> = found.iter().filter(|line| expected.contains(*line)).copied().collect();
        assert_eq!(about, *expected, "{name}: {found:#?}");
        let unwanted: Vec<&&str> = found.iter().filter(|line| missing.contains(&option(line))).collect();
        assert!(unwanted.is_empty(), "{name}: {unwanted:?}");
        for line in &found {
            let is_quoted = line.contains("=\"") && line.ends_with('"');
            assert!(is_quoted || !line.contains(' '), "{name}: {line} is more than one word");
        }
        let mut options: Vec<&str> = found.iter().map(|line| option(line)).collect();
        options.sort_unstable();
        assert!(options.windows(2).all(|two| two[0] != two[1]), "{name}: {options:?}");
    }
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn the_examples_for_nemo_evaluator_are_accepted(pool: PgPool) {
    let api = TestApi::new(pool);
    learn(&api, SINFO).await;
    let example = |name: &str| -> Value {
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../deploy/examples/nemo-evaluator");
        serde_json::from_str(&fs::read_to_string(path.join(name)).unwrap()).unwrap()
    };
    let answer = api.post("/jobs/validate", &example("one-job.json")).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(answer.json()["warnings"], json!([]));
    let script = answer.json()["batch_script"].as_str().unwrap().to_owned();
    for name in ["model-0", "model-1", "model", "judge", "gsm8k-cot-instruct", "aime-2025"] {
        assert!(script.contains(&format!("_tao_component {name} ")), "{name}: {script}");
    }
    let answer = api.post("/pipelines", &example("pipeline.json")).await;
    assert_eq!(answer.status, 201, "{}", answer.text());
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn srun_gets_the_cpus_of_a_task(pool: PgPool) {
    let api = TestApi::new(pool);
    let script = async |body: Value| {
        let answer = api.post("/jobs/validate", &body).await.json();
        answer["batch_script"].as_str().unwrap().to_owned()
    };
    let plain = json!({"command": "true", "resources": {"cpus_per_task": 6}});
    assert!(script(plain.clone()).await.contains("\nexport SRUN_CPUS_PER_TASK=6\n"));
    let mut dropped = plain;
    dropped["backend_details"] = json!({"sbatch_options": {"cpus-per-task": null}});
    assert!(!script(dropped).await.contains("SRUN_CPUS_PER_TASK"));
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn what_no_partition_has_is_refused_with_the_limit(pool: PgPool) {
    let api = TestApi::new(pool);
    learn(&api, SINFO).await;
    let cases = [
        (json!({"num_nodes": 33}), "/resources/num_nodes node_limit", "partition gpu has 32"),
        (
            json!({"gpus_per_node": 16, "max_num_gpus_per_node": 16}),
            "/resources/gpus_per_node gpu_limit",
            "more than 12",
        ),
        (json!({"memory": "2T"}), "/resources/memory memory_limit", "more than 1024000 MiB"),
        (json!({"cpus_per_task": 256}), "/resources/cpus_per_task cpu_limit", "more than 128"),
        (json!({"time_hours": 200}), "/resources/time_hours time_limit", "allows 168"),
        (json!({"gpu_type": "h100"}), "/resources/gpu_type unknown_gpu_type", "`gpu:a100`"),
        (json!({"constraint": "ib"}), "/resources/constraint unknown_feature", "`a100`, `nvlink`"),
        (json!({"gres": [{"name": "nvme"}]}), "/resources/gres/0 unknown_gres", "`shard`"),
    ];
    for (resources, expected, part) in cases {
        let body =
            json!({"command": "true", "resources": resources, "backend_details": {"partition": "gpu"}});
        for path in ["/jobs", "/jobs/validate"] {
            let problem = api.post(path, &body).await.problem(422, "invalid_request");
            let error = &problem["errors"][0];
            let seen = format!("{} {}", error["pointer"].as_str().unwrap(), error["code"].as_str().unwrap());
            assert_eq!(seen, expected, "{problem}");
            assert!(error["detail"].as_str().unwrap().contains(part), "{error}");
        }
    }
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_doubt_is_a_warning_that_stays_with_the_job(pool: PgPool) {
    let api = TestApi::new(pool);
    learn(&api, SINFO).await;
    // The report is old after three intervals.
    api.clock.advance(chrono::TimeDelta::hours(2));
    let body = json!({
        "command": "true", "resources": {"constraint": "ib", "time_hours": 1}, "backend_details": {"partition": "gpu"},
    });
    let validated = api.post("/jobs/validate", &body).await.json();
    assert_eq!(validated["warnings"][0]["code"], "unknown_feature", "{validated}");
    let created = api.post("/jobs", &body).await;
    assert_eq!(created.status, 201, "{}", created.text());
    let created = created.json();
    assert_eq!(created["warnings"], validated["warnings"]);
    let id = created["id"].as_str().unwrap();
    assert_eq!(api.get(&format!("/jobs/{id}")).await.json()["warnings"], validated["warnings"]);
}

//! Hostile values in every field of a request: never a failure of ours, and never more than data in the script.

use serde_json::{Value, json};
use sqlx::PgPool;

use crate::support::TestApi;

/// Each names `owned`, so that it can be found where it should not be.
fn hostile() -> Vec<Value> {
    let texts = [
        "owned\n#SBATCH --uid=0",
        "owned\r\n",
        "'; touch owned; '",
        "\"; touch owned; \"",
        "-oProxyCommand=owned",
        "--owned",
        "$(touch owned)",
        "`touch owned`",
        "owned,owned",
        "owned|owned",
        "owned;owned&",
        "owned\0",
        "\u{202e}owned größe 日本",
        "../../owned",
        "%owned%j",
        "owned\\",
        "",
    ];
    let mut values: Vec<Value> = texts.into_iter().map(Value::from).collect();
    values.push("owned".repeat(200_000).into());
    values.extend([
        json!(null),
        json!(-1),
        json!(1e308),
        json!(["owned"]),
        json!({"owned": "owned"}),
        json!(true),
    ]);
    values
}

fn request() -> Value {
    json!({
        "id": "01890a5d-ac96-774b-bcce-b302099a8057",
        "name": "x", "labels": {"team": "x"}, "image": "registry.example/a:1", "network_arch": "a", "action": "train",
        "specs": {"x": "y", "dataset": "/lustre/a"}, "cloud_metadata": {"base_results_dir": "x", "aws": {"key": "x"}},
        "docker_env_vars": {"A": "x"}, "secret_env_vars": {"B": "x"}, "inputs": ["/lustre/a"], "num_gpu": 1,
        "resources": {"num_nodes": 1, "num_gpus": 1, "max_num_gpus_per_node": 8, "cpus_per_task": 1, "time_hours": 1,
                      "timeout_hours": 0.5, "master_port": 29500},
        "container": {"mounts": ["/lustre"], "use_sqsh": true, "require_sqsh": false, "force_reconvert_latest": false},
        "webhook": {"url": "https://example.org/hook", "secret": "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"},
        "retry": {"max_retries": 1}, "use_requeue": true, "timeout_minutes": 5,
        "backend_details": {"backend_type": "slurm", "partition": "polar", "cluster_name": "dgx"},
    })
}

/// The pointers of all values, those of objects and arrays too.
fn pointers(value: &Value, at: &str, found: &mut Vec<String>) {
    found.push(at.to_owned());
    match value {
        Value::Object(fields) => {
            fields.iter().for_each(|(key, value)| pointers(value, &format!("{at}/{key}"), found));
        }
        Value::Array(items) => {
            items
                .iter()
                .enumerate()
                .for_each(|(index, value)| pointers(value, &format!("{at}/{index}"), found));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn check(script: &str, what: &str) {
    // sbatch reads directives up to the first line that is neither empty nor a comment (sbatch(1)).
    let header: Vec<&str> =
        script.lines().take_while(|line| line.is_empty() || line.starts_with('#')).collect();
    assert!(header.iter().any(|line| line.starts_with("#SBATCH --time=")), "{what}");
    for line in header.iter().filter(|line| line.contains("SBATCH")) {
        let plain = |c: char| c.is_ascii_alphanumeric() || "#-=_.,:/+@ ".contains(c);
        assert!(line.starts_with("#SBATCH --") && line.chars().all(plain), "{what}: {line}");
        assert!(!line.contains("owned"), "{what}: {line}");
    }
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_mount_that_the_shell_of_pyxis_would_expand_is_refused(pool: PgPool) {
    let api = TestApi::new(pool);
    for expanded in ['$', '`', '"', '\'', '\\'] {
        let container = json!({"mounts": [format!("/lustre/a{expanded}b:/data")]});
        let image = "registry.example/a:1";
        let whole = json!({"command": "x", "image": image, "container": container});
        let step = json!({"image": image, "steps": [{"name": "a", "command": "x", "container": container}]});
        for (body, pointer) in [(whole, "/container/mounts/0"), (step, "/steps/0/container/mounts/0")] {
            let fault = api.post("/jobs", &body).await.problem(422, "invalid_request")["errors"][0].clone();
            assert_eq!(fault["pointer"], pointer, "{fault}");
            assert!(fault["detail"].as_str().unwrap().contains("the shell of Pyxis would expand"), "{fault}");
        }
    }
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_hostile_value_in_any_field_is_refused_or_harmless(pool: PgPool) {
    let api = TestApi::new(pool);
    let mut all = Vec::new();
    pointers(&request(), "", &mut all);
    assert_eq!(api.post("/jobs/validate", &request()).await.status, 200);
    let (mut refused, mut harmless) = (0, 0);
    for pointer in all {
        for value in hostile() {
            let mut body = request();
            *body.pointer_mut(&pointer).unwrap() = value.clone();
            let shown: String = value.to_string().chars().take(40).collect();
            let what = format!("{pointer} = {shown}");
            let answer = api.post("/jobs/validate", &body).await;
            match answer.status.as_u16() {
                200 => {
                    harmless += 1;
                    check(answer.json()["batch_script"].as_str().unwrap(), &what);
                }
                400 | 413 | 422 => {
                    refused += 1;
                    assert!(answer.json()["code"].is_string(), "{what}");
                    assert!(answer.bytes.len() < 20_000, "{what}: {} bytes", answer.bytes.len());
                }
                other => panic!("{what}: {other} {}", answer.text()),
            }
        }
    }
    assert!(refused > 300 && harmless > 100, "{refused} refused, {harmless} harmless");
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_hostile_name_of_a_field_is_refused_or_harmless(pool: PgPool) {
    let api = TestApi::new(pool);
    for parent in
        ["", "/labels", "/specs", "/cloud_metadata", "/docker_env_vars", "/secret_env_vars", "/resources"]
    {
        for name in hostile().iter().filter_map(Value::as_str) {
            let mut body = request();
            body.as_object_mut().unwrap().remove("id");
            body.pointer_mut(parent).unwrap()[name] = "x".into();
            let shown: String = name.chars().take(40).collect();
            let answer = api.post("/jobs", &body).await;
            assert!([201, 422].contains(&answer.status.as_u16()), "{parent}/{shown:?}: {}", answer.status);
            if answer.status == 422 {
                assert!(answer.bytes.len() < 20_000, "{parent}/{shown:?}: {} bytes", answer.bytes.len());
            }
        }
    }
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn what_is_accepted_is_stored_and_read_back_as_it_was(pool: PgPool) {
    let api = TestApi::new(pool);
    for text in hostile().iter().filter_map(Value::as_str).filter(|text| !text.contains('\0')) {
        if text.len() > 10_000 {
            continue;
        }
        let body = json!({
            "image": "registry.example/a:1", "network_arch": "a", "action": "train", "specs": {"note": text},
            "docker_env_vars": {"NOTE": text},
        });
        let id = api.job(&body).await;
        let job = api.get(&format!("/jobs/{id}")).await.json();
        assert_eq!((&job["specs"]["note"], &job["docker_env_vars"]["NOTE"]), (&json!(text), &json!(text)));
    }
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn ten_megabytes_are_too_much_and_nine_are_an_answer(pool: PgPool) {
    let api = TestApi::new(pool);
    for (pointer, status) in [("/name", 422), ("/command", 422), ("/image", 422), ("/docker_env_vars/A", 422)]
    {
        let mut body = json!({"command": "true", "name": "x", "image": "x", "docker_env_vars": {"A": "x"}});
        *body.pointer_mut(pointer).unwrap() = "x".repeat(9 << 20).into();
        assert_eq!(api.post("/jobs", &body).await.status, status, "{pointer}");
        *body.pointer_mut(pointer).unwrap() = "x".repeat(10 << 20).into();
        assert_eq!(api.post("/jobs", &body).await.status, 413, "{pointer}");
    }
}

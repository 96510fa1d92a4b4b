//! Jobs, pipelines and tokens whose texts all try to run as scripts.

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Map, Value, json};

use super::{
    payloads::{self, line, path, without},
    send, submit,
};
use crate::{ending::command, kept_clusters::document, service::Service};

/// What the job of a part of the texts writes: into both logs, its status file and its results.
const WRITES: &str = r#"
    results=$TAO_API_RESULTS_DIR/$TAO_API_JOB_ID
    mkdir -p "$results"
    head -c 1000000 /dev/zero | tr '\0' x; printf '<script>alert(1)</script>\n'
    cat "$TAO_JOB_FILES/log"; printf 'METRICS '; cat "$TAO_JOB_FILES/metrics"; echo
    cat "$TAO_JOB_FILES/log" "$TAO_JOB_FILES/error" >&2
    cat "$TAO_JOB_FILES/status" >>"$results/status.json"
    exit 3
"#;
/// What a task writes.
const FAILS: &str = r#"
    printf 'METRICS '; tr -d '\n' <"$TAO_TASK_FILE"; echo
    printf 'ValueError: %s\n' "$evil" >&2
    exit 3
"#;
/// The texts of one job that writes them. A page draws 24 metrics.
pub(super) const PART: usize = 24;

/// What holds the texts.
pub(super) struct Stored {
    /// Those of a few texts each. They wait for a cluster that does not answer.
    pub(super) pipelines: Vec<String>,
    /// A job for each text, and a training for each pipeline.
    pub(super) jobs: Vec<String>,
    /// The jobs that write a part of the texts each.
    pub(super) parts: Vec<String>,
    /// The job with a task for a few texts each.
    pub(super) sweep: String,
}

pub(super) fn stored(service: &Service, root: &str, texts: &[String]) -> Stored {
    let made = send(service, root, "/clusters", &silent(service));
    assert_eq!(made.0, 201, "{}", made.1);
    let parts = texts.chunks(PART).map(|part| submit(service, root, &writing(part, texts))).collect();
    let sweep = submit(service, root, &sweep(texts));
    let (mut jobs, mut pipelines) = (Vec::new(), Vec::new());
    for group in payloads::groups(texts) {
        let post = |token: &str, path: &str, body: &Value| {
            let made = send(service, token, path, body);
            assert_eq!(made.0, 201, "{group:?}: {}", made.1);
            made.1
        };
        let owner = line(&group.join(" "));
        let token = post(root, "/tokens", &json!({"owner": owner, "name": owner}));
        let made = post(token["token"].as_str().unwrap(), "/pipelines", &pipeline(group));
        pipelines.push(made["id"].as_str().unwrap().to_owned());
        let ids = made["jobs"].as_array().unwrap().iter().map(|job| job["id"].as_str().unwrap().to_owned());
        jobs.extend(ids);
    }
    Stored { pipelines, jobs, parts, sweep }
}

/// A cluster that does not answer.
fn silent(service: &Service) -> Value {
    let mut cluster = document(service, "silent");
    let key = cluster["host_keys"][0].as_str().unwrap().split_once(' ').unwrap().1.to_owned();
    cluster["hosts"] = json!(["127.0.0.1:1"]);
    cluster["host_keys"] = json!([format!("[127.0.0.1]:1 {key}")]);
    cluster["base_results_dir"] = "/x<img src=x onerror=alert(1)>".into();
    cluster
}

/// A job that waits, with the text in every field that takes it.
fn waiting(text: &str) -> Value {
    let plain = without(text, |letter| letter == '\0');
    let word = without(text, |letter| letter.is_whitespace() || letter.is_control());
    let (line, path) = (line(text), path(text));
    let comment = without(&line, |letter| matches!(letter, '\u{2028}' | '\u{2029}'));
    let pattern = line.replace('\\', ".");
    json!({
        "name": line, "labels": {&line: &line, "team": &line}, "setup": [&plain], "docker_env_vars": {"EVIL": &plain},
        "inputs": [&path], "workdir": &path, "files": {"evil.txt": {"text": &plain}},
        "services": [{"name": "model", "command": format!(": {plain}"), "env": {"EVIL": &plain}, "ready": {"log_pattern": pattern}}],
        "steps": [{"name": "score", "command": format!(": {plain}"), "workdir": &path}],
        "results": [{"name": "r", "json_line": &line, "component": "score"}],
        "webhook": {"url": format!("https://hook.example/?{word}"), "secret": "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIz"},
        "backend_details": {"cluster_name": "silent", "comment": comment},
        "resources": {"num_gpus": 0, "cpus_per_task": 1, "time_hours": 0.1},
    })
}

/// A pipeline of such jobs, and a training whose image and specification have the texts.
fn pipeline(texts: &[String]) -> Value {
    let name = line(&texts.join(" "));
    let specs = texts.iter().map(|text| (line(text), json!([without(text, |letter| letter == '\0')])));
    let training = json!({
        "name": name, "image": format!("{}.sqsh", path(&name)), "network_arch": "classification_pyt", "action": "train",
        "specs": {"train": specs.collect::<Map<_, _>>()}, "backend_details": {"cluster_name": "silent"},
        "resources": {"num_gpus": 1, "time_hours": 1},
    });
    let jobs = texts.iter().enumerate().map(|(number, text)| (format!("job-{number}"), waiting(text)));
    let jobs: Map<_, _> = jobs.chain([("training".to_owned(), training)]).collect();
    json!({"name": name, "labels": {&name: &name}, "jobs": jobs})
}

/// A job that writes these texts. Its log has all of them, a line of 1 MB, and bytes that are no text.
fn writing(texts: &[String], all: &[String]) -> Value {
    let encoded = |bytes: &[u8]| json!({"base64": BASE64_STANDARD.encode(bytes)});
    let lines = texts.iter().enumerate().map(|(epoch, text)| {
        let kpi = json!({text: epoch, format!("text {epoch}"): text});
        json!({"status": "RUNNING", "epoch": epoch, "message": text, "kpi": kpi})
    });
    let lines = lines.chain([json!({"status": "FAILURE", "message": texts.join(" ")})]);
    let status: String = lines.flat_map(|line| [line.to_string(), "\n".to_owned()]).collect();
    let metrics: Map<_, _> = texts.iter().map(|text| (text.clone(), json!(text))).collect();
    let mut log = all.join("\n").into_bytes();
    log.extend(
        b"\n\xff\xfe<img src=x onerror=alert('\xc3')>\x00\xe2\x80<script>alert('\xf0\x9f')</script>\n",
    );
    let labels: Map<_, _> = texts.iter().map(|text| (line(text), json!(line(text)))).collect();
    let mut job = command(WRITES);
    job["name"] = line(&texts[0]).into();
    job["labels"] = labels.into();
    job["files"] = json!({
        "log": encoded(&log), "metrics": encoded(json!(metrics).to_string().as_bytes()),
        "status": encoded(status.as_bytes()), "error": encoded(format!("ValueError: {}\n", texts.join(" ")).as_bytes()),
    });
    job["results"] = json!([{"name": "metrics", "json_line": "METRICS "}]);
    job
}

/// A job with a task for a few texts each, which fails with them.
fn sweep(texts: &[String]) -> Value {
    let values = payloads::groups(texts).into_iter();
    let values = values.map(|group| json!({"evil": without(&group.join(" "), |letter| letter == '\0')}));
    let mut job = command(FAILS);
    job["array"] = json!({"values": values.collect::<Vec<_>>(), "max_parallel": 8});
    job["results"] = json!([{"name": "metrics", "json_line": "METRICS "}]);
    job
}

//! Scripts that were stored as texts: none runs, on any page, and all are shown.

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Value, json};

use super::{
    Browser, elsewhere,
    payloads::{self, is_plain, line, path, without},
    send, submit, token, visitor,
};
use crate::{
    ending::command,
    kept_clusters::{document, with_keys},
    service::Service,
};

/// What the job of a part of the texts writes: into both logs, its status file and its results.
const WRITES: &str = r#"
    results=$TAO_API_RESULTS_DIR/$TAO_API_JOB_ID
    mkdir -p "$results"
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
/// The texts of one job. A page draws 24 metrics.
const PART: usize = 24;

/// What holds the texts.
struct Stored {
    /// The job of each text, which waits for a cluster that does not answer.
    jobs: Vec<String>,
    pipelines: Vec<String>,
    /// The jobs that write a part of them each.
    parts: Vec<String>,
    /// The job with a task for each.
    sweep: String,
}

/// A job that waits, with the text in every field that takes it.
fn waiting(text: &str) -> Value {
    let plain = without(text, |letter| letter == '\0');
    let word = without(text, |letter| letter.is_whitespace() || letter.is_control());
    let (line, path) = (line(text), path(text));
    let comment = without(&line, |letter| matches!(letter, '\u{2028}' | '\u{2029}'));
    json!({
        "name": line, "labels": {&line: &line, "team": &line}, "setup": [&plain],
        "docker_env_vars": {"EVIL": plain}, "specs": {&line: [&line]}, "inputs": [&path], "workdir": path,
        "files": {"evil.txt": {"text": plain}},
        "services": [{"name": "model", "command": format!(": {plain}"), "env": {"EVIL": &plain}, "ready": {"log_pattern": &line}}],
        "steps": [{"name": "score", "command": format!(": {plain}"), "workdir": &path}],
        "results": [{"name": "r", "json_line": &line, "component": "score"}],
        "webhook": {"url": format!("https://hook.example/?{word}"), "secret": "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIz"},
        "backend_details": {"cluster_name": "silent", "comment": comment},
        "resources": {"num_gpus": 0, "cpus_per_task": 1, "time_hours": 0.1},
    })
}

/// A job that writes these texts. The log has all of them, a line of 1 MB, and bytes that are no text.
fn writing(texts: &[String], all: &[String]) -> Value {
    let encoded = |bytes: &[u8]| json!({"base64": BASE64_STANDARD.encode(bytes)});
    let lines: String = texts
        .iter()
        .enumerate()
        .map(|(epoch, text)| {
            let kpi = json!({text: epoch, format!("text {epoch}"): text});
            format!("{}\n", json!({"status": "RUNNING", "epoch": epoch, "message": text, "kpi": kpi}))
        })
        .collect();
    let end = json!({"status": "FAILURE", "message": texts.join(" ")});
    let metrics: Value = texts.iter().map(|text| (text.clone(), json!(text))).collect::<serde_json::Map<_, _>>().into();
    let mut log = all.join("\n").into_bytes();
    log.extend(b"\n\xff\xfe<img src=x onerror=alert('\xc3')>\x00\xe2\x80<script>alert('\xf0\x9f')</script>\n");
    let mut job = command(WRITES);
    job["name"] = line(&texts[0]).into();
    job["labels"] = texts.iter().map(|text| (line(text), json!(line(text)))).collect::<serde_json::Map<_, _>>().into();
    job["files"] = json!({
        "log": encoded(&log), "metrics": {"json": metrics}, "status": encoded(format!("{lines}{end}\n").as_bytes()),
        "error": encoded(format!("ValueError: {}\n", texts.join(" ")).as_bytes()),
    });
    job["results"] = json!([{"name": "metrics", "json_line": "METRICS "}]);
    job
}

fn stored(service: &Service, root: &str, texts: &[String]) -> Stored {
    let mut silent = document(service, "silent");
    let key = silent["host_keys"][0].as_str().unwrap().split_once(' ').unwrap().1.to_owned();
    silent["hosts"] = json!(["127.0.0.1:1"]);
    silent["host_keys"] = json!([format!("[127.0.0.1]:1 {key}")]);
    silent["base_results_dir"] = "/x<img src=x onerror=alert(1)>".into();
    let made = send(service, root, "/clusters", &silent);
    assert_eq!(made.0, 201, "{}", made.1);

    let parts = texts.chunks(PART).map(|part| submit(service, root, &writing(part, texts))).collect();
    let mut sweep = command(FAILS);
    let values: Vec<_> = texts.iter().map(|text| json!({"evil": without(text, |letter| letter == '\0')})).collect();
    sweep["array"] = json!({"values": values});
    sweep["results"] = json!([{"name": "metrics", "json_line": "METRICS "}]);
    let sweep = submit(service, root, &sweep);

    let (mut jobs, mut pipelines) = (Vec::new(), Vec::new());
    for text in texts {
        let post = |token: &str, path: &str, body: &Value| {
            let made = send(service, token, path, body);
            assert_eq!(made.0, 201, "{text:?}: {}", made.1);
            made.1
        };
        let owner = json!({"owner": line(text), "name": line(text), "scopes": ["read", "write"]});
        let token = post(root, "/tokens", &owner);
        let pipeline = json!({"name": line(text), "labels": {line(text): line(text)}, "jobs": {"a": waiting(text)}});
        let made = post(token["token"].as_str().unwrap(), "/pipelines", &pipeline);
        pipelines.push(made["id"].as_str().unwrap().to_owned());
        jobs.push(made["jobs"][0]["id"].as_str().unwrap().to_owned());
    }
    Stored { jobs, pipelines, parts, sweep }
}

/// Opens a page, and returns what is odd in it.
fn odd(browser: &Browser, address: &str) -> Vec<String> {
    browser.open(address);
    browser.sees("main", "");
    let odd = browser.run("return oddities()");
    strings(&odd).into_iter().map(|odd| format!("{address}: {odd}")).collect()
}

fn strings(list: &Value) -> Vec<String> {
    list.as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect()
}

#[test]
fn stored_scripts_do_not_run_and_are_shown_as_texts_on_every_page() {
    let texts = payloads::all();
    let (mut service, _keys) = with_keys(&[("TAO_SLURM_AUTH", "tokens")]);
    service.spawn();
    let root = token(&service, "root", "read,write,admin");
    let began = std::time::Instant::now();
    let stored = stored(&service, &root, &texts);
    eprintln!("stored {:?}", began.elapsed());
    let browser = visitor(&service, &root);
    // The pages' policy would stop what the pages let through: they must not rely on it.
    browser.watch(include_str!("odd.js"), true);
    for (text, id) in texts.iter().zip(&stored.jobs) {
        let found = odd(&browser, &format!("/ui/jobs/{id}"));
        assert_eq!(found, [""; 0], "{text}");
        if is_plain(text) {
            browser.sees("h1", text);
        }
    }
    eprintln!("jobs {:?}", began.elapsed());
    browser.finish(&[]);
}

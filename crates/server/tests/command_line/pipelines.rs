//! `pipeline`, and files in YAML.

use std::process::Output;

use serde_json::{Value, json};

use crate::prepared::Prepared;

const ID: &str = "01a21687-3d58-727b-af43-d5f40bfcf423";
const YAML: &str =
    "name: nightly\njobs:\n  prep:\n    image: a\n  train:\n    image: b\n    needs: [{job: prep}]\n";

fn pipeline(status: &str, prep: &str, train: &str) -> String {
    let count = |wanted: &str| [prep, train].iter().filter(|status| **status == wanted).count();
    let counts = json!({"total": 2, "pending": count("Pending"), "running": count("Running"), "done": count("Done"),
        "error": count("Error"), "canceled": count("Canceled"), "skipped": 0});
    let job = |name: &str, id: &str, status: &str, needs: Value| {
        json!({"name": name, "id": id, "status": status, "phase": "x", "message": format!("{name} is {status}."),
            "skipped": false, "needs": needs, "started_on": null, "finished_on": null})
    };
    let jobs = [
        job("prep", "1", prep, json!([])),
        job("train", "2", train, json!([{"name": "prep", "job": "1", "when": "succeeded"}])),
    ];
    json!({"id": ID, "name": "nightly", "owner": "a", "labels": {}, "status": status, "jobs_by_status": counts,
        "created_on": "2026-11-21T03:04:05Z", "jobs": jobs})
    .to_string()
}

pub(crate) fn shown(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn a_pipeline_in_yaml_is_sent_as_json_and_drawn() {
    let server = Prepared::start(vec![(201, "", pipeline("Pending", "Pending", "Pending"))]);
    let (code, out, errors) =
        shown(&server.run(&["pipeline", "submit", "-", "--idempotency-key", "n 1"], YAML));
    let expected = format!(
        "{ID}\n\
JOB    ID  STATUS   NEEDS   MESSAGE
prep   1   Pending          prep is Pending.
train  2   Pending  ← prep  train is Pending.
nightly: Pending, 2 jobs: 2 pending
"
    );
    assert_eq!((code, out, errors), (Some(0), expected, String::new()));
    let sent = &server.requests()[0];
    assert_eq!(sent.line, "POST /pipelines HTTP/1.1");
    assert!(sent.headers.contains("idempotency-key: n 1\r\n"), "{}", sent.headers);
    assert!(sent.headers.contains("content-type: application/json\r\n"), "{}", sent.headers);
    let jobs = json!({"prep": {"image": "a"}, "train": {"image": "b", "needs": [{"job": "prep"}]}});
    assert_eq!(sent.body, json!({"name": "nightly", "jobs": jobs}).to_string());
}

#[test]
fn a_pipeline_is_not_sent_as_a_job() {
    let server = Prepared::start(Vec::new());
    for command in ["submit", "validate"] {
        let (code, out, errors) = shown(&server.run(&[command, "-"], YAML));
        assert_eq!((code, out), (Some(1), String::new()));
        assert!(errors.contains("submit it with `tao-slurm pipeline submit -`"), "{errors}");
    }
    assert!(server.requests().is_empty());
}

#[test]
fn a_watch_prints_what_changes_and_its_exit_code_is_the_result() {
    let server = Prepared::start(vec![
        (201, "", pipeline("Pending", "Pending", "Pending")),
        (200, "\"a\"", pipeline("Running", "Running", "Pending")),
        (304, "\"a\"", String::new()),
        (200, "\"b\"", pipeline("Running", "Done", "Pending")),
        (200, "\"c\"", pipeline("Error", "Done", "Error")),
    ]);
    let (code, out, errors) = shown(&server.run(&["pipeline", "submit", "-", "--watch"], YAML));
    let expected = format!(
        "{ID}\n\
JOB    ID  STATUS   NEEDS   MESSAGE
prep   1   Running
train  2   Pending  ← prep  train is Pending.
nightly: Running, 2 jobs: 1 running, 1 pending
prep Done
nightly: Running, 2 jobs: 1 done, 1 pending
train Error train is Error.
nightly: Error, 2 jobs: 1 done, 1 failed
"
    );
    assert_eq!((code, out, errors), (Some(1), expected, String::new()));
    let sent = server.requests();
    assert_eq!(sent[1].line, format!("GET /pipelines/{ID} HTTP/1.1"));
    for (request, tag) in sent[2..].iter().zip(["\"a\"", "\"a\"", "\"b\""]) {
        assert_eq!(request.line, format!("GET /pipelines/{ID}?wait=30 HTTP/1.1"));
        assert!(request.headers.contains(&format!("if-none-match: {tag}")), "{}", request.headers);
    }
}

#[test]
fn the_exit_code_of_a_canceled_pipeline_is_2() {
    let server = Prepared::start(vec![(200, "\"a\"", pipeline("Canceled", "Done", "Canceled"))]);
    assert_eq!(server.run(&["pipeline", "status", ID, "--watch"], "").status.code(), Some(2));
}

#[test]
fn pipelines_are_listed_canceled_and_retried() {
    let list: Value = json!({"next_page_token": null,
        "pipelines": [serde_json::from_str::<Value>(&pipeline("Done", "Done", "Done")).unwrap()]});
    let server = Prepared::start(vec![
        (200, "", list.to_string()),
        (202, "", pipeline("Canceled", "Canceled", "Canceled")),
        (202, "", pipeline("Pending", "Pending", "Pending")),
    ]);
    let (code, out, _) = shown(&server.run(&["pipeline", "list"], ""));
    let expected = format!(
        "{:36}  STATUS  CREATED              JOBS            NAME\n{ID}  Done    2026-11-21 03:04:05  2 jobs: 2 done  nightly\n",
        "ID"
    );
    assert_eq!((code, out), (Some(0), expected));
    let (code, out, _) = shown(&server.run(&["pipeline", "cancel", ID, "-o", "json"], ""));
    assert_eq!((code, out), (Some(0), pipeline("Canceled", "Canceled", "Canceled") + "\n"));
    let secrets = "jobs:\n  prep:\n    secret_env_vars: {TOKEN: no}\n";
    let (code, _, errors) = shown(&server.run(&["pipeline", "retry", ID, "--secrets", "-"], secrets));
    assert_eq!((code, errors), (Some(0), String::new()));
    let lines: Vec<_> = server.requests().into_iter().map(|sent| (sent.line, sent.body)).collect();
    let call = |line: &str, body: &str| (line.to_owned(), body.to_owned());
    let expected = [
        call("GET /pipelines?limit=20 HTTP/1.1", ""),
        call(&format!("POST /pipelines/{ID}/cancel HTTP/1.1"), ""),
        call(
            &format!("POST /pipelines/{ID}/retry HTTP/1.1"),
            r#"{"jobs":{"prep":{"secret_env_vars":{"TOKEN":"no"}}}}"#,
        ),
    ];
    assert_eq!(lines, expected);
}

#[test]
fn a_wrong_file_is_refused_without_a_request() {
    let server = Prepared::start(Vec::new());
    for command in [&["pipeline", "submit"][..], &["submit"], &["validate"]] {
        let arguments: Vec<&str> = command.iter().copied().chain(["-"]).collect();
        let (code, out, errors) = shown(&server.run(&arguments, "image: a\nimage: b\n"));
        let expected = "tao-slurm: standard input:2:1: the key `image` occurs twice; remove one\n";
        assert_eq!((code, out.as_str(), errors.as_str()), (Some(1), "", expected), "{command:?}");
    }
}

#[test]
fn a_job_in_yaml_is_submitted() {
    let answer = json!({"id": ID, "status": "Pending", "warnings": []}).to_string();
    let server = Prepared::start(vec![(201, "", answer)]);
    let (code, out, _) = shown(&server.run(&["submit", "-"], "image: a\nnum_gpus: 2\n"));
    assert_eq!((code, out.as_str()), (Some(0), format!("{ID}\n").as_str()));
    assert_eq!(server.requests()[0].body, r#"{"image":"a","num_gpus":2}"#);
}

#[test]
fn a_refusal_names_the_job_and_the_field() {
    let problem = json!({"title": "Invalid request", "status": 422,
        "errors": [{"pointer": "/jobs/train/needs/0/job", "detail": "names no job of the pipeline: 'prp'"}]});
    let server = Prepared::start(vec![(422, "", problem.to_string())]);
    let (code, out, errors) = shown(&server.run(&["pipeline", "submit", "-"], YAML));
    let expected =
        "tao-slurm: Invalid request\n  - /jobs/train/needs/0/job: names no job of the pipeline: 'prp'\n";
    assert_eq!((code, out.as_str(), errors.as_str()), (Some(3), "", expected));
}

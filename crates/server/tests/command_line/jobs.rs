//! Jobs on the command line: what is sent, what is printed, and the exit code.

use std::{
    io::{BufRead, BufReader},
    process::{Child, Command},
};

use serde_json::{Value, json};

use crate::{pipelines::shown, prepared::Prepared};

const A: &str = "01a21687-3d58-727b-af43-d5f40bfcf423";
const B: &str = "01a21687-3d58-727b-af43-d5f5b2ec7c0e";

fn job(id: &str, name: &str, status: &str) -> Value {
    json!({"id": id, "name": name, "status": status, "phase": "x", "message": "m.", "owner": "ann", "cluster": "dgx", "gpus": 8,
        "created_on": "2026-11-21T03:04:05Z", "progress": {}})
}

fn page(jobs: &[Value], next: Option<&str>) -> String {
    json!({"jobs": jobs, "next_page_token": next, "facets": null}).to_string()
}

#[test]
fn a_command_becomes_a_job() {
    let server = Prepared::start(vec![(201, "", job(A, "t", "Pending").to_string())]);
    let line = ["run", "--gpus", "8", "--time", "90m", "--name", "t", "--", "python", "train.py", "a b"];
    let (code, out, _) = shown(&server.run(&line, ""));
    assert_eq!((code, out), (Some(0), format!("{A}\n")));
    let sent = server.requests().remove(0);
    assert_eq!(sent.line, "POST /jobs HTTP/1.1");
    assert!(sent.headers.contains("idempotency-key: "), "{}", sent.headers);
    let expected = json!({"name": "t", "command": "python train.py 'a b'", "resources": {"gpus_per_node": 8, "time_hours": 1.5}});
    assert_eq!(serde_json::from_str::<Value>(&sent.body).unwrap(), expected);

    let (code, out, _) = shown(&server.run(&["run", "--dry-run", "--", "true"], ""));
    assert_eq!((code, out.as_str()), (Some(0), "---\ncommand: \"true\"\n"));
}

/// A proxy in front of the service answers so when the service has gone in the middle of a request.
#[test]
fn a_lost_answer_is_asked_for_again_with_the_same_key() {
    let lost = json!({"title": "Bad Gateway", "status": 502}).to_string();
    let server = Prepared::start(vec![(502, "", lost), (201, "", job(A, "t", "Pending").to_string())]);
    let (code, out, errors) =
        shown(&server.run(&["submit", "-", "--set", "resources.num_nodes=2"], "command: hostname\n"));
    assert_eq!((code, out), (Some(0), format!("{A}\n")));
    assert!(errors.contains("Retrying; the job is submitted once."), "{errors}");
    let requests = server.requests();
    let key = |index: usize| {
        let headers = &requests[index].headers;
        headers.lines().find(|line| line.starts_with("idempotency-key: ")).unwrap().to_owned()
    };
    assert_eq!(key(0), key(1));
    let body = r#"{"command":"hostname","resources":{"num_nodes":2}}"#;
    assert!(requests.iter().all(|request| request.body == body), "{}", requests[0].body);
}

#[test]
fn exit_codes_tell_refused_not_found_and_unreachable_apart() {
    let problem = |status: u16| (status, "", json!({"title": "No", "status": status}).to_string());
    for (status, expected) in [(403, 3), (404, 4), (422, 3)] {
        let server = Prepared::start(vec![problem(status)]);
        assert_eq!(shown(&server.run(&["status", A], "")).0, Some(expected), "{status}");
    }
    let server = Prepared::start(vec![(200, "", "<html>a proxy</html>".to_owned())]);
    assert_eq!(shown(&server.run(&["status", A], "")).0, Some(5));
    // Nothing listens any more.
    let (code, _, errors) = shown(&server.run(&["submit", "-"], "command: a\n"));
    assert_eq!(code, Some(5));
    assert!(!errors.contains("Retrying"), "{errors}");
    assert_eq!(shown(&server.run(&["status"], "")).0, Some(64));
}

#[test]
fn a_job_is_found_by_its_name_or_by_the_beginning_of_its_id() {
    let found = page(&[job(A, "train", "Done"), job(B, "train-2", "Running")], None);
    let server =
        Prepared::start(vec![(200, "", found.clone()), (200, "", job(A, "train", "Done").to_string())]);
    let (code, out, _) = shown(&server.run(&["status", "train"], ""));
    assert_eq!((code, out.as_str()), (Some(0), "Done m.\n"));
    let lines: Vec<_> = server.requests().into_iter().map(|request| request.line).collect();
    assert_eq!(lines, ["GET /jobs?limit=200&q=train HTTP/1.1", &format!("GET /jobs/{A}/status HTTP/1.1")]);

    let server = Prepared::start(vec![(200, "", found)]);
    let (code, out, errors) = shown(&server.run(&["cancel", "01a21687-3d58"], ""));
    assert_eq!((code, out.as_str()), (Some(1), ""));
    assert!(errors.contains("2 jobs are called") && errors.contains(A) && errors.contains(B), "{errors}");
    assert_eq!(server.requests().len(), 1, "no job is canceled");

    let server =
        Prepared::start(vec![(200, "", page(&[], None)), (200, "", page(&[job(A, "train", "Done")], None))]);
    let (code, _, errors) = shown(&server.run(&["logs", "trian"], ""));
    assert_eq!(code, Some(4));
    assert!(errors.contains("did you mean `train`?"), "{errors}");
}

#[test]
fn several_jobs_are_changed_also_after_an_error_with_one() {
    let gone = json!({"title": "No such job", "status": 404}).to_string();
    let server = Prepared::start(vec![(404, "", gone), (202, "", job(B, "b", "Canceling").to_string())]);
    let (code, out, errors) = shown(&server.run(&["cancel", A, B], ""));
    assert_eq!((code, out), (Some(4), format!("{B} Canceling x m.\n")));
    assert!(errors.starts_with(&format!("{A}: No such job")), "{errors}");
}

#[test]
fn a_list_is_never_cut_silently() {
    let pages = || {
        vec![
            (200, "", page(&[job(A, "a", "Done")], Some("next"))),
            (200, "", page(&[job(B, "b", "Running")], None)),
        ]
    };
    let server = Prepared::start(pages());
    let (code, out, errors) = shown(&server.run(&["list", "-n", "1"], ""));
    assert_eq!((code, out.lines().count()), (Some(0), 2));
    assert!(errors.contains("there are more"), "{errors}");

    let server = Prepared::start(pages());
    let (_, out, errors) = shown(&server.run(&["list", "--all", "-o", "name"], ""));
    assert_eq!((out, errors.as_str()), (format!("{A}\n{B}\n"), ""));
    let server = Prepared::start(pages());
    let (_, out, _) = shown(&server.run(&["list", "-a", "-o", "json"], ""));
    let document: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(document["jobs"].as_array().unwrap().len(), 2);
    let server = Prepared::start(pages());
    let (_, out, _) = shown(&server.run(&["list", "-n", "1", "-o", "yaml"], ""));
    assert!(out.starts_with("---\njobs:\n") && out.contains(&format!("id: {A}")), "{out}");
}

#[test]
fn waiting_ends_with_the_jobs_and_says_why_one_failed() {
    let diagnosis = json!({"job_id": B, "attempt": 1, "task": 0, "rule": "cuda-out-of-memory", "category": "gpu_memory",
        "why": "The GPU has no memory left.", "advice": "Make the batch smaller.", "node": null, "rank": null,
        "first": {"log": "main.err", "offset": 3, "line": "OutOfMemoryError"}, "followed": [], "has_gaps": false});
    let server = Prepared::start(vec![
        (200, "\"1\"", job(A, "a", "Running").to_string()),
        (200, "\"2\"", job(A, "a", "Done").to_string()),
        (200, "", job(B, "b", "Error").to_string()),
        (200, "", diagnosis.to_string()),
        (200, "", "last line\n".to_owned()),
    ]);
    let (code, out, _) = shown(&server.run(&["wait", A, B], ""));
    assert_eq!(code, Some(1));
    let expected = format!(
        "{A} Done m.\n{B} Error m.\ncause:  The GPU has no memory left.\nline:   OutOfMemoryError\nwhere:  main.err at byte 3\n\
         rule:   cuda-out-of-memory (gpu_memory)\nadvice: Make the batch smaller.\nlast lines of standard error:\n  last line\n\
         next:   tao-slurm logs {B} --tail 100\n"
    );
    assert_eq!(out, expected);
}

/// Ends with the test, also if that fails.
struct Watching(Child);

impl Drop for Watching {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn ctrl_c_says_that_the_job_goes_on() {
    let server = Prepared::start(vec![(200, "\"1\"", job(A, "a", "Running").to_string())]);
    let mut watching = Watching(server.spawn(&["status", A, "--watch"]));
    let mut out = BufReader::new(watching.0.stdout.take().unwrap()).lines();
    assert_eq!(out.next().unwrap().unwrap(), "Running x m.");
    let pid = watching.0.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    let errors = BufReader::new(watching.0.stderr.take().unwrap());
    let mut lines = errors.lines().map_while(Result::ok);
    let said = lines.find(|line| line.contains("goes on")).unwrap();
    assert!(said.contains(&format!("tao-slurm status {A} --watch")), "{said}");
    assert_eq!(watching.0.wait().unwrap().code(), Some(130));
}

#[test]
fn completions_and_the_manual_page_name_all_commands() {
    let server = Prepared::start(Vec::new());
    for shell in ["bash", "zsh", "fish"] {
        let (code, out, _) = shown(&server.run(&["completions", shell], ""));
        assert!(code == Some(0) && out.contains("secret-env"), "{shell}: {out}");
    }
    let (code, page, _) = shown(&server.run(&["man"], ""));
    assert_eq!(code, Some(0));
    for command in ["LOGIN", "RUN", "PIPELINE SUBMIT", "CLUSTER ADD", "TOKEN CREATE"] {
        assert!(page.contains(&format!("\n.SH \"TAO-SLURM {command}\"\n")), "{command}: {page}");
    }
}

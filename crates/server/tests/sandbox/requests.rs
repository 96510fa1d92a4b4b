//! Invalid requests: each gets an error that says what to do, and nothing is stored.

use std::time::Duration;

use serde_json::json;

use crate::{
    clusters::learnt,
    ending::{command, training},
    service::{Service, until},
};

#[test]
fn an_invalid_request_is_rejected_with_the_valid_values() {
    let service = Service::start();
    let cases = [
        ("{\"command\": ", 400, "malformed"),
        ("{\"command\": \"true\", \"colour\": \"red\"}", 422, "colour"),
        ("{\"command\": \"true\", \"resources\": {\"num_gpus\": \"many\"}}", 422, "/resources/num_gpus"),
        ("{\"command\": \"true\", \"resources\": {\"time_hours\": 12}}", 422, "max_time_hours"),
        ("{\"command\": \"true\", \"backend_details\": {\"cluster_name\": \"nowhere\"}}", 422, "sandbox"),
        (
            "{\"command\": \"true\", \"backend_details\": {\"slurm_metadata\": {\"slurm_job_id\": \"1\"}}}",
            422,
            "slurm_metadata",
        ),
        ("{}", 422, "network_arch and action, or command"),
    ];
    for (body, status, says) in cases {
        let answer = service.post("/jobs", body);
        assert_eq!(answer.status, status, "{body}: {}", answer.text);
        assert!(answer.text.to_lowercase().contains(&says.to_lowercase()), "{body}: {}", answer.text);
        assert!(answer.json()["code"].is_string());
    }
    assert_eq!(service.get("/jobs").json()["jobs"], json!([]), "nothing was stored");
}

#[test]
fn an_unknown_partition_is_rejected_with_a_list_of_the_known_ones() {
    let service = Service::start();
    learnt(&service);
    let body = json!({"command": "true", "backend_details": {"partition": "nosuch"}}).to_string();
    let answer = service.post("/jobs", &body);
    assert_eq!(answer.status, 422, "{}", answer.text);
    assert!(answer.text.contains("polar") && answer.text.contains("long"), "{}", answer.text);
}

#[test]
fn an_unknown_account_is_an_error_with_slurms_message_and_is_refused_once_the_accounts_are_known() {
    let mut service = Service::prepare(&[("SLURM_ACCOUNT", "nosuch")]);
    // Without a worker nobody asks the cluster for its accounts.
    service.role = "api";
    service.spawn();
    let id = service.submit(&command("true"));
    service.stop();
    service.role = "all";
    service.spawn();
    let ended = service.wait_ended(&id);
    assert_eq!(ended["status"], "Error");
    assert!(ended["message"].as_str().unwrap().contains("Invalid account"), "{ended}");
    let submit = || service.post("/jobs", &command("true").to_string());
    until("the accounts to be known", Duration::from_mins(1), || submit().status == 422);
    assert!(submit().text.contains("has no account `nosuch`"), "{}", submit().text);
}

#[test]
fn hostile_text_stays_text() {
    let service = Service::start();
    let nasty = "'; touch /tmp/owned; $(touch /tmp/owned) `touch /tmp/owned` \"|&\n#SBATCH --uid=0\n\\";
    let mut job = command("printf '%s' \"$NASTY\" | md5sum");
    job["name"] = "'; $(touch /tmp/owned) | \"x".into();
    job["docker_env_vars"] = json!({"NASTY": nasty});
    let id = service.submit(&job);
    assert_eq!(service.wait_ended(&id)["status"], "Done");
    assert_eq!(service.sandbox.login("ls /tmp/owned 2>/dev/null || true"), "");
    let seen = service.get(&format!("/jobs/{id}/logs?stream=out&tail=5")).text;
    let mut command = std::process::Command::new("md5sum");
    command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), nasty.as_bytes()).unwrap();
    let expected = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
    assert_eq!(seen.trim(), expected.trim(), "the job saw the value byte for byte");
}

#[test]
fn the_document_describes_the_server_that_serves_it() {
    let service = Service::start();
    let served = service.get("/openapi.json").json();
    let printed = service.run(&["openapi"]);
    let printed: serde_json::Value = serde_json::from_slice(&printed.stdout).unwrap();
    assert_eq!(served, printed);
}

#[test]
fn hostile_text_reaches_the_containers_files_byte_for_byte() {
    let service = Service::start();
    let nasty = "'; touch /tmp/owned2; $(touch /tmp/owned2) `touch /tmp/owned2` \"|&\n#SBATCH --uid=0\n\\ \\n %j é\u{202e}";
    let mut job = training(60, &json!({"epoch_seconds": 0.5}));
    job["specs"]["note"] = json!({nasty: [nasty, "-oProxyCommand=x", "a,b|c"]});
    job["labels"] = json!({"why": nasty});
    job["docker_env_vars"] = json!({"NASTY": nasty});
    job["secret_env_vars"] = json!({"NASTY_SECRET": nasty});
    job["cloud_metadata"] = json!({"slurm_note": {nasty: nasty}});
    let id = service.submit(&job);
    service.wait(&id, "it to run", |status| status["status"] == "Running");
    let base = service.sandbox.var("SLURM_BASE_RESULTS_DIR");
    let staged = |name: &str| -> serde_json::Value {
        serde_json::from_str(&service.sandbox.login(&format!("cat {base}/{name}/{id}.json"))).unwrap()
    };
    let specs = staged("specs");
    assert_eq!(specs["note"], job["specs"]["note"]);
    assert_eq!(specs["results_dir"], format!("{base}/results/{id}"));
    let env = staged("env");
    assert_eq!((&env["NASTY"], &env["NASTY_SECRET"]), (&json!(nasty), &json!(nasty)));
    assert_eq!(env["TAO_API_RESULTS_DIR"], format!("{base}/results"));
    assert_eq!(staged("meta"), job["cloud_metadata"]);
    let script = service.get(&format!("/jobs/{id}/script")).text;
    let header = script.lines().take_while(|line| line.is_empty() || line.starts_with('#'));
    assert!(
        header.clone().count() > 5
            && !header.clone().any(|line| line.contains("uid") || line.contains("owned"))
    );
    assert_eq!(service.post(&format!("/jobs/{id}/cancel"), "{}").status, 202);
    assert_eq!(service.wait_ended(&id)["status"], "Canceled");
    assert_eq!(service.sandbox.login("ls /tmp/owned2 2>/dev/null || true"), "");
    assert_eq!(
        service.sandbox.login(&format!("ls {base}/env/{id}.* {base}/meta/{id}.* 2>/dev/null || true")),
        ""
    );
}

#[test]
fn hostile_commands_are_run_as_they_are_written() {
    let service = Service::start();
    let text =
        "cat <<'END' | md5sum\n'\"$(x) `y` \\ #SBATCH --uid=0 \u{202e}é\nEND\n# a comment with ' one quote\n";
    let id = service.submit(&command(text));
    assert_eq!(service.wait_ended(&id)["status"], "Done");
    let base = service.sandbox.var("SLURM_BASE_RESULTS_DIR");
    let staged = service.sandbox.login(&format!("cat {base}/state/{id}/1/command.sh"));
    // The warning before the time limit must not end a shell that has no handler for it.
    let begin = r#"trap '' USR1; true 2>/dev/null >"${_tao_begun:-/dev/null/}" || :; "#;
    assert_eq!(staged.strip_prefix(begin), Some(text.trim()));
}

#[test]
fn a_submission_prints_its_warnings() {
    let service = Service::start();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("job.json");
    let mut job = command("true");
    job["resources"]["num_nodes"] = 2.into();
    job["resources"]["num_gpus"] = 1.into();
    std::fs::write(&file, job.to_string()).unwrap();
    let output = service.run(&["submit", file.to_str().unwrap()]);
    let notes = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(notes.contains("warning: /resources/num_gpus: is 1, but the job gets 2 GPUs"), "{notes}");
    let id = String::from_utf8(output.stdout).unwrap();
    assert_eq!(service.wait_ended(id.trim())["status"], "Done");
}

#[test]
fn validating_shows_the_script_and_stores_nothing() {
    let service = Service::start();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("job.json");
    std::fs::write(&file, training(1, &json!({})).to_string()).unwrap();
    let summary = String::from_utf8(service.run(&["validate", file.to_str().unwrap()]).stdout).unwrap();
    assert!(summary.contains("resources: 1 node, 1 GPU, at most 30 min"), "{summary}");
    let output = service.run(&["validate", "--script", file.to_str().unwrap()]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(String::from_utf8_lossy(&output.stderr).contains("The job is valid"), "{output:?}");
    let script = String::from_utf8(output.stdout).unwrap();
    assert!(script.starts_with("#!/bin/bash") && script.contains("container_handler"), "{script}");

    let live = service.run(&["validate", "--live", file.to_str().unwrap()]);
    let notes = String::from_utf8_lossy(&live.stderr).into_owned();
    assert!(live.status.success() && notes.contains("Slurm would accept the job"), "{notes}");
    let mut missing = training(1, &json!({}));
    missing["inputs"] = json!(["/lustre/none"]);
    missing["backend_details"] = json!({"partition": "nosuch"});
    let answer = service.post("/jobs/validate?live=true", &missing.to_string());
    if answer.status == 200 {
        let live = &answer.json()["live"];
        assert_eq!(
            (&live["accepted"], &live["missing_paths"]),
            (&json!(false), &json!(["/lustre/none"])),
            "{live}"
        );
    } else {
        // The partitions are known already, so no command is needed.
        assert!(answer.status == 422 && answer.text.contains("nosuch"), "{}", answer.text);
    }
    std::fs::write(&file, "{\"command\": \"true\", \"specs\": {}}").unwrap();
    let refused = service.run(&["validate", file.to_str().unwrap()]);
    assert!(!refused.status.success());
    assert!(String::from_utf8_lossy(&refused.stderr).contains("/specs"), "{refused:?}");
    assert_eq!(service.get("/jobs").json()["jobs"], json!([]));
}

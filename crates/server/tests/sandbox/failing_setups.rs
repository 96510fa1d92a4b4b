//! Invalid setups: each error says what is wrong and what to do, and no job is lost or ended.

use std::{fs, os::unix::fs::PermissionsExt, process::Command};

use serde_json::Value;

use crate::{cluster::Sandbox, ending::command, service::Service};

/// Submits a job, waits for a message that contains one of `says`, and checks that the job is still pending.
fn stays_pending_with(service: &Service, says: &[&str]) -> String {
    let id = service.submit(&command("true"));
    let has_message = |s: &Value| {
        let message = s["message"].as_str().unwrap_or_default();
        says.iter().any(|word| message.contains(word))
    };
    let status = service.wait(&id, &format!("a message with one of {says:?}"), has_message);
    assert_eq!(status["status"], "Pending", "trouble on the way never ends a job: {status}");
    id
}

#[test]
fn a_rejected_key_is_reported_and_no_job_is_lost() {
    let dir = tempfile::tempdir().unwrap();
    let key = dir.path().join("wrong");
    let made = Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(&key).status();
    assert!(made.unwrap().success());
    let right = Sandbox::find().var("SSH_KEY_PATH").to_owned();

    let mut service = Service::start_with(&[("SSH_KEY_PATH", key.to_str().unwrap()), ("SSH_AUTH_SOCK", "")]);
    let id = stays_pending_with(&service, &["authorized_keys", "refused"]);
    service.stop();
    service.set("SSH_KEY_PATH", &right);
    service.spawn();
    assert_eq!(service.wait_ended(&id)["status"], "Done", "with the right key the same job goes on");
}

#[test]
fn a_missing_key_is_reported() {
    let service = Service::start_with(&[("SSH_KEY_PATH", "/nonexistent/id_ed25519"), ("SSH_AUTH_SOCK", "")]);
    stays_pending_with(&service, &["/nonexistent/id_ed25519"]);
}

#[test]
fn an_unknown_host_key_is_rejected_with_the_line_to_add() {
    let dir = tempfile::tempdir().unwrap();
    let empty = dir.path().join("known_hosts");
    fs::write(&empty, "").unwrap();
    fs::set_permissions(&empty, fs::Permissions::from_mode(0o600)).unwrap();
    let service = Service::start_with(&[("SSH_KNOWN_HOSTS", empty.to_str().unwrap())]);
    stays_pending_with(&service, &["ssh-ed25519 "]);
}

#[test]
fn an_unreachable_host_is_reported_and_the_service_fails_over() {
    let hosts = Sandbox::find().var("SLURM_HOSTNAME").to_owned();
    let alone = Service::start_with(&[("SLURM_HOSTNAME", "127.254.254.254:1")]);
    stays_pending_with(&alone, &["127.254.254.254"]);

    let (_, second) = hosts.split_once(',').unwrap();
    let pair = format!("127.254.254.254:1,{second}");
    let service = Service::start_with(&[("SLURM_HOSTNAME", pair.as_str())]);
    let id = service.submit(&command("true"));
    assert_eq!(service.wait_ended(&id)["status"], "Done");
}

#[test]
fn an_unreachable_database_is_an_error_and_the_service_exits() {
    let service = Service::prepare(&[
        ("DATABASE_URL", "postgres://nobody@127.0.0.1:1/none"),
        ("TAO_SLURM_DATABASE_STARTUP_TIMEOUT", "1s"),
    ]);
    let output = service.run(&["serve"]);
    assert!(!output.status.success());
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(text.contains("DATABASE_URL"), "{text}");
}

#[test]
fn an_invalid_setting_is_named() {
    let service = Service::prepare(&[("SLURM_HOSTNAME", "-oProxyCommand=x"), ("SLURM_ACCOUNT", "a\nb")]);
    let output = service.run(&["check-config"]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("SLURM_HOSTNAME") && text.contains("SLURM_ACCOUNT"), "{text}");
}

#[test]
fn disabled_authentication_is_allowed_only_on_loopback() {
    let service = Service::prepare(&[("TAO_SLURM_BIND", "0.0.0.0:0")]);
    let output = service.run(&["serve"]);
    assert!(!output.status.success());
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(text.contains("loopback"), "{text}");
}

#[test]
fn requests_are_accepted_only_with_a_token() {
    let service = Service::start_with(&[("TAO_SLURM_AUTH", "tokens")]);
    assert_eq!(service.get("/jobs").status, 401);
    let made = service.run(&["token", "create", "--owner", "ann", "--scope", "read,write"]);
    let token = String::from_utf8(made.stdout).unwrap().trim().to_owned();
    assert!(token.starts_with("tsl_"), "{token} {}", String::from_utf8_lossy(&made.stderr));
    let mut list = service.command(&["list"]);
    assert!(list.env("TAO_SLURM_TOKEN", &token).status().unwrap().success());
    let mut list = service.command(&["list"]);
    assert!(!list.env("TAO_SLURM_TOKEN", "tsl_wrong").status().unwrap().success());
    assert!(!service.log_text().contains(&token), "the token is in no log");
}

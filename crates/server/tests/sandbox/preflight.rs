//! The preflight on a real cluster: each failure is caused for real, and reported with its fix.

use std::{fs, os::unix::fs::PermissionsExt, path::Path, process::Command};

use serde_json::Value;

use crate::{cluster::Sandbox, service::Service};

fn preflight(service: &Service) -> Value {
    let answer = service.post("/clusters/sandbox/preflight", "");
    assert_eq!(answer.status, 200, "{}", answer.text);
    answer.json()
}

/// The checks of this name.
fn checks<'a>(found: &'a Value, id: &str) -> Vec<&'a Value> {
    found["checks"].as_array().unwrap().iter().filter(|check| check["id"] == id).collect()
}

/// Checks that the only failed check has this name and these texts.
#[track_caller]
fn fails(found: &Value, id: &str, seen: &str, mend: &str) {
    assert_eq!(found["outcome"], "fail", "{found:#}");
    for check in found["checks"].as_array().unwrap() {
        assert!(check["outcome"] != "fail" || check["id"] == id, "{check:#}");
    }
    let failed = checks(found, id);
    let says = |field: &str, word: &str| {
        failed.iter().any(|one| one[field].as_str().unwrap_or_default().contains(word))
    };
    assert!(says("observed", seen) && says("fix", mend), "{failed:#?}");
}

fn copy(from: &str, to: &Path, mode: u32) {
    fs::copy(from, to).unwrap();
    fs::set_permissions(to, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_working_cluster_passes_with_one_command_per_login_host() {
    let service = Service::start();
    // The worker's own connections must be open already.
    crate::clusters::learnt(&service);
    let before = service.sandbox.logins();
    let found = preflight(&service);
    for check in found["checks"].as_array().unwrap() {
        let fine = ["pass", "skipped"].iter().any(|fine| check["outcome"] == *fine);
        assert!(fine || check["id"] == "enroot_credentials", "{check:#}");
    }
    assert!(
        service.sandbox.logins() - before <= 3,
        "one login a host, and perhaps a second one of the worker"
    );
    assert_eq!((checks(&found, "login").len(), checks(&found, "host_key").len()), (2, 2));
    let partitions = checks(&found, "partition");
    assert_eq!(partitions.len(), 4);
    assert!(partitions[0]["observed"].as_str().unwrap().contains("in partition polar"), "{}", partitions[0]);
    let text = found.to_string();
    for word in
        ["Slurmctld(primary) at ctl is UP", "tao_account", "srun supports --container-image", "GiB are free"]
    {
        assert!(text.contains(word), "{word}: {found:#}");
    }
    let output = service.run(&["preflight"]);
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && shown.contains("scheduler_commands"), "{shown}");
    let shown = String::from_utf8(service.run(&["cluster", "list"]).stdout).unwrap();
    assert!(shown.contains("sandbox") && shown.contains("127."), "{shown}");
}

#[test]
fn a_key_file_that_others_can_read_fails_the_check() {
    let dir = tempfile::tempdir().unwrap();
    let key = dir.path().join("key");
    copy(Sandbox::find().var("SSH_KEY_PATH"), &key, 0o644);
    let service = Service::start_with(&[("SSH_KEY_PATH", key.to_str().unwrap())]);
    fails(&preflight(&service), "private_key", "0644", "chmod 600");
    let output = service.run(&["preflight", "sandbox"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stdout).contains("fix: Run: chmod 600"));
}

#[test]
fn a_key_that_no_host_accepts_fails_the_login_check_of_each() {
    let dir = tempfile::tempdir().unwrap();
    let key = dir.path().join("wrong");
    let made = Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(&key).status();
    assert!(made.unwrap().success());
    let service = Service::start_with(&[("SSH_KEY_PATH", key.to_str().unwrap()), ("SSH_AUTH_SOCK", "")]);
    let found = preflight(&service);
    fails(&found, "login", "refused the login of", "authorized_keys");
    assert_eq!(checks(&found, "login").len(), 2);
    assert!(checks(&found, "host_key").iter().all(|check| check["outcome"] == "pass"), "{found:#}");
}

#[test]
fn a_changed_host_key_is_reported_for_its_host() {
    let dir = tempfile::tempdir().unwrap();
    let known = dir.path().join("known_hosts");
    let sandbox = Sandbox::find();
    let text = fs::read_to_string(sandbox.var("SSH_KNOWN_HOSTS")).unwrap();
    let first =
        sandbox.var("SLURM_HOSTNAME").split(',').next().unwrap().split(':').next().unwrap().to_owned();
    // The first host is known with the key of the second.
    let second_key =
        text.lines().find(|line| !line.contains(&first)).unwrap().split_once(' ').unwrap().1.to_owned();
    let swap = |line: &str| match line.split_once(' ') {
        Some((names, _)) if names.contains(&first) => format!("{names} {second_key}"),
        _ => line.to_owned(),
    };
    let swapped = text.lines().map(swap).collect::<Vec<_>>().join("\n");
    fs::write(&known, swapped).unwrap();
    let service = Service::start_with(&[("SSH_KNOWN_HOSTS", known.to_str().unwrap())]);
    let found = preflight(&service);
    fails(&found, "host_key", "does not match its known keys", "ssh-ed25519 ");
    let outcomes: Vec<&Value> = checks(&found, "host_key").iter().map(|check| &check["outcome"]).collect();
    assert_eq!(outcomes, ["fail", "pass"]);
    assert_eq!(checks(&found, "controller")[0]["outcome"], "pass", "the other host speaks for the cluster");
}

#[test]
fn an_unreachable_host_is_reported_beside_a_reachable_one() {
    let hosts = Sandbox::find().var("SLURM_HOSTNAME").to_owned();
    let (_, second) = hosts.split_once(',').unwrap();
    let service = Service::start_with(&[("SLURM_HOSTNAME", format!("127.254.254.254:1,{second}").as_str())]);
    let found = preflight(&service);
    fails(&found, "login", "cannot connect to 127.254.254.254:1", "");
    assert_eq!(checks(&found, "account")[0]["outcome"], "pass");
}

#[test]
fn an_unusable_account_or_partition_is_reported_with_the_usable_ones() {
    let service = Service::start_with(&[("SLURM_ACCOUNT", "nosuch")]);
    let found = preflight(&service);
    let account = checks(&found, "account")[0];
    assert_eq!(account["outcome"], "fail");
    assert!(account["observed"].as_str().unwrap().contains("tao_account"), "{account}");
    let partition = checks(&found, "partition")[0];
    assert!(partition["observed"].as_str().unwrap().contains("Invalid account"), "{partition}");

    let service = Service::start_with(&[("SLURM_PARTITION", "polar,nosuch")]);
    let found = preflight(&service);
    fails(&found, "partition", "Invalid partition name", "SLURM_PARTITION");
    let outcomes: Vec<&Value> = checks(&found, "partition").iter().map(|check| &check["outcome"]).collect();
    assert_eq!(outcomes, ["pass", "fail"]);
}

#[test]
fn each_login_host_reports_a_base_directory_that_is_not_writable() {
    let service = Service::start_with(&[("SLURM_BASE_RESULTS_DIR", "/usr/lib")]);
    let found = preflight(&service);
    fails(&found, "base_directory", "/usr/lib is not writable", "SLURM_BASE_RESULTS_DIR");
    assert_eq!(checks(&found, "base_directory").len(), 2);
    let service = Service::start_with(&[("SLURM_BASE_RESULTS_DIR", "/etc/no/such")]);
    fails(&preflight(&service), "base_directory", "cannot be created", "SLURM_BASE_RESULTS_DIR");
}

/// Runs a shell script as the other user of the account. No other test changes its login.
fn as_ming(sandbox: &Sandbox, text: &str) {
    let config = format!("{}/ssh/config", sandbox.var("SANDBOX_DIR"));
    let done = Command::new("ssh").args(["-F", &config, "-l", "ming", "login1", text]).status().unwrap();
    assert!(done.success(), "{text}");
}

/// The file that ming's bash reads at every non-interactive login.
struct Bashrc<'a>(&'a Sandbox);

impl<'a> Bashrc<'a> {
    fn with(sandbox: &'a Sandbox, text: &str) -> Self {
        as_ming(sandbox, &format!("printf '%s\n' '{text}' >~/.bashrc"));
        Self(sandbox)
    }
}

impl Drop for Bashrc<'_> {
    fn drop(&mut self) {
        as_ming(self.0, "/usr/bin/rm -f ~/.bashrc");
    }
}

#[test]
fn commands_missing_from_path_are_named() {
    let service = Service::prepare(&[("SLURM_USER", "ming"), ("SLURM_BASE_RESULTS_DIR", "/tmp")]);
    let few = "mkdir -p ~/few; for c in bash mktemp base64 tail head rm timeout stat df awk sed cut wc cat mkdir chmod \
               sleep kill grep id tr sort; do ln -sf /usr/bin/$c ~/few/; done; PATH=~/few";
    let sandbox = Sandbox::find();
    let _bashrc = Bashrc::with(&sandbox, few);
    let mut service = service;
    service.spawn();
    let found = preflight(&service);
    let commands = checks(&found, "scheduler_commands");
    assert!(commands.iter().all(|check| check["outcome"] == "fail"), "{found:#}");
    assert!(commands[0]["observed"].as_str().unwrap().contains("sbatch, squeue"), "{}", commands[0]);
    assert!(commands[0]["fix"].as_str().unwrap().contains("PATH"), "{}", commands[0]);
}

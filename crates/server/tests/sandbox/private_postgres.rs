//! The Postgres that the service starts without `DATABASE_URL`, and its backups as the runbook says.

use std::{path::Path, process::Command};

use serde_json::json;

use crate::{
    ending::{command, held},
    service::Service,
};

const RUNBOOK: &str = include_str!("../../../../docs/operations/backup-and-upgrades.md");

/// The first commands of the runbook after this text.
fn commands_after(text: &str) -> &'static str {
    let (_, rest) = RUNBOOK.split_once(text).unwrap();
    rest.split_once("```sh\n").unwrap().1.split_once("```").unwrap().0
}

/// Runs commands in a shell whose user has this home directory.
fn shell(home: &Path, commands: &str) {
    let output = Command::new("bash").args(["-euc", commands]).env("HOME", home).output().unwrap();
    assert!(output.status.success(), "{commands}: {}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn without_a_database_url_the_service_starts_a_private_postgres() {
    let mut service = Service::prepare(&[]);
    service.unset("DATABASE_URL");
    service.spawn();
    let id = service.submit(&command("true"));
    assert_eq!(service.wait_ended(&id)["status"], "Done");
    service.stop();
    service.spawn();
    assert_eq!(service.status(&id)["status"], "Done", "and it keeps what it knew");
}

#[test]
fn it_is_restored_from_a_copy_or_moved_by_a_dump_as_the_runbook_says() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    // The account that runs Postgres must reach the data directory.
    shell(home, "chmod 711 ~ && mkdir -p ~/.local/share");
    let data = home.join(".local/share/tao-slurm");
    let mut service = Service::prepare(&[("TAO_SLURM_DATA_DIR", data.to_str().unwrap())]);
    let own_postgres = service.database_url.clone();
    service.unset("DATABASE_URL");
    service.spawn();
    // The second waits with its secret, which needs the sealing key.
    let first = service.submit(&held("true"));
    let mut waiting = command("test \"$TOLD\" = hunter2");
    waiting["secret_env_vars"] = json!({"TOLD": "hunter2"});
    waiting["needs"] = json!([{"job": first}]);
    let second = service.submit(&waiting);
    service.wait(&first, "its start", |status| status["status"] == "Running");
    let mut dump = commands_after("Without a stop, dump").to_owned();
    if rustix::process::geteuid().is_root() {
        dump = dump
            .replace("\npg_dump ", "\nsu postgres -c \"pg_dump ")
            .replace(" >~/tao_slurm.dump", "\" >~/tao_slurm.dump");
    }
    shell(home, &dump);
    service.stop();

    shell(home, commands_after("### The private Postgres"));
    let restore = "tar -C ~/.local/share -xf ~/tao-slurm.tar";
    assert!(RUNBOOK.contains(restore));
    shell(home, &format!("mv ~/.local/share/tao-slurm ~/away && {restore}"));
    service.spawn();
    assert_eq!(service.status(&second)["status"], "Pending");
    service.stop();

    shell(home, &format!("pg_restore --exit-on-error --no-owner --dbname='{own_postgres}' ~/tao_slurm.dump"));
    shell(home, "install -D -m 600 ~/tao_slurm.key ~/moved/secrets.key");
    service.set("TAO_SLURM_DATA_DIR", home.join("moved").to_str().unwrap());
    service.set("DATABASE_URL", &own_postgres);
    service.spawn();
    service.let_go(&first);
    assert_eq!(service.wait_ended(&first)["status"], "Done");
    let ended = service.wait_ended(&second);
    assert_eq!(ended["status"], "Done", "{ended}");
}

//! With the Postgres that is installed on this machine.

use std::{os::unix::fs::PermissionsExt, time::Duration};

use persistence::{Sealer, Store, StoreOptions};
use rustix::process::Pid;

use super::*;

mod tls;

struct DataDir(tempfile::TempDir);

impl DataDir {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn start(&self) -> EmbeddedPostgres {
        EmbeddedPostgres::start(self.0.path(), &[]).unwrap()
    }
}

fn pid(postgres: &EmbeddedPostgres) -> Option<Pid> {
    process::running(&postgres.server.data)
}

async fn store(postgres: &EmbeddedPostgres) -> Store {
    let options = StoreOptions {
        url: postgres.url().clone(),
        max_connections: 2,
        acquire_timeout: Duration::from_mins(2),
    };
    Store::connect(&options, Sealer::from_key([0; 32])).await.unwrap()
}

#[tokio::test]
async fn it_starts_serves_stops_and_keeps_its_data() {
    let dir = DataDir::new();
    let first = dir.start();
    let before = store(&first).await;
    before.migrate().await.unwrap();
    before.ready().await.unwrap();
    before.close().await;
    assert!(first.is_alive());
    let data = first.server.data.clone();
    first.stop().unwrap();
    assert!(process::running(&data).is_none(), "a process is left after the stop");

    let second = dir.start();
    let after = store(&second).await;
    after.ready().await.expect("the schema of the first run still exists");
    after.close().await;
    second.stop().unwrap();
}

#[tokio::test]
async fn a_postgres_that_outlived_its_service_is_used_again_and_stopped() {
    let dir = DataDir::new();
    let killed = dir.start();
    let orphan = pid(&killed);
    // As after kill -9 of the service: nothing is stopped, and the kernel releases the locks.
    drop(killed);

    let adopter = dir.start();
    assert!(orphan.is_some());
    assert_eq!(pid(&adopter), orphan);
    let store = store(&adopter).await;
    store.migrate().await.unwrap();
    store.close().await;
    let data = adopter.server.data.clone();
    adopter.stop().unwrap();
    assert!(process::running(&data).is_none());
}

#[test]
fn it_runs_until_its_last_user_stops() {
    let dir = DataDir::new();
    let (service, command) = (dir.start(), dir.start());
    assert_eq!(pid(&service), pid(&command));
    service.stop().unwrap();
    assert!(command.is_alive(), "the first user stopped it while another used it");
    let data = command.server.data.clone();
    command.stop().unwrap();
    assert!(process::running(&data).is_none());
}

#[test]
fn a_stale_pid_file_does_not_prevent_a_start() {
    let dir = DataDir::new();
    dir.start().stop().unwrap();
    let data = dir.0.path().join("postgres/data");
    // The pid of a process that is not Postgres: ours.
    let stale = format!("{}\n{}\n1\n5432\n/tmp\n\n\nready\n", std::process::id(), data.display());
    fs::write(data.join("postmaster.pid"), stale).unwrap();
    dir.start().stop().unwrap();
}

#[test]
fn a_data_directory_with_a_long_name_works() {
    let dir = DataDir::new();
    let long = dir.0.path().join("x".repeat(120));
    fs::create_dir(&long).unwrap();
    // As root, the account postgres must be able to enter the parent directory.
    fs::set_permissions(dir.0.path(), fs::Permissions::from_mode(0o711)).unwrap();
    let postgres = EmbeddedPostgres::start(&long, &[]).unwrap();
    let Server { home, data, account, .. } = &postgres.server;
    let (sockets, data) = (socket_dir::of(home, account.uid), data.clone());
    postgres.stop().unwrap();
    assert!(process::running(&data).is_none());
    fs::remove_dir_all(sockets).unwrap();
}

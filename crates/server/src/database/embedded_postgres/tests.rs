//! With the Postgres that is installed on this machine.

use std::os::unix::fs::PermissionsExt;

use persistence::{Sealer, Store, StoreOptions};

use super::*;

struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn start(&self) -> EmbeddedPostgres {
        let search_path: Vec<PathBuf> = Vec::new();
        EmbeddedPostgres::start(self.0.path(), &search_path).unwrap()
    }
}

async fn store(postgres: &EmbeddedPostgres) -> Store {
    let options = StoreOptions {
        url: postgres.url().clone(),
        max_connections: 2,
        acquire_timeout: Duration::from_secs(5),
    };
    Store::connect(&options, Sealer::from_key([0; 32])).await.unwrap()
}

#[tokio::test]
async fn it_starts_serves_stops_and_keeps_its_data() {
    let place = Place::new();
    let mut first = place.start();
    let before = store(&first).await;
    before.migrate().await.unwrap();
    before.ready().await.unwrap();
    before.close().await;
    assert!(first.is_alive());
    let postmaster = first.postmaster.clone();
    first.stop().unwrap();
    assert!(!postmaster.is_alive(), "stopping left a process");

    let second = place.start();
    let after = store(&second).await;
    after.ready().await.expect("the schema of the first run is still there");
    after.close().await;
    second.stop().unwrap();
}

#[tokio::test]
async fn one_that_outlived_its_service_is_used_again_and_stopped() {
    let place = Place::new();
    let mut killed = place.start();
    let pid = killed.postmaster.pid();
    // What kill -9 of the service does: nothing is stopped, and the kernel drops the locks.
    let mut orphan = killed.child.take().unwrap();
    drop(killed);

    let adopter = place.start();
    assert_eq!(adopter.postmaster.pid(), pid);
    assert!(adopter.child.is_none());
    let store = store(&adopter).await;
    store.migrate().await.unwrap();
    store.close().await;
    // In life the orphan's parent is init, which reaps it; here that is us.
    let reaper = std::thread::spawn(move || orphan.wait());
    adopter.stop().unwrap();
    assert!(reaper.join().unwrap().unwrap().success());
}

#[test]
fn it_runs_until_its_last_user_leaves() {
    let place = Place::new();
    let (service, mut command) = (place.start(), place.start());
    assert_eq!(service.postmaster.pid(), command.postmaster.pid());
    let mut child = service.child;
    let service = EmbeddedPostgres { child: None, ..service };
    service.stop().unwrap();
    assert!(command.is_alive(), "the first to leave stopped it under the other");
    let reaper = std::thread::spawn(move || child.as_mut().map(Child::wait));
    command.stop().unwrap();
    assert!(reaper.join().unwrap().unwrap().unwrap().success());
}

#[test]
fn a_pid_file_left_behind_is_no_obstacle() {
    let place = Place::new();
    place.start().stop().unwrap();
    let layout = Layout::new(place.0.path());
    // A number that lives and is no Postgres: ours.
    let stale = format!("{}\n{}\n1\n5432\n/tmp\n\n\nready\n", std::process::id(), layout.data.display());
    fs::write(layout.data.join("postmaster.pid"), stale).unwrap();
    place.start().stop().unwrap();
}

#[test]
fn a_data_directory_with_a_long_name_works() {
    let place = Place::new();
    let long = place.0.path().join("x".repeat(120));
    fs::create_dir(&long).unwrap();
    // As root, the account postgres has to pass through what is not the data directory itself.
    fs::set_permissions(place.0.path(), fs::Permissions::from_mode(0o711)).unwrap();
    let postgres = EmbeddedPostgres::start(&long, &[]).unwrap();
    let sockets = postgres.postmaster.clone();
    postgres.stop().unwrap();
    assert!(!sockets.is_alive());
    fs::remove_dir_all(
        socket_dir::make(&Layout::new(&long).home, &Account::for_postgres().unwrap()).unwrap(),
    )
    .unwrap();
}

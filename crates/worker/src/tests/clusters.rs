//! Clusters that come, change and go while the worker runs, and names that come to mean another one.

use std::collections::HashSet;

use testkit::MemoryStore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::*;

const KEPT: i64 = 5;

pub(super) fn target(name: &str, incarnation: Option<i64>) -> (ClusterTarget<FakeLink>, Arc<FakeCluster>) {
    let fake = Arc::new(FakeCluster::new());
    let cluster = Cluster { name: name.parse().unwrap(), ..cluster() };
    let pace = Pace { min: Duration::from_secs(1), max: Duration::from_secs(1) };
    (ClusterTarget { cluster, incarnation, link: FakeLink(Arc::clone(&fake)), pace }, fake)
}

pub(super) fn worker(
    targets: Vec<ClusterTarget<FakeLink>>,
) -> (Arc<Worker<FakeLink, MemoryStore>>, MemoryStore) {
    let clock = Arc::new(HandClock::new());
    let store = MemoryStore::new(Arc::clone(&clock) as Arc<dyn domain::Clock>);
    let settings = WorkerSettings {
        lease: Duration::from_secs(30),
        batch: 64,
        graces: Graces::default(),
        partitions_every: Duration::from_mins(5),
    };
    let worker = Worker::new(store.clone(), targets, settings, clock, Arc::new(CountingIds::default()));
    (Arc::new(worker), store)
}

pub(super) fn job_on(name: &str, number: u128) -> NewJob {
    let job = Job { cluster: name.parse().unwrap(), ..command_job(number) };
    NewJob { job, secrets: Secrets::default(), request_hash: [0; 32] }
}

/// What Slurm calls its first attempt.
pub(super) fn name_of(number: u128) -> String {
    format!("tao-job-{}", command_job(number).id)
}

/// Virtual time goes on for as long as it takes.
async fn until(what: &str, done: impl Fn() -> bool) {
    for _ in 0..1000 {
        if done() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("waited for {what}");
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_comes_is_worked_with_and_one_that_goes_is_not_while_the_others_go_on() {
    let (stays, staying) = target("stays", None);
    let (worker, store) = worker(vec![stays]);
    let stop = CancellationToken::new();
    let mut running = JoinSet::new();
    running.spawn(Arc::clone(&worker).run(stop.clone()));
    store.insert_job(&job_on("comes", 1));
    until("the first look at the one that stays", || staying.commands() > 0).await;

    let (comes, coming) = target("comes", Some(KEPT));
    let name = comes.cluster.name.clone();
    store.set_incarnation(&name, Some(KEPT));
    worker.change(&HashSet::new(), vec![comes]);
    until("its job to be submitted", || coming.submissions(&name_of(1)) == 1).await;
    assert!(worker.silent_loops(Duration::ZERO).is_empty());

    worker.change(&HashSet::from([name]), Vec::new());
    until("its loops to let go of it", || Arc::strong_count(&coming) == 1).await;
    let asked = coming.commands();
    store.insert_job(&job_on("comes", 2));
    store.insert_job(&job_on("stays", 3));
    until("a job of the one that stays", || staying.submissions(&name_of(3)) == 1).await;
    assert_eq!(coming.commands(), asked, "nobody asks it any more");
    stop.cancel();
    running.join_next().await.unwrap().unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn nothing_is_done_to_a_cluster_whose_name_means_another_one_by_now() {
    let (known, fake) = target("kept", Some(KEPT));
    let name = known.cluster.name.clone();
    let (worker, store) = worker(vec![known]);
    let runtime = worker.runtimes().next().unwrap();
    store.insert_job(&job_on("kept", 1));
    for meant in [None, Some(KEPT + 1)] {
        store.set_incarnation(&name, meant);
        assert_eq!(worker.take_steps(&runtime, Lane::Submit, None).await.unwrap(), 0);
        assert_eq!(worker.poll_if_due(&runtime, Duration::ZERO).await.unwrap(), None);
        assert!(!worker.learn_if_due(&runtime).await.unwrap());
        assert_eq!(fake.commands(), 0, "{meant:?}");
    }
    store.set_incarnation(&name, Some(KEPT));
    let (other, _) = target("kept", Some(KEPT));
    worker.change(&HashSet::from([name]), vec![other]);
    let job = store.all_jobs().remove(0);
    assert!(job.phase == Phase::Queued && job.attempt.is_none(), "it waits for those who know the other");
}

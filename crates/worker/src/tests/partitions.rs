//! The partitions: asked once for all workers, remembered, and kept when a question is not answered.

use super::*;
use persistence::PartitionTurns as _;

async fn known(bench: &Bench) -> persistence::KnownPartitions {
    bench.worker.store.partitions().await.unwrap().remove(&cluster().name).unwrap()
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_cluster_is_asked_at_the_start_and_then_not_before_it_is_time(pool: PgPool) {
    let bench = Bench::new(pool);
    assert!(bench.worker.learn_if_due(&bench.runtime).await.unwrap());
    assert!(!bench.worker.learn_if_due(&bench.runtime).await.unwrap());
    assert_eq!(bench.fake.commands(), 1);
    let known = known(&bench).await;
    assert_eq!(known.partitions[0].name.as_str(), "polar");
    assert_eq!((known.fetched_at, known.interval), (Some(bench.clock.now()), Duration::from_mins(5)));
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_cluster_that_does_not_answer_is_asked_again_soon_and_what_it_said_stays(pool: PgPool) {
    let bench = Bench::new(pool);
    assert!(bench.worker.learn_if_due(&bench.runtime).await.unwrap());
    let now = bench.clock.now();
    let store = &bench.worker.store;
    store.record_partitions_unanswered(&cluster().name, "earlier", Duration::ZERO, now).await.unwrap();
    bench.fake.plan_fault(Fault::Unreachable);
    assert!(bench.worker.learn_if_due(&bench.runtime).await.unwrap());
    let known = known(&bench).await;
    assert_eq!(known.partitions.len(), 1);
    assert_eq!(known.error.unwrap().0, "no route to host");
    let next = bench.worker.store.next_partitions_in(&cluster().name).await.unwrap().unwrap();
    assert!(next <= Duration::from_mins(1), "{next:?}");
}

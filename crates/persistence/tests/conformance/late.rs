//! Calls with an expired lease: each one fails, whether another worker has a lease now or not.

use chrono::TimeDelta;
use persistence::{
    Call, DueJobs as _, Lane, Lease, Observations as _, OrphanRecords as _, PollResult, PollTurns as _,
    Purges as _, StepRecords as _, StoreError,
};
use uuid::Uuid;

use crate::{
    promises::{NOW, TERMS, accepted, dgx, ended, lease},
    sides::{LEASE, Request, Side},
};

async fn is_refused(call: impl Call<()>) {
    assert!(matches!(call.await, Err(StoreError::LeaseLost { .. })));
}

pub(crate) async fn an_expired_job_lease_changes_nothing(side: impl Side) {
    let job = accepted(&side).await;
    let jobs = std::slice::from_ref(&job);
    let (store, steps) = (side.store(), [ended(&job)]);
    let first = lease(&side, 1).await;
    side.pass(TimeDelta::seconds(40)).await;
    assert_eq!(store.record_steps(&first, &steps, NOW).await.unwrap().len(), 0);
    is_refused(store.extend(&first, LEASE)).await;
    store.put_off(&first, jobs, None).await.unwrap();
    let second = lease(&side, 2).await;
    assert_eq!(second.jobs.len(), 1, "nobody has put it off");

    assert_eq!(store.record_steps(&first, &steps, NOW).await.unwrap().len(), 0);
    is_refused(store.extend(&first, LEASE)).await;
    store.put_off(&first, jobs, None).await.unwrap();
    assert_eq!(side.find(job.id).await.unwrap().phase, domain::Phase::Queued);
    assert_eq!(store.record_steps(&second, &steps, NOW).await.unwrap().len(), 1);
}

pub(crate) async fn an_expired_poll_lease_changes_nothing(side: impl Side) {
    let store = side.store();
    let poll = async |token| store.acquire_poll(&dgx(), Uuid::from_u128(token), LEASE).await.unwrap();
    let late = async |first| {
        is_refused(store.extend_poll(first, LEASE)).await;
        is_refused(store.record_orphans(first, &[], &[], NOW)).await;
        assert!(matches!(
            store.record_observations(first, &[], NOW).await,
            Err(StoreError::LeaseLost { .. })
        ));
        is_refused(store.record_poll(first, PollResult::Answered, LEASE, NOW)).await;
    };
    let first = poll(1).await.unwrap();
    side.pass(TimeDelta::seconds(40)).await;
    late(&first).await;
    let second = poll(2).await.unwrap();
    late(&first).await;
    assert!(poll(3).await.is_none(), "the second still has it");
    assert_eq!(second.polled_at, None, "nothing was seen by the first");
    store.record_poll(&second, PollResult::Idle, LEASE, NOW).await.unwrap();
}

async fn lease_tended(side: &impl Side, token: u128) -> Lease {
    side.store().acquire_due(&dgx(), Lane::Follow, Uuid::from_u128(token), TERMS).await.unwrap()
}

pub(crate) async fn an_expired_purge_lease_changes_nothing(side: impl Side) {
    let job = accepted(&side).await;
    let store = side.store();
    store.record_steps(&lease(&side, 1).await, &[ended(&job)], NOW).await.unwrap();
    side.request(job.id, Request::Delete { artifacts: true }, NOW).await;
    let is_there = async || !store.purge_targets(&[job.id]).await.unwrap().is_empty();
    let late = async |first| {
        store.delete_purged(first, &[job.id]).await.unwrap();
        store.put_off_purges(first, &[(job.id, LEASE)]).await.unwrap();
        assert!(is_there().await);
    };
    let first = lease_tended(&side, 2).await;
    assert_eq!(first.jobs.len(), 1);
    side.pass(TimeDelta::seconds(40)).await;
    late(&first).await;
    let second = lease_tended(&side, 3).await;
    assert_eq!(second.jobs.len(), 1, "nobody has put it off");
    late(&first).await;
    store.delete_purged(&second, &[job.id]).await.unwrap();
    assert!(!is_there().await, "the second still had it");
}

use std::time::Duration;

use chrono::DateTime;
use domain::{Secrets, Transition};
use sqlx::PgPool;
use testkit::command_job;
use uuid::Uuid;

use super::*;
use crate::{DueJobs as _, Lane, LeaseTerms, NewJob, Sealer, StepRecords as _, Viewer};

/// The whole job as a text, and its version.
async fn look(store: &Store, id: JobId) -> (String, JobVersion) {
    let job = store.find_job(id, &Viewer::All).await.unwrap().unwrap();
    let version = store.job_versions(&[id]).await.unwrap()[&id];
    assert_eq!(version, JobVersion::of(&job));
    (format!("{job:?}"), version)
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_change_has_a_new_version_only_if_it_is_visible(pool: PgPool) {
    let store = Store::from_pool(pool, Sealer::from_key([7; 32]));
    let new = NewJob { job: command_job(1), secrets: Secrets::default(), request_hash: [0; 32] };
    store.insert_job(&new).await.unwrap();
    let (id, dgx, now) = (new.job.id, new.job.cluster.clone(), DateTime::UNIX_EPOCH);
    let terms = LeaseTerms { duration: Duration::from_mins(1), limit: 9, only_stopped: false };
    let acquire = async |token| {
        let lease = store.acquire_due(&dgx, Lane::Submit, Uuid::from_u128(token), terms).await.unwrap();
        assert_eq!(lease.jobs.len(), 1);
        lease
    };

    let accepted = look(&store, id).await;
    let lease = acquire(1).await;
    store.extend(&lease, terms.duration).await.unwrap();
    store.put_off(&lease, &lease.jobs, Some(Duration::ZERO)).await.unwrap();
    let lease = acquire(2).await;
    store.put_off(&lease, &lease.jobs, Some(Duration::ZERO)).await.unwrap();
    assert_eq!(look(&store, id).await, accepted);

    let lease = acquire(3).await;
    let mut job = lease.jobs[0].clone();
    job.attempt = Some(job.new_attempt("/lustre/tao".parse().unwrap(), now).unwrap());
    store.record_steps(&lease, &[Transition { job, due_at: Some(now) }], now).await.unwrap();
    let begun = look(&store, id).await;
    assert!(begun.0 != accepted.0 && begun.1 != accepted.1, "{begun:?}");
    store.record_scripts(&[(id, 1, Some("#!/bin/bash".to_owned()))]).await.unwrap();
    assert_eq!(look(&store, id).await, begun);

    store.request_cancel(id, &Viewer::All, now).await.unwrap();
    let canceling = look(&store, id).await;
    assert!(canceling.0 != begun.0 && canceling.1 != begun.1, "{canceling:?}");
}

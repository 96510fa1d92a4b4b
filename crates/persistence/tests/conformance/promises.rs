//! Promises that both stores keep, one test for each.

use chrono::{DateTime, TimeDelta};
use domain::{DesiredState, Job, Phase, Status, Timestamp, Transition};
use persistence::{
    DueJobs as _, Incarnations as _, Inserted, Lane, Lease, LeaseTerms, NewJob, StepRecords as _,
};
use testkit::command_job;
use uuid::Uuid;

use crate::{
    arrays::an_array_that_failed_has_the_failure_of_its_first_failed_task,
    images::{
        a_conversion_lives_as_long_as_somebody_waits,
        a_conversion_that_is_given_up_is_canceled_unless_somebody_waits,
        an_image_that_has_changed_since_it_was_read_is_not_stored,
        who_waits_is_due_when_it_does_not_wait_any_longer,
        who_waits_is_due_when_the_conversion_begins_and_ends, who_was_changed_meanwhile_is_due_at_once,
    },
    late::{
        an_expired_job_lease_changes_nothing, an_expired_poll_lease_changes_nothing,
        an_expired_purge_lease_changes_nothing,
    },
    sides::{LEASE, Memory, Postgres, Request, Side, secrets},
};

pub(crate) const NOW: Timestamp = DateTime::UNIX_EPOCH;
pub(crate) const TERMS: LeaseTerms = LeaseTerms { duration: LEASE, limit: 10, only_stopped: false };

/// A job that was just accepted.
pub(crate) async fn accepted(side: &impl Side) -> Job {
    let new = NewJob { job: command_job(1), secrets: secrets(), request_hash: [0; 32] };
    match side.insert(&new).await {
        Inserted::Created(job) => job,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn dgx() -> domain::ClusterName {
    "dgx".parse().unwrap()
}

pub(crate) async fn lease(side: &impl Side, token: u128) -> Lease {
    side.store().acquire_due(&dgx(), Lane::Submit, Uuid::from_u128(token), TERMS).await.unwrap()
}

pub(crate) fn ended(job: &Job) -> Transition {
    Transition { job: job.canceled_locally(NOW), due_at: None }
}

async fn a_leased_job_is_leased_once(side: impl Side) {
    accepted(&side).await;
    assert_eq!(lease(&side, 1).await.jobs.len(), 1);
    assert_eq!(lease(&side, 2).await.jobs.len(), 0);
    side.pass(TimeDelta::seconds(40)).await;
    assert_eq!(lease(&side, 3).await.jobs.len(), 1, "an end of the lease comes by itself");
}

async fn a_request_outlives_a_step_that_did_not_see_it(side: impl Side) {
    let job = accepted(&side).await;
    let held = lease(&side, 1).await;
    side.request(job.id, Request::Cancel, NOW).await;
    let waiting = Job { phase: Phase::RetryWait, ..job.clone() };
    let step = Transition { job: waiting, due_at: Some(NOW + TimeDelta::hours(1)) };
    side.store().record_steps(&held, &[step], NOW).await.unwrap();
    let after = side.find(job.id).await.unwrap();
    assert_eq!((after.desired, after.status), (DesiredState::Cancel, Status::Canceling));
    assert_eq!(lease(&side, 2).await.jobs.len(), 1, "and is carried out at once");
}

async fn an_ended_job_has_no_secret_and_stays_ended(side: impl Side) {
    let job = accepted(&side).await;
    let held = lease(&side, 1).await;
    side.store().record_steps(&held, &[ended(&job)], NOW).await.unwrap();
    assert!(side.store().open_secrets(&[job.id]).await.unwrap().is_empty());
    for request in [Request::Cancel, Request::Pause, Request::Resume] {
        side.request(job.id, request, NOW).await;
        assert_eq!(side.find(job.id).await.unwrap().status, Status::Canceled, "{request:?}");
    }
    side.pass(TimeDelta::hours(1)).await;
    assert_eq!(lease(&side, 2).await.jobs.len(), 0);
}

async fn the_id_of_a_deleted_job_is_not_reused(side: impl Side) {
    let job = accepted(&side).await;
    let held = lease(&side, 1).await;
    side.store().record_steps(&held, &[ended(&job)], NOW).await.unwrap();
    side.request(job.id, Request::Delete { artifacts: false }, NOW).await;
    let again = NewJob { job: command_job(1), secrets: secrets(), request_hash: [0; 32] };
    assert!(matches!(side.insert(&again).await, Inserted::Other));
}

async fn a_name_means_one_cluster_at_a_time(side: impl Side) {
    let means = async |incarnation| side.store().is_incarnation(&dgx(), incarnation).await.unwrap();
    assert!(!means(1).await, "nobody keeps it");
    side.set_incarnation(&dgx(), Some(1)).await;
    assert_eq!((means(1).await, means(2).await), (true, false));
    side.set_incarnation(&dgx(), Some(2)).await;
    assert_eq!((means(1).await, means(2).await), (false, true));
    side.set_incarnation(&dgx(), None).await;
    assert!(!means(2).await);
}

/// Each promise is tested with both stores.
macro_rules! promises {
    ($($promise:ident),* $(,)?) => {
        mod of_the_database {
            $(#[sqlx::test(migrator = "persistence::MIGRATOR")]
            async fn $promise(pool: sqlx::PgPool) {
                super::$promise(super::Postgres::new(pool)).await;
            })*
        }
        mod of_the_memory_store {
            $(#[tokio::test]
            async fn $promise() {
                super::$promise(super::Memory::new()).await;
            })*
        }
    };
}

promises!(
    a_leased_job_is_leased_once,
    an_array_that_failed_has_the_failure_of_its_first_failed_task,
    an_expired_job_lease_changes_nothing,
    an_expired_poll_lease_changes_nothing,
    an_expired_purge_lease_changes_nothing,
    a_request_outlives_a_step_that_did_not_see_it,
    an_ended_job_has_no_secret_and_stays_ended,
    the_id_of_a_deleted_job_is_not_reused,
    a_name_means_one_cluster_at_a_time,
    who_waits_is_due_when_the_conversion_begins_and_ends,
    who_waits_is_due_when_it_does_not_wait_any_longer,
    a_conversion_lives_as_long_as_somebody_waits,
    a_conversion_that_is_given_up_is_canceled_unless_somebody_waits,
    an_image_that_has_changed_since_it_was_read_is_not_stored,
    who_was_changed_meanwhile_is_due_at_once,
);

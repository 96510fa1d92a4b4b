use std::time::Duration;

use chrono::DateTime;
use domain::{ArrayTasks, JobArray, Need, NeedWhen, Phase, Secrets, Status, Transition, after_needs};
use sqlx::PgPool;
use testkit::command_job;

use super::*;
use crate::{
    DueJobs as _, DueNotices as _, Inserted, Lane, Lease, LeaseTerms, NewJob, Requested, Retry, Sealer,
    StepRecords as _, Viewer,
};

const NOW: domain::Timestamp = DateTime::UNIX_EPOCH;

fn store(pool: PgPool) -> Store {
    Store::from_pool(pool, Sealer::from_key([7; 32]))
}

fn id(number: u128) -> JobId {
    command_job(number).id
}

fn needing(number: u128, needed: &[u128]) -> Job {
    let job = command_job(number);
    let mut spec = job.spec;
    let need = |of: &u128| Need {
        name: format!("job{of}").parse().unwrap(),
        job: id(*of).get(),
        when: NeedWhen::Succeeded,
    };
    spec.needs = needed.iter().map(need).collect();
    Job::accepted(job.id, job.owner, job.cluster, spec, NOW)
}

async fn insert(store: &Store, job: Job, secrets: Secrets) -> Inserted {
    store.insert_job(&NewJob { job, secrets, request_hash: [0; 32] }).await.unwrap()
}

/// Stores jobs, each of which needs those before it that are named.
async fn stored(store: &Store, jobs: &[(u128, &[u128])]) {
    for (number, needed) in jobs {
        let inserted = insert(store, needing(*number, needed), Secrets::default()).await;
        assert!(matches!(inserted, Inserted::Created(_)), "{inserted:?}");
    }
}

async fn acquire(store: &Store, token: u128) -> Lease {
    let terms = LeaseTerms { duration: Duration::from_secs(30), limit: 100, only_stopped: false };
    store.acquire_due(&"dgx".parse().unwrap(), Lane::Submit, Uuid::from_u128(token), terms).await.unwrap()
}

async fn find(store: &Store, number: u128) -> Job {
    store.find_job(id(number), &Viewer::All).await.unwrap().unwrap()
}

/// The step of every due job: those that wait look at what they need, `ends` end so, the others rest. Returns those that waited.
async fn step(store: &Store, token: u128, ends: &[(u128, Status)]) -> Vec<u128> {
    let mut lease = acquire(store, token).await;
    let jobs = std::mem::take(&mut lease.jobs);
    let ids: Vec<_> = jobs.iter().map(|job| job.id).collect();
    let needed = store.needed(&ids).await.unwrap();
    let (mut steps, mut rest, mut looked) = (vec![], vec![], vec![]);
    for job in jobs {
        let end = ends.iter().find(|(number, _)| id(*number) == job.id);
        if let Some((_, status)) = end {
            let ended = Job { status: *status, phase: Phase::Ended, finished_at: Some(NOW), ..job };
            steps.push(Transition { job: ended, due_at: None });
        } else if job.phase == Phase::Waiting {
            looked.push(job.id.get().as_u128());
            let Transition { job: next, due_at } = after_needs(&job, &needed[&job.id], NOW);
            steps.push(Transition { job: next, due_at });
        } else {
            rest.push(job);
        }
    }
    store.record_steps(&lease, &steps, NOW).await.unwrap();
    store.put_off(&lease, &rest, None).await.unwrap();
    looked.sort_unstable();
    looked
}

async fn retry(store: &Store, number: u128) -> bool {
    let secrets = Secrets::default();
    let again = Retry { secrets: &secrets, incarnation: None, array: None };
    let retried = store.request_retry(id(number), &Viewer::All, &again, None, NOW).await.unwrap();
    matches!(retried, Requested::Taken(_))
}

async fn delete(store: &Store, number: u128) -> bool {
    let deleted = store.request_delete(id(number), &Viewer::All, false, None, NOW).await.unwrap();
    matches!(deleted, Requested::Taken(_))
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn the_end_of_a_job_wakes_those_that_need_it_and_no_others(pool: PgPool) {
    let store = store(pool);
    stored(&store, &[(1, &[]), (2, &[]), (3, &[1]), (4, &[1, 2]), (5, &[2])]).await;
    assert_eq!(step(&store, 1, &[]).await, [3, 4, 5], "each looks once when it is accepted");
    assert_eq!(step(&store, 2, &[]).await, [0_u128; 0]);
    let mut notices = store.listen_due().await.unwrap();
    sqlx::query!("update jobs set due_at = now() where id = $1", id(1).get())
        .execute(&store.pool)
        .await
        .unwrap();
    step(&store, 3, &[(1, Status::Done)]).await;
    let notice = notices.next().await.unwrap().unwrap();
    assert_eq!((notice.cluster.as_str(), notice.lane), ("dgx", Some(Lane::Submit)));
    assert_eq!(step(&store, 4, &[]).await, [3, 4]);
    assert_eq!((find(&store, 3).await.phase, find(&store, 4).await.phase), (Phase::Queued, Phase::Waiting));
    assert_eq!(find(&store, 4).await.message, "Waits for job2 to succeed, which is Pending.");
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn an_end_during_a_look_is_looked_at_again(pool: PgPool) {
    let store = store(pool);
    stored(&store, &[(1, &[]), (2, &[1])]).await;
    let mut lease = acquire(&store, 1).await;
    let jobs = std::mem::take(&mut lease.jobs);
    let needed = store.needed(&[id(2)]).await.unwrap();
    let (first, second) = (jobs.iter().find(|job| job.id == id(1)), jobs.iter().find(|job| job.id == id(2)));
    let (first, second) = (first.unwrap().clone(), second.unwrap().clone());
    let ended = Job { status: Status::Done, phase: Phase::Ended, finished_at: Some(NOW), ..first };
    store.record_steps(&lease, &[Transition { job: ended, due_at: None }], NOW).await.unwrap();
    let Transition { job, due_at } = after_needs(&second, &needed[&id(2)], NOW);
    assert_eq!((job.phase, due_at), (Phase::Waiting, None), "it has looked before the end");
    store.record_steps(&lease, &[Transition { job, due_at }], NOW).await.unwrap();
    assert_eq!(step(&store, 2, &[]).await, [2]);
    assert_eq!(find(&store, 2).await.phase, Phase::Queued);
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn needs_that_name_no_job_of_the_owner_store_nothing(pool: PgPool) {
    let store = store(pool);
    stored(&store, &[(1, &[])]).await;
    let stranger = Job { owner: domain::Owner::new("stranger"), ..needing(2, &[]) };
    insert(&store, stranger, Secrets::default()).await;
    let job = needing(3, &[1, 2, 9]);
    assert_eq!(store.unknown_needs(&job).await.unwrap(), [1, 2]);
    let inserted = insert(&store, job, Secrets::default()).await;
    assert!(matches!(&inserted, Inserted::NeedsUnknown(places) if *places == [1, 2]), "{inserted:?}");
    assert!(store.find_job(id(3), &Viewer::All).await.unwrap().is_none());
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_job_that_another_needs_is_not_deleted_until_that_has_ended(pool: PgPool) {
    let store = store(pool);
    stored(&store, &[(1, &[]), (2, &[1])]).await;
    step(&store, 1, &[(1, Status::Done)]).await;
    assert!(!delete(&store, 1).await);
    assert_eq!(store.needed_by(id(1)).await.unwrap(), Some(id(2)));
    let old = "update jobs set finished_at = now() - interval '9 days' where phase = 'ended'";
    sqlx::raw_sql(old).execute(&store.pool).await.unwrap();
    assert_eq!(store.delete_finished(Duration::from_hours(24), 10).await.unwrap(), 0, "nor by its age");
    let by_hand = sqlx::query!("delete from jobs where id = $1", id(1).get()).execute(&store.pool).await;
    assert!(by_hand.unwrap_err().to_string().contains("is needed"));
    assert!(store.needed(&[id(2)]).await.unwrap()[&id(2)][0].status.is_some());
    step(&store, 2, &[(2, Status::Error)]).await;
    assert!(delete(&store, 1).await);
    assert_eq!(store.needed(&[id(2)]).await.unwrap()[&id(2)], [NeededJob::default()]);
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_retry_reopens_what_was_canceled_because_of_the_failure(pool: PgPool) {
    let store = store(pool);
    stored(&store, &[(1, &[]), (2, &[1]), (3, &[2]), (4, &[1])]).await;
    let mut secret = needing(5, &[1]);
    secret.spec.secret_env.insert("HF_TOKEN".parse().unwrap());
    insert(&store, secret, Secrets::default()).await;
    let mut of_step = needing(6, &[1]);
    let stored = r#"{"kind": "components", "list": [{"name": "a", "text": "true", "first_node": 0, "nodes": 1,
                                                     "secret_env": ["HF_TOKEN"]}]}"#;
    of_step.spec.work = serde_json::from_str(stored).unwrap();
    insert(&store, of_step, Secrets::default()).await;
    store.request_cancel(id(4), &Viewer::All, NOW).await.unwrap();
    step(&store, 1, &[(1, Status::Error), (4, Status::Canceled)]).await;
    step(&store, 2, &[]).await;
    step(&store, 3, &[]).await;
    for number in [2, 3, 4, 5, 6] {
        assert_eq!(find(&store, number).await.status, Status::Canceled, "{number}");
    }
    assert!(retry(&store, 1).await);
    let phases = async |number| find(&store, number).await.phase;
    assert_eq!(
        (phases(1).await, phases(2).await, phases(3).await),
        (Phase::Queued, Phase::Waiting, Phase::Waiting)
    );
    assert_eq!(phases(4).await, Phase::Ended, "its owner has canceled it");
    assert_eq!(phases(5).await, Phase::Ended, "its secrets were erased");
    assert_eq!(phases(6).await, Phase::Ended, "so were those of its step");
    step(&store, 4, &[(1, Status::Done)]).await;
    step(&store, 5, &[]).await;
    assert_eq!((phases(2).await, phases(3).await), (Phase::Queued, Phase::Waiting));
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_skipped_array_waits_again_with_all_its_tasks(pool: PgPool) {
    let store = store(pool);
    stored(&store, &[(1, &[])]).await;
    let Job { id: two, owner, cluster, mut spec, .. } = needing(2, &[1]);
    let tasks = ArrayTasks::Indices("0-3".parse().unwrap());
    spec.array = Some(JobArray { tasks, max_parallel: None });
    let job = Job::accepted(two, owner, cluster, spec, NOW);
    let before = job.array.clone();
    insert(&store, job, Secrets::default()).await;
    step(&store, 1, &[(1, Status::Error)]).await;
    step(&store, 2, &[]).await;
    assert_eq!(find(&store, 2).await.array.unwrap().counts.canceled, 4);
    assert!(retry(&store, 1).await);
    step(&store, 3, &[]).await;
    let waits = find(&store, 2).await;
    assert_eq!((waits.phase, waits.array.unwrap().counts), (Phase::Waiting, before.as_ref().unwrap().counts));
    sqlx::query!("update jobs set due_at = now() where id = $1", id(1).get())
        .execute(&store.pool)
        .await
        .unwrap();
    step(&store, 4, &[(1, Status::Done)]).await;
    step(&store, 5, &[]).await;
    let again = find(&store, 2).await;
    assert_eq!((again.phase, again.array), (Phase::Queued, before));
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn changed_counts_of_tasks_wake_only_tasks_that_wait_for_tasks(pool: PgPool) {
    let store = store(pool);
    stored(&store, &[(1, &[]), (2, &[1])]).await;
    let Job { id: three, owner, cluster, mut spec, .. } = needing(3, &[1]);
    spec.needs[0].when = NeedWhen::Each;
    let tasks = ArrayTasks::Indices("0-3".parse().unwrap());
    spec.array = Some(JobArray { tasks, max_parallel: None });
    insert(&store, Job::accepted(three, owner, cluster, spec, NOW), Secrets::default()).await;
    assert_eq!(step(&store, 1, &[]).await, [2, 3]);
    let counts = async |number: i32| {
        sqlx::query!(
            "update jobs set array_state = jsonb_build_object('counts', jsonb_build_object('done', $2::int)) where id = $1",
            id(1).get(),
            number
        )
        .execute(&store.pool)
        .await
        .unwrap();
    };
    counts(1).await;
    assert_eq!(step(&store, 2, &[]).await, [3]);
    assert_eq!(step(&store, 3, &[]).await, [0_u128; 0]);
    // Also when some of its tasks are in Slurm.
    let running =
        sqlx::query_scalar!("update jobs set phase = 'running' where id = $1 returning version", three.get());
    let version = running.fetch_one(&store.pool).await.unwrap();
    let mut notices = store.listen_due().await.unwrap();
    counts(2).await;
    let notice = notices.next().await.unwrap().unwrap();
    assert_eq!((notice.cluster.as_str(), notice.lane), ("dgx", None));
    assert_eq!(find(&store, 3).await.version, version + 1);
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_job_that_went_on_does_not_wait_again(pool: PgPool) {
    let store = store(pool);
    stored(&store, &[(1, &[]), (2, &[1]), (3, &[1])]).await;
    store.request_pause(id(3), &Viewer::All, NOW).await.unwrap();
    let paused = |job: Job| Job { status: Status::Paused, phase: Phase::Paused, ..job };
    let lease = acquire(&store, 1).await;
    let third = lease.jobs.iter().find(|job| job.id == id(3)).unwrap();
    store
        .record_steps(&lease, &[Transition { job: paused(third.clone()), due_at: None }], NOW)
        .await
        .unwrap();
    store.put_off(&lease, &lease.jobs, Some(Duration::ZERO)).await.unwrap();
    step(&store, 2, &[(1, Status::Done)]).await;
    step(&store, 3, &[]).await;
    store.request_resume(id(3), &Viewer::All, None, NOW).await.unwrap();
    assert_eq!(find(&store, 3).await.phase, Phase::Waiting, "it was paused before it has looked");
    step(&store, 4, &[(2, Status::Error)]).await;
    assert_eq!(find(&store, 3).await.phase, Phase::Queued);
    step(&store, 5, &[(3, Status::Error)]).await;
    assert!(delete(&store, 1).await);
    assert!(retry(&store, 2).await);
    assert_eq!(find(&store, 2).await.phase, Phase::Queued);
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_retry_during_a_look_is_not_lost(pool: PgPool) {
    let store = store(pool);
    stored(&store, &[(1, &[]), (2, &[1])]).await;
    step(&store, 1, &[(1, Status::Error)]).await;
    let lease = acquire(&store, 2).await;
    let needed = store.needed(&[id(2)]).await.unwrap();
    assert!(retry(&store, 1).await);
    let Transition { job, due_at } = after_needs(&lease.jobs[0], &needed[&id(2)], NOW);
    assert!(job.is_skipped, "it has looked before the retry");
    store.record_steps(&lease, &[Transition { job, due_at }], NOW).await.unwrap();
    assert_eq!(find(&store, 2).await.phase, Phase::Waiting);
}

use std::time::Duration;

use domain::Secrets;
use serde_json::json;
use sqlx::PgPool;
use testkit::command_job;

use super::*;
use crate::{Inserted, JobNotice, JobVersion, NewJob, Requested, Sealer};

const MANY: u32 = 10_000;

async fn store_with(pool: &PgPool, jobs: u128) -> Store {
    let store = Store::from_pool(pool.clone(), Sealer::from_key([7; 32]));
    for number in 1..=jobs {
        let new = NewJob { job: command_job(number), secrets: Secrets::default(), request_hash: [0; 32] };
        assert!(!matches!(store.insert_job(&new).await.unwrap(), Inserted::Other));
    }
    store
}

fn job(number: u128) -> JobId {
    command_job(number).id
}

/// A change of a job as a worker makes it, in a transaction that the test ends.
fn change(number: u128, message: &str) -> String {
    let phase = if message.len().is_multiple_of(2) { "submitting" } else { "in_queue" };
    format!(
        "update jobs set phase = '{phase}', message = '{message}', version = version + 1 where id = '{}'",
        job(number)
    )
}

async fn run(connection: &mut sqlx::PgConnection, statement: String) {
    sqlx::raw_sql(sqlx::AssertSqlSafe(statement)).execute(connection).await.unwrap();
}

/// Reads on from a cursor.
async fn read_on(store: &Store, cursor: &mut u64) -> Vec<(JobId, u64)> {
    let head = store.place_events().await.unwrap();
    let page = store.feed(&Viewer::All, &FeedFilter::default(), *cursor, head, MANY).await.unwrap();
    *cursor = page.through;
    page.events.into_iter().map(|event| (event.job, event.event.seq)).collect()
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_reader_misses_no_event_whose_transaction_committed_late(pool: PgPool) {
    let store = store_with(&pool, 2).await;
    let mut cursor = 0;
    assert_eq!(read_on(&store, &mut cursor).await, [(job(1), 1), (job(2), 1)]);
    let (mut early, mut late) =
        (crate::store::begin(&pool).await.unwrap(), crate::store::begin(&pool).await.unwrap());
    run(&mut late, change(1, "a")).await;
    run(&mut early, change(2, "b")).await;
    early.commit().await.unwrap();
    assert_eq!(read_on(&store, &mut cursor).await, [(job(2), 2)]);
    late.commit().await.unwrap();
    assert_eq!(read_on(&store, &mut cursor).await, [(job(1), 2)], "its id is the lower one");
    let ids = sqlx::query_scalar!("select job_id from job_events where seq = 2 order by id");
    assert_eq!(ids.fetch_all(&pool).await.unwrap(), [job(1).get(), job(2).get()]);
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn events_of_one_job_keep_their_order_whichever_transaction_began_first(pool: PgPool) {
    let store = store_with(&pool, 2).await;
    let mut cursor = 0;
    read_on(&store, &mut cursor).await;
    let mut older = crate::store::begin(&pool).await.unwrap();
    run(&mut older, change(2, "a")).await;
    run(&mut pool.acquire().await.unwrap(), change(1, "b")).await;
    run(&mut older, change(1, "bb")).await;
    older.commit().await.unwrap();
    let seen = read_on(&store, &mut cursor).await;
    let of_one: Vec<_> = seen.iter().filter(|(id, _)| *id == job(1)).map(|(_, seq)| *seq).collect();
    assert_eq!(of_one, [2, 3], "{seen:?}");
}

/// Many writers and independent readers at once.
#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn every_reader_reads_every_event_once_and_in_order_while_many_write(pool: PgPool) {
    const JOBS: u128 = 4;
    const CHANGES: u64 = 40;
    const EVENTS: usize = 4 * 41;
    let store = store_with(&pool, JOBS).await;
    let mut tasks = tokio::task::JoinSet::new();
    for number in 1..=JOBS {
        let pool = pool.clone();
        tasks.spawn(async move {
            for count in 0..CHANGES {
                let mut tx = crate::store::begin(&pool).await.unwrap();
                run(&mut tx, change(number, if count.is_multiple_of(2) { "a" } else { "bb" })).await;
                tokio::task::yield_now().await;
                tx.commit().await.unwrap();
            }
            Vec::new()
        });
    }
    for _ in 0..2 {
        let store = store.clone();
        tasks.spawn(async move {
            let (mut cursor, mut seen) = (0, Vec::new());
            let all = async {
                while seen.len() < EVENTS {
                    seen.extend(read_on(&store, &mut cursor).await);
                }
            };
            tokio::time::timeout(Duration::from_mins(5), all).await.expect("an event is missing");
            assert_eq!(read_on(&store, &mut cursor).await, []);
            seen
        });
    }
    for seen in tasks.join_all().await.into_iter().filter(|seen| !seen.is_empty()) {
        for number in 1..=JOBS {
            let of_one: Vec<_> =
                seen.iter().filter(|(id, _)| *id == job(number)).map(|(_, seq)| *seq).collect();
            assert_eq!(of_one, (1..=CHANGES + 1).collect::<Vec<_>>());
        }
    }
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_deleted_job_leaves_only_its_deletion_for_viewers_that_could_see_it(pool: PgPool) {
    let store = store_with(&pool, 2).await;
    let mut cursor = 0;
    run(
        &mut pool.acquire().await.unwrap(),
        format!(
            "update jobs set phase = 'ended', status = 'Done', finished_at = now(), due_at = null, version = version + 1 \
             where id = '{}'",
            job(1)
        ),
    )
    .await;
    let head = store.place_events().await.unwrap();
    let now = domain::Timestamp::UNIX_EPOCH;
    let wished = store.request_delete(job(1), &Viewer::All, false, None, now).await.unwrap();
    assert!(matches!(wished, Requested::Taken(_)));
    assert_eq!(read_on(&store, &mut cursor).await, [(job(2), 1), (job(1), 3)]);
    let head_now = store.feed_head().await.unwrap();
    assert!(head_now > head);
    let owner = command_job(1).owner;
    for (viewer, seen) in
        [(Viewer::Owner(owner), vec!["deleted"]), (Viewer::Owner(Owner::new("somebody else")), vec![])]
    {
        let page = store.feed(&viewer, &FeedFilter::default(), head, head_now, MANY).await.unwrap();
        assert_eq!(page.events.iter().map(|event| event.event.kind.as_str()).collect::<Vec<_>>(), seen);
    }
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_position_is_never_reused_after_the_newest_events_are_deleted(pool: PgPool) {
    let store = store_with(&pool, 2).await;
    let head = store.place_events().await.unwrap();
    run(&mut pool.acquire().await.unwrap(), "delete from jobs; delete from deleted_jobs".to_owned()).await;
    assert_eq!(store.place_events().await.unwrap(), head);
    let new = NewJob { job: command_job(9), secrets: Secrets::default(), request_hash: [0; 32] };
    store.insert_job(&new).await.unwrap();
    assert_eq!(store.place_events().await.unwrap(), head + 1);
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_page_contains_the_requested_events_and_the_end_of_its_search(pool: PgPool) {
    let store = store_with(&pool, 3).await;
    let head = store.place_events().await.unwrap();
    assert_eq!(head, 3);
    let page = async |filter: FeedFilter, after, limit| {
        let page = store.feed(&Viewer::All, &filter, after, head, limit).await.unwrap();
        (page.events.iter().map(|event| event.job).collect::<Vec<_>>(), page.through, page.more)
    };
    let all = FeedFilter::default();
    assert_eq!(page(all.clone(), 0, 2).await, (vec![job(1), job(2)], 2, true));
    assert_eq!(page(all.clone(), 2, 2).await, (vec![job(3)], 3, false));
    assert_eq!(page(all, 3, 2).await, (vec![], 3, false));
    let one = FeedFilter { jobs: vec![job(2)], ..FeedFilter::default() };
    assert_eq!(page(one, 0, 9).await, (vec![job(2)], 3, false));
    let kind = |name: &str| FeedFilter { kinds: vec![name.to_owned()], ..FeedFilter::default() };
    assert_eq!(page(kind("status"), 0, 9).await.0, []);
    assert_eq!(page(kind("transition"), 0, 9).await.0.len(), 3);
    let elsewhere = FeedFilter { clusters: vec!["elsewhere".parse().unwrap()], ..FeedFilter::default() };
    assert_eq!(page(elsewhere, 0, 9).await, (vec![], 3, false));
    for (filter, wanted) in [(kind("status"), false), (kind("transition"), true)] {
        assert_eq!(filter.matches(job(1), "dgx", "transition"), wanted);
    }
    let of_one = store.job_feed(job(2), 0, 0, &[], MANY).await.unwrap();
    assert_eq!((of_one.len(), of_one[0].position, &of_one[0].event.data["phase"]), (1, 2, &json!("queued")));
    assert_eq!(store.job_feed(job(2), 0, 2, &[], MANY).await.unwrap().len(), 0);
    let found = store.find_jobs(&[job(1), job(7)]).await.unwrap();
    assert_eq!(found.keys().collect::<Vec<_>>(), [&job(1)]);
    let version = JobVersion::of(&found[&job(1)]);
    assert_eq!(store.job_versions(&[job(1), job(7)]).await.unwrap(), [(job(1), version)].into());
    run(&mut pool.acquire().await.unwrap(), change(1, "a")).await;
    let newer = store.job_versions(&[job(1)]).await.unwrap()[&job(1)];
    assert_ne!(newer, version);
    assert_eq!(newer, JobVersion::of(&store.find_jobs(&[job(1)]).await.unwrap()[&job(1)]));
    run(&mut pool.acquire().await.unwrap(), "update jobs set desired_state = 'delete'".to_owned()).await;
    assert!(store.job_versions(&[job(1)]).await.unwrap().is_empty(), "it is as good as deleted");
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_listener_hears_of_each_change_of_a_job_and_of_no_lease(pool: PgPool) {
    let store = store_with(&pool, 1).await;
    let mut listener = store.listen_jobs().await.unwrap();
    let mut connection = pool.acquire().await.unwrap();
    let lease = "update jobs set lease_token = gen_random_uuid(), lease_expires_at = now()";
    run(&mut connection, lease.to_owned()).await;
    run(&mut connection, "update jobs set message = 'x', version = version + 1".to_owned()).await;
    assert_eq!(listener.next().await.unwrap(), JobNotice::Changed(job(1)));
    store_with(&pool, 2).await;
    assert_eq!(listener.next().await.unwrap(), JobNotice::Changed(job(2)));
    run(&mut connection, "delete from jobs".to_owned()).await;
    let gone = [listener.next().await.unwrap(), listener.next().await.unwrap()];
    assert!(gone.contains(&JobNotice::Changed(job(1))) && gone.contains(&JobNotice::Changed(job(2))));
}

use std::time::Duration;

use chrono::DateTime;
use domain::{ClusterName, Conversion, ConversionState, Demand, FileFault, Secrets};
use remote::ImageFile;
use slurm::{RemotePath, SlurmJobId};
use sqlx::PgPool;
use testkit::command_job;
use uuid::Uuid;

use super::*;
use crate::{Inserted, LeaseTerms, NewJob, Sealer, Store};

const TERMS: LeaseTerms = LeaseTerms { duration: Duration::from_secs(30), limit: 100 };

fn dgx() -> ClusterName {
    "dgx".parse().unwrap()
}

/// Two jobs that wait for different images.
async fn two_wanted(pool: PgPool) -> Store {
    let store = Store::from_pool(pool, Sealer::from_key([7; 32]));
    for number in 1..=2 {
        let new = NewJob { job: command_job(number), secrets: Secrets::default(), request_hash: [0; 32] };
        let Inserted::Created(job) = store.insert_job(&new).await.unwrap() else { panic!("not new") };
        let request = ImageRequest {
            job: job.id,
            cache_path: format!("/lustre/{number}.sqsh").parse().unwrap(),
            image: format!("r.io/a/b:{number}").parse().unwrap(),
            fresh: false,
        };
        store.request_images(&dgx(), &[request]).await.unwrap();
    }
    store
}

async fn acquire(store: &Store, token: u128) -> ConversionLease {
    let mut lease = store.acquire_conversions(&dgx(), Uuid::from_u128(token), TERMS).await.unwrap();
    lease.conversions.sort_by_key(|(conversion, _)| conversion.cache_path.clone());
    lease
}

/// The conversion after its submission.
fn in_slurm(conversion: &Conversion, number: u32) -> Conversion {
    let (base, now) = ("/lustre/tao".parse().unwrap(), DateTime::UNIX_EPOCH);
    let demand = Demand { waiters: 1, ..Demand::default() };
    let begun = conversion.checked(ImageFile::Absent, &demand, &base, now).conversion;
    let id = SlurmJobId::new(number).unwrap();
    domain::conversion_after_lookup(&begun.submitting(), domain::Lookup::Found(id), now).conversion
}

/// Postgres refuses a text with a NUL.
fn poisoned(conversion: Conversion) -> Conversion {
    Conversion { message: "a\0b".to_owned(), ..conversion }
}

async fn states(store: &Store) -> Vec<String> {
    sqlx::query_scalar!("select state from image_conversions order by cache_path")
        .fetch_all(&store.pool)
        .await
        .unwrap()
}

fn record(conversion: Conversion) -> ConversionRecord {
    ConversionRecord { conversion, due_at: None }
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_refused_step_does_not_hold_up_others(pool: PgPool) {
    let store = two_wanted(pool).await;
    let lease = acquire(&store, 1).await;
    let [bad, good] = [0, 1].map(|place: usize| lease.conversions[place].0.clone());
    let records = [record(poisoned(in_slurm(&bad, 7))), record(in_slurm(&good, 8))];
    let now = DateTime::UNIX_EPOCH;
    let stored = store.record_conversions(&lease, &dgx(), &records, true, now).await.unwrap();
    assert_eq!(stored, [good.id].into());
    assert_eq!(states(&store).await, ["requested", "in_queue"]);
    let alone = store.record_conversions(&lease, &dgx(), &records[..1], true, now).await;
    assert!(alone.unwrap_err().is_about_the_data(), "alone it says what is wrong");
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_refused_poll_result_does_not_hold_up_others(pool: PgPool) {
    let store = two_wanted(pool).await;
    let lease = acquire(&store, 1).await;
    let queued = [(0, 7), (1, 8)].map(|(place, id)| record(in_slurm(&lease.conversions[place].0, id)));
    store.record_conversions(&lease, &dgx(), &queued, true, DateTime::UNIX_EPOCH).await.unwrap();
    let mut active = store.active_conversions(&dgx()).await.unwrap();
    active.sort_by_key(|conversion| conversion.cache_path.clone());
    assert_eq!(active[0].run.as_ref().unwrap().queued_since, Some(DateTime::UNIX_EPOCH), "it is read back");
    let running = |c: &Conversion| Conversion { state: ConversionState::Running, ..c.clone() };
    let seen = [poisoned(running(&active[0])), running(&active[1])];
    store.record_observed_conversions(&dgx(), &seen).await.unwrap();
    assert_eq!(states(&store).await, ["in_queue", "running"]);
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_conversion_that_has_waited_too_long_is_due_for_its_cancellation(pool: PgPool) {
    let store = two_wanted(pool).await;
    let lease = acquire(&store, 1).await;
    let queued = [(0, 7), (1, 8)].map(|(place, id)| record(in_slurm(&lease.conversions[place].0, id)));
    store.record_conversions(&lease, &dgx(), &queued, true, DateTime::UNIX_EPOCH).await.unwrap();
    let active = store.active_conversions(&dgx()).await.unwrap();
    let never = Conversion { abandoned: Some(domain::Abandoned::NeverStarted), ..active[0].clone() };
    store.record_observed_conversions(&dgx(), &[never]).await.unwrap();
    let due = acquire(&store, 2).await;
    let due: Vec<_> = due.conversions.iter().map(|(one, _)| (one.id, one.abandoned)).collect();
    assert_eq!(due, [(active[0].id, Some(domain::Abandoned::NeverStarted))]);
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn an_unreadable_conversion_is_put_off_behind_readable_ones(pool: PgPool) {
    let store = two_wanted(pool).await;
    sqlx::query!("update image_conversions set image = ' ' where cache_path = '/lustre/1.sqsh'")
        .execute(&store.pool)
        .await
        .unwrap();
    assert_eq!(acquire(&store, 1).await.conversions.len(), 1);
    let later = store.next_conversion_in(&dgx()).await.unwrap().unwrap();
    assert!(later <= TERMS.duration, "{later:?}: the other one's lease");
    let put_off = sqlx::query_scalar!(
        "select due_at > now() + interval '59 minutes' as later from image_conversions where image = ' '"
    );
    assert_eq!(put_off.fetch_one(&store.pool).await.unwrap(), Some(true));
}

/// The conversion of the first image, as a worker finds it after this statement.
async fn found_after(store: &Store, statement: &'static str, token: u128) -> (Conversion, Demand) {
    sqlx::raw_sql(statement).execute(&store.pool).await.unwrap();
    sqlx::raw_sql("update image_conversions set due_at = now()").execute(&store.pool).await.unwrap();
    let lease = acquire(store, token).await;
    let all: Vec<_> = lease.conversions.iter().map(|(one, _)| (one.id, None)).collect();
    store.put_off_conversions(&lease, &all, None).await.unwrap();
    lease.conversions[0].clone()
}

const ALL_ARE_READY: &str =
    "update image_conversions set file = cache_path, file_seen_at = now(), state = 'ready'";

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_damaged_file_is_read_by_open_attempts_and_perhaps_by_jobs_under_lease(pool: PgPool) {
    let store = two_wanted(pool).await;
    let file: RemotePath = "/lustre/1.sqsh".parse().unwrap();
    found_after(&store, ALL_ARE_READY, 1).await;
    store.distrust_files(&dgx(), &[(&file, FileFault::Damaged)]).await.unwrap();
    let steps = [
        ("select", false),
        (
            r#"update jobs set spec = jsonb_set(spec, '{image}', '"/lustre/1.sqsh"') where id::text like '%2'"#,
            true,
        ),
        (
            r#"update jobs set spec = jsonb_set(spec, '{image}', '"/lustre/2.sqsh"') where id::text like '%2'"#,
            false,
        ),
        (
            "insert into slurm_metadata (job_id, attempt, token, job_dir, image, intended_at)
             select id, 1, 't', '/lustre', '/lustre/1.sqsh', now() from jobs where id::text like '%2';
             update jobs set attempt = 1 where id::text like '%2'",
            true,
        ),
        ("update slurm_metadata set concluded_at = now(), outcome = 'retried'", false),
        (
            "update jobs set lease_token = gen_random_uuid(), lease_expires_at = now() + interval '1 minute'
             where id::text like '%1'",
            true,
        ),
        ("update jobs set lease_expires_at = now() where id::text like '%1'", false),
    ];
    for (token, (statement, reads)) in (2..).zip(steps) {
        let (conversion, demand) = found_after(&store, statement, token).await;
        assert_eq!((conversion.damaged_files.len(), demand.reads_damaged), (1, reads), "{statement}");
    }
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn damage_that_is_found_during_a_step_is_not_lost(pool: PgPool) {
    let store = two_wanted(pool).await;
    let file: RemotePath = "/lustre/1.sqsh".parse().unwrap();
    found_after(&store, ALL_ARE_READY, 1).await;
    sqlx::raw_sql("update image_conversions set due_at = now()").execute(&store.pool).await.unwrap();
    let lease = acquire(&store, 2).await;
    store.distrust_files(&dgx(), &[(&file, FileFault::Damaged)]).await.unwrap();
    let step = [record(lease.conversions[0].0.clone())];
    store.record_conversions(&lease, &dgx(), &step, true, DateTime::UNIX_EPOCH).await.unwrap();
    let (conversion, _) = found_after(&store, "select", 3).await;
    assert_eq!((conversion.damaged_files, conversion.damaged_at.is_some()), (vec![file], true));
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn an_image_has_at_most_one_damaged_file_in_an_hour(pool: PgPool) {
    let store = two_wanted(pool).await;
    found_after(&store, ALL_ARE_READY, 1).await;
    let [first, second]: [RemotePath; 2] =
        ["/lustre/1.sqsh", "/lustre/1.b.sqsh"].map(|file| file.parse().unwrap());
    store.distrust_files(&dgx(), &[(&first, FileFault::Damaged)]).await.unwrap();
    let steps = [
        ("update image_conversions set file = '/lustre/1.b.sqsh' where file = '/lustre/1.sqsh'", 1),
        ("update image_conversions set damaged_at = damaged_at - interval '1 hour'", 2),
    ];
    for (token, (statement, files)) in (2..).zip(steps) {
        found_after(&store, statement, token).await;
        store.distrust_files(&dgx(), &[(&second, FileFault::Damaged)]).await.unwrap();
        let (conversion, _) = found_after(&store, "select", token + 10).await;
        assert_eq!(conversion.damaged_files.len(), files, "{statement}");
    }
}

use chrono::{DateTime, TimeDelta};
use domain::{Conversion, DesiredState, Status};
use sqlx::PgPool;
use testkit::command_job;

use super::*;
use crate::{Inserted, Sealer, Viewer};

fn dgx() -> ClusterName {
    "dgx".parse().unwrap()
}

fn at(minutes: i64) -> Timestamp {
    DateTime::UNIX_EPOCH + TimeDelta::minutes(minutes)
}

fn path(number: u128) -> RemotePath {
    format!("/lustre/{number}.sqsh").parse().unwrap()
}

fn wish(number: u128) -> ImageRequest {
    let (job, image) = (JobId::new(Uuid::from_u128(number)), format!("r.io/a/b:{number}").parse().unwrap());
    ImageRequest { job, cache_path: path(number), image }
}

/// Two jobs that want different images.
async fn two_wanted(pool: PgPool) -> Store {
    let store = Store::from_pool(pool, Sealer::from_key([7; 32]));
    for number in 1..=2 {
        insert(&store, command_job(number)).await;
    }
    store.request_images(&dgx(), &[wish(2), wish(1)]).await.unwrap();
    store
}

async fn insert(store: &Store, job: Job) -> JobId {
    let new = NewJob { job, secrets: Secrets::default(), request_hash: [0; 32] };
    let Inserted::Created(job) = store.insert_job(&new).await.unwrap() else { panic!("not new") };
    job.id
}

async fn run(store: &Store, statement: &'static str) {
    sqlx::raw_sql(statement).execute(&store.pool).await.unwrap();
}

async fn image(store: &Store, number: u128) -> CachedImage {
    let [image] = store.request_images(&dgx(), &[wish(number)]).await.unwrap().try_into().unwrap();
    image
}

/// The job converts the image from now on.
async fn begin(store: &Store, number: u128, job: u128) -> JobId {
    let image = image(store, number).await;
    let job = Job { owner: domain::Owner::SERVICE, ..command_job(job) };
    let conversion = Some(Conversion::begun(job.id, path(number), at(0)));
    let id = job.id;
    let record = ImageRecord { image: CachedImage { conversion, ..image }, conversion: Some(job) };
    assert_eq!(store.record_images(&dgx(), &[record]).await.unwrap(), [path(number)].into());
    id
}

async fn wait(store: &Store, jobs: &[JobId], conversion: JobId) {
    let mut waits = Vec::new();
    for job in jobs {
        let version = self::job(store, *job).await.version;
        waits.push(Wait { job: *job, conversion, until: at(60), version });
    }
    store.await_conversions(&dgx(), &waits, at(0)).await.unwrap();
}

async fn job(store: &Store, id: JobId) -> Job {
    store.find_job(id, &Viewer::All).await.unwrap().unwrap()
}

async fn due(store: &Store) -> Vec<Uuid> {
    sqlx::query_scalar!("select id from jobs where due_at <= now() order by id")
        .fetch_all(&store.pool)
        .await
        .unwrap()
}

const WAITING: &str = "update jobs set phase = 'converting_image', due_at = null where owner <> ''; \
                       update jobs set due_at = null where owner = ''";

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn an_image_is_read_as_it_was_recorded(pool: PgPool) {
    let store = two_wanted(pool).await;
    let known = CachedImage {
        file: Some(path(7)),
        file_seen_at: Some(at(1)),
        file_began_at: Some(at(2)),
        damaged_files: vec![path(1)],
        damaged_at: Some(at(3)),
        error: Some("why".to_owned()),
        failures: 4,
        retry_at: Some(at(5)),
        ..image(&store, 1).await
    };
    let record = |image: &CachedImage| [ImageRecord { image: image.clone(), conversion: None }];
    assert_eq!(store.record_images(&dgx(), &record(&known)).await.unwrap(), [path(1)].into());
    assert_eq!(image(&store, 1).await, CachedImage { version: known.version + 1, ..known.clone() });
    // Somebody else has changed it since.
    assert!(store.record_images(&dgx(), &record(&known)).await.unwrap().is_empty());
    assert_eq!(image(&store, 2).await, CachedImage::new(dgx(), path(2), wish(2).image));
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn of_two_conversions_that_begin_together_one_is_accepted(pool: PgPool) {
    let store = two_wanted(pool).await;
    let image = image(&store, 1).await;
    let records = [3, 4].map(|number| {
        let job = command_job(number);
        let conversion = Some(Conversion::begun(job.id, path(1), at(0)));
        ImageRecord { image: CachedImage { conversion, ..image.clone() }, conversion: Some(job) }
    });
    for (record, stored) in records.iter().zip([1, 0]) {
        let found = store.record_images(&dgx(), std::slice::from_ref(record)).await.unwrap();
        assert_eq!(found.len(), stored);
    }
    let jobs =
        sqlx::query_scalar!(r#"select count(*) as "count!" from jobs"#).fetch_one(&store.pool).await.unwrap();
    assert_eq!(jobs, 3);
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn who_waits_is_due_when_the_conversion_begins_and_when_it_ends(pool: PgPool) {
    let store = two_wanted(pool).await;
    let waits = wish(1).job;
    let conversion = begin(&store, 1, 9).await;
    run(&store, WAITING).await;
    wait(&store, &[waits], conversion).await;
    assert!(due(&store).await.is_empty());
    for change in [
        "update jobs set started_at = now() where owner = ''",
        "update jobs set phase = 'ended', status = 'Done', finished_at = now() where owner = ''",
    ] {
        run(&store, "update jobs set due_at = null").await;
        run(&store, change).await;
        assert_eq!(due(&store).await, [waits.get()], "{change}");
    }
    let ended = image(&store, 1).await.conversion.unwrap();
    assert_eq!((ended.job, ended.status, ended.is_unneeded), (conversion, Status::Done, false));
    // It came too late for the wake-up.
    run(&store, "update jobs set due_at = null").await;
    wait(&store, &[waits], conversion).await;
    assert_eq!(due(&store).await, [waits.get()]);
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_conversion_is_canceled_when_the_last_job_leaves(pool: PgPool) {
    let store = two_wanted(pool).await;
    let [first, second] = [1, 2].map(|number| wish(number).job);
    let conversion = begin(&store, 1, 9).await;
    run(&store, WAITING).await;
    wait(&store, &[first, second], conversion).await;
    run(&store, "update jobs set phase = 'queued' where id::text like '%1'").await;
    assert_eq!(job(&store, conversion).await.desired, DesiredState::Run, "the other one waits for it");
    run(&store, "update jobs set phase = 'queued' where id::text like '%2'").await;
    assert_eq!(job(&store, conversion).await.desired, DesiredState::Cancel);
    assert!(image(&store, 1).await.conversion.unwrap().is_unneeded);
    assert!(due(&store).await.contains(&conversion.get()));
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn two_jobs_that_leave_together_cancel_the_conversion(pool: PgPool) {
    let store = two_wanted(pool).await;
    let conversion = begin(&store, 1, 9).await;
    run(&store, WAITING).await;
    wait(&store, &[1, 2].map(|number| wish(number).job), conversion).await;
    let mut first = store.begin().await.unwrap();
    sqlx::raw_sql("update jobs set phase = 'queued' where id::text like '%1'")
        .execute(&mut *first)
        .await
        .unwrap();
    let second = run(&store, "update jobs set phase = 'queued' where id::text like '%2'");
    let commit = async {
        let is_waiting = async || {
            let waiting = sqlx::query_scalar!(
                r#"select exists (select from pg_locks l join pg_stat_activity a using (pid)
                                  where not l.granted and a.datname = current_database()) as "is_waiting!""#
            );
            waiting.fetch_one(&store.pool).await.unwrap()
        };
        while !is_waiting().await {}
        first.commit().await.unwrap();
    };
    tokio::join!(second, commit);
    assert_eq!(job(&store, conversion).await.desired, DesiredState::Cancel);
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_need_of_an_image_is_none_of_the_specification(pool: PgPool) {
    let store = two_wanted(pool).await;
    let waits = wish(1).job;
    let conversion = begin(&store, 1, 9).await;
    run(&store, WAITING).await;
    wait(&store, &[waits], conversion).await;
    assert!(crate::Needs::needed(&store, &[waits]).await.unwrap().is_empty());
    assert_eq!(store.needed_by(conversion).await.unwrap(), Some(waits), "it is not deleted meanwhile");
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn an_image_that_cannot_be_read_does_not_hold_up_others(pool: PgPool) {
    let store = two_wanted(pool).await;
    run(&store, "update cached_images set image = ' ' where cache_path = '/lustre/1.sqsh'").await;
    let found = store.request_images(&dgx(), &[wish(1), wish(2)]).await.unwrap();
    assert_eq!(found.into_iter().map(|image| image.cache_path).collect::<Vec<_>>(), [path(2)]);
}

const ALL_ARE_READY: &str = "update cached_images set file = cache_path, file_seen_at = now()";

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_damaged_file_is_read_by_open_attempts_and_perhaps_by_jobs_under_lease(pool: PgPool) {
    let store = two_wanted(pool).await;
    run(&store, ALL_ARE_READY).await;
    store.distrust_files(&dgx(), &[(&path(1), FileFault::Damaged)]).await.unwrap();
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
            r#"insert into slurm_metadata (job_id, attempt, token, job_dir, images, intended_at)
               select id, 1, 't', '/lustre', '[{"requested": "r.io#a/b:1", "image": "/lustre/1.sqsh", "note": null}]', now()
               from jobs where id::text like '%2';
               update jobs set attempt = 1 where id::text like '%2'"#,
            true,
        ),
        ("update slurm_metadata set concluded_at = now(), outcome = 'retried'", false),
        (
            r#"update jobs set spec = jsonb_set(spec, '{image}', '"r.io#a/b:1"'), lease_token = gen_random_uuid(),
                               lease_expires_at = now() + interval '1 minute' where id::text like '%2'"#,
            true,
        ),
        ("update jobs set lease_expires_at = now() where id::text like '%2'", false),
        // Of a component.
        (
            r#"update jobs set spec = jsonb_set(spec, '{work}', '{"kind": "components", "list": [{"name": "a", "text": "true",
                   "first_node": 0, "nodes": 1, "image": "/lustre/1.sqsh"}]}') where id::text like '%2'"#,
            true,
        ),
    ];
    for (statement, reads) in steps {
        run(&store, statement).await;
        let image = image(&store, 1).await;
        assert_eq!((image.damaged_files.len(), image.reads_damaged), (1, reads), "{statement}");
    }
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn damage_that_is_found_during_a_look_is_not_lost(pool: PgPool) {
    let store = two_wanted(pool).await;
    run(&store, ALL_ARE_READY).await;
    let before = image(&store, 1).await;
    store.distrust_files(&dgx(), &[(&path(1), FileFault::Damaged)]).await.unwrap();
    let record = ImageRecord { image: before, conversion: None };
    assert!(store.record_images(&dgx(), &[record]).await.unwrap().is_empty());
    assert_eq!(image(&store, 1).await.damaged_files, [path(1)]);
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn an_image_has_at_most_one_damaged_file_in_an_hour(pool: PgPool) {
    let store = two_wanted(pool).await;
    run(&store, ALL_ARE_READY).await;
    store.distrust_files(&dgx(), &[(&path(1), FileFault::Damaged)]).await.unwrap();
    let steps = [
        ("update cached_images set file = '/lustre/7.sqsh' where file = '/lustre/1.sqsh'", 1),
        ("update cached_images set damaged_at = damaged_at - interval '1 hour'", 2),
    ];
    for (statement, files) in steps {
        run(&store, statement).await;
        store.distrust_files(&dgx(), &[(&path(7), FileFault::Damaged)]).await.unwrap();
        assert_eq!(image(&store, 1).await.damaged_files.len(), files, "{statement}");
    }
}

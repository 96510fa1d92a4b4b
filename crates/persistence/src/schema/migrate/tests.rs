use std::{collections::BTreeSet, time::Duration};

use sqlx::{
    PgPool, SqlSafeStr as _,
    migrate::{Migration, MigrationType},
    postgres::PgPoolOptions,
};

use super::*;
use crate::{error::StoreError, schema::version::application_name, seal::Sealer};

fn store(pool: &PgPool) -> Store {
    Store::from_pool(pool.clone(), Sealer::from_key([7; 32]))
}

/// The migrations of a newer program: one more, with this name.
fn newer(name: &'static str) -> Migrator {
    let version = version_of(&MIGRATOR) + 1;
    let up = Migration::new(
        version,
        name.into(),
        MigrationType::ReversibleUp,
        "create table notes (id int); alter table jobs add column note text".into_sql_str(),
        false,
    );
    let down = Migration::new(
        version,
        name.into(),
        MigrationType::ReversibleDown,
        "alter table jobs drop column note; drop table notes".into_sql_str(),
        false,
    );
    Migrator::with_migrations(MIGRATOR.iter().cloned().chain([up, down]).collect())
}

/// The connection of a process with these migrations.
async fn process(pool: &PgPool, migrator: &Migrator) -> PgPool {
    let options = pool.connect_options().as_ref().clone().application_name(&application_name(migrator));
    PgPoolOptions::new().max_connections(1).connect_with(options).await.unwrap()
}

/// The error of a program that does not fit the schema.
fn refusal(result: Result<impl std::fmt::Debug>) -> SchemaError {
    match result.unwrap_err() {
        StoreError::Schema(error) => error,
        other => panic!("{other:?}"),
    }
}

#[sqlx::test(migrator = "MIGRATOR")]
async fn an_older_program_runs_and_starts_on_a_newer_schema_that_keeps_it(pool: PgPool) {
    let store = store(&pool);
    let version = store.migrate_by(&newer("notes min 1")).await.unwrap();
    store.ready().await.unwrap();
    assert_eq!(store.migrate().await.unwrap(), version);
    store.ready().await.unwrap();
}

#[sqlx::test(migrator = "MIGRATOR")]
async fn an_older_program_refuses_a_newer_schema_that_does_not_keep_it(pool: PgPool) {
    let store = store(&pool);
    let found = store.migrate_by(&newer("notes")).await.unwrap();
    let expected = SchemaError::Newer { found, minimum: found, program: found - 1 };
    assert_eq!(refusal(store.ready().await), expected);
    assert_eq!(refusal(store.migrate().await), expected);
}

#[sqlx::test(migrator = "MIGRATOR")]
async fn a_migration_is_taken_back_once_no_process_needs_it(pool: PgPool) {
    let (store, newer) = (store(&pool), newer("notes min 1"));
    let version = store.migrate_by(&newer).await.unwrap();
    let target = version - 1;
    assert_eq!(
        refusal(store.migrate_back(target).await),
        SchemaError::Unknown { found: version, target, program: target }
    );
    // A process of the older program needs nothing of what is taken back.
    let (old, new) = (process(&pool, &MIGRATOR).await, process(&pool, &newer).await);
    let error = refusal(store.migrate_back_by(&newer, target).await).to_string();
    assert!(error.contains(&format!("{} from ", application_name(&newer))), "{error}");
    assert!(!error.contains(&application_name(&MIGRATOR)), "{error}");
    new.close().await;
    let go_back = async {
        // The server removes a closed connection from its list a moment later.
        while let Err(error) = store.migrate_back_by(&newer, target).await {
            assert!(matches!(error, StoreError::Schema(SchemaError::InUse { .. })), "{error:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_mins(1), go_back).await.unwrap();
    store.ready().await.unwrap();
    let left: Option<String> =
        sqlx::query_scalar("select to_regclass('notes')::text").fetch_one(&pool).await.unwrap();
    assert_eq!(left, None);
    old.close().await;
    assert_eq!(store.migrate_by(&newer).await.unwrap(), version);
}

/// Until a session waits for the lock of migrations.
async fn until_one_waits(pool: &PgPool) {
    let waiting = "select exists (select from pg_stat_activity
                   where datname = current_database() and wait_event_type = 'Lock' and wait_event = 'advisory')";
    while !sqlx::query_scalar::<_, bool>(waiting).fetch_one(pool).await.unwrap() {
        tokio::task::yield_now().await;
    }
}

#[sqlx::test(migrator = "MIGRATOR")]
async fn a_process_that_connects_while_the_way_back_waits_for_the_lock_is_seen(pool: PgPool) {
    let (store, newer) = (store(&pool), newer("notes min 1"));
    let version = store.migrate_by(&newer).await.unwrap();
    // As another process that migrates.
    let mut holder = pool.acquire().await.unwrap();
    holder.lock().await.unwrap();
    let come = async {
        until_one_waits(&pool).await;
        let new = process(&pool, &newer).await;
        holder.unlock().await.unwrap();
        new
    };
    let both = async { tokio::join!(store.migrate_back_by(&newer, version - 1), come) };
    let (back, new) = tokio::time::timeout(Duration::from_mins(1), both).await.unwrap();
    assert!(matches!(refusal(back), SchemaError::InUse { .. }));
    // Neither the schema nor the lock is left behind in another state.
    assert_eq!(store.migrate_by(&newer).await.unwrap(), version);
    sqlx::raw_sql("select from notes").fetch_all(&new).await.unwrap();
    new.close().await;
}

/// All relations, columns, indexes, constraints, triggers and functions, and all jobs and attempts, each as a text. The order of
/// columns and comments do not count, and neither does what belongs to an extension: extensions stay on the way back.
const SCHEMA: &str = r"
    select format('%s %s %s', relkind, relname, reloptions) from pg_class
    where relnamespace = 'public'::regnamespace and relkind in ('r', 'p', 'v', 'm', 'S')
    union all
    select row(table_name, column_name, udt_name, is_nullable, column_default, identity_generation, generation_expression)::text
    from information_schema.columns where table_schema = 'public'
    union all
    select indexdef from pg_indexes where schemaname = 'public'
    union all
    select format('%s %s %s', conrelid::regclass, conname, pg_get_constraintdef(oid)) from pg_constraint
    where connamespace = 'public'::regnamespace and contype <> 'n'
    union all
    select pg_get_triggerdef(oid) from pg_trigger where not tgisinternal
    union all
    select regexp_replace(regexp_replace(pg_get_functiondef(p.oid), '--.*', '', 'gn'), '\s+', ' ', 'g') from pg_proc p
    where p.pronamespace = 'public'::regnamespace and p.prokind in ('f', 'p')
      and not exists (select from pg_depend d where d.classid = 'pg_proc'::regclass and d.objid = p.oid and d.deptype = 'e')
    union all
    select to_jsonb(j)::text from jobs j
    union all
    select to_jsonb(a)::text from slurm_metadata a";

/// A job in its second attempt, in the schema of versions 1 and 2.
const A_JOB: &str = "
    insert into jobs (id, owner, cluster, spec, request_hash, status, phase, message, attempt, progress, kill_reason, missing_since,
                      created_at, last_modified, source)
    values (gen_random_uuid(), 'me', 'dgx', '{\"image\": \"a:1\"}', '', 'Running', 'running', 'x', 2, '{\"epoch\": 3}', 'quiet', now(),
            now(), now(), 'squeue');
    insert into slurm_metadata (job_id, attempt, token, job_dir, image, image_note, slurm_state, exit_code, exit_signal, nodes,
                                status_files, intended_at, started_at, requeues, requeue_unexplained)
    select id, n, 't' || n, '/l', '/sqsh/a' || n, 'cached', 'RUNNING', n, 0, 'node' || n, '{\"files\": []}', now(), now(), n, n = 2
    from jobs, generate_series(1, 2) n";

#[sqlx::test(migrations = false)]
async fn every_migration_goes_back_and_up_again(pool: PgPool) {
    let (store, newest) = (store(&pool), version_of(&MIGRATOR));
    let schema = async || {
        let found = sqlx::query_scalar::<_, String>(SCHEMA).fetch_all(&pool).await.unwrap();
        found.into_iter().collect::<BTreeSet<_>>()
    };
    let mut known = Vec::new();
    for version in 1..=newest {
        MIGRATOR.run_to(version, &pool).await.unwrap();
        if version == 1 {
            sqlx::raw_sql(A_JOB).execute(&pool).await.unwrap();
        }
        known.push((version, schema().await));
    }
    for (version, expected) in known.iter().rev().skip(1) {
        store.migrate_back(*version).await.unwrap();
        let found = schema().await;
        let differ: Vec<_> = found.symmetric_difference(expected).collect();
        assert!(differ.is_empty(), "back at {version}: {differ:#?}");
    }
    for (version, expected) in known.iter().skip(1) {
        MIGRATOR.run_to(*version, &pool).await.unwrap();
        let found = schema().await;
        let differ: Vec<_> = found.symmetric_difference(expected).collect();
        assert!(differ.is_empty(), "up at {version} again: {differ:#?}");
    }
    store.ready().await.unwrap();
}

/// Everything that both schemas keep of an attempt and of its run.
const KEPT: &str =
    "select row(r.slurm_state, r.exit_code, r.exit_signal, r.nodes, r.status_files, r.started_at, r.requeues,
    p.progress, p.kill_reason, p.missing_since)::text";

#[sqlx::test(migrations = false)]
async fn the_runs_of_stored_attempts_move_to_their_table_and_back(pool: PgPool) {
    let file = |version: i64, kind: MigrationType| {
        let found = MIGRATOR.iter().find(|one| one.version == version && one.migration_type == kind).unwrap();
        found.sql.clone()
    };
    let run = async |sql: &str| {
        sqlx::raw_sql(sqlx::AssertSqlSafe(sql.to_owned())).execute(&pool).await.unwrap();
    };
    let kept = async |from: &str| {
        let sql = sqlx::AssertSqlSafe(format!("{KEPT} {from} order by 1"));
        sqlx::query_scalar::<_, String>(sql).fetch_all(&pool).await.unwrap()
    };
    for version in [1, 2] {
        run(file(version, MigrationType::ReversibleUp).as_str()).await;
    }
    run(A_JOB).await;
    let newest = "left join jobs p on p.id = r.job_id and p.attempt = r.attempt";
    let unexplained = "(select count(*) from slurm_metadata where requeue_unexplained)";
    let before = kept(&format!("|| {unexplained} from slurm_metadata r {newest}")).await;

    run(file(3, MigrationType::ReversibleUp).as_str()).await;
    let now = "left join runs p on p.job_id = r.job_id and p.attempt = r.attempt and p.attempt = 2";
    let unexplained = "(select count(*) from runs u join slurm_metadata a using (job_id, attempt)
                        where u.waits_again and u.requeues > a.explained_requeues)";
    assert_eq!(kept(&format!("|| {unexplained} from runs r {now}")).await, before);
    let over: Vec<bool> =
        sqlx::query_scalar("select over from runs order by attempt").fetch_all(&pool).await.unwrap();
    assert_eq!(over, [true, false], "Slurm still has the newest attempt");

    run(file(3, MigrationType::ReversibleDown).as_str()).await;
    let unexplained = "(select count(*) from slurm_metadata where requeue_unexplained)";
    assert_eq!(kept(&format!("|| {unexplained} from slurm_metadata r {newest}")).await, before);
}

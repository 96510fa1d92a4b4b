use std::time::Duration;

use sqlx::{
    PgPool, SqlSafeStr as _,
    migrate::{Migration, MigrationType},
    postgres::PgPoolOptions,
};

use super::*;
use crate::{error::StoreError, seal::Sealer};

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

/// The error of a program that does not fit the schema.
fn refusal(result: Result<impl std::fmt::Debug>) -> SchemaError {
    match result.unwrap_err() {
        StoreError::Schema(error) => error,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_program_runs_from_the_minimum_of_the_schema_to_its_version() {
    let schema = Schema { version: 5, minimum: 3 };
    for program in 3..=5 {
        assert_eq!(schema.admit(program), Ok(()), "{program}");
    }
    assert_eq!(schema.admit(6), Err(SchemaError::Older { found: 5, program: 6 }));
    assert_eq!(schema.admit(2), Err(SchemaError::Newer { found: 5, minimum: 3, program: 2 }));
}

#[test]
fn a_program_goes_back_to_a_version_that_it_knows_from_one_that_it_knows() {
    let back = |version, target| Schema { version, minimum: 1 }.admit_return(target, 3);
    assert_eq!(back(3, 1), Ok(()));
    assert_eq!(back(3, 3), Ok(()));
    assert_eq!(back(3, 0), Err(SchemaError::NoSuchVersion { target: 0, program: 3 }));
    assert_eq!(back(3, 4), Err(SchemaError::NoSuchVersion { target: 4, program: 3 }));
    assert_eq!(back(2, 3), Err(SchemaError::NotReached { found: 2, target: 3 }));
    assert_eq!(back(4, 1), Err(SchemaError::Unknown { found: 4, target: 1, program: 3 }));
}

#[test]
fn an_older_program_says_how_to_go_on_and_how_to_go_back() {
    let error = Schema { version: 5, minimum: 4 }.admit(3).unwrap_err().to_string();
    assert_eq!(
        error,
        "the database schema is at version 5 and needs programs of schema version 4 or later, and this program has version 3: \
         run a newer program; or go back: stop all newer processes, then run `tao-slurm migrate --to 3` of the newest program"
    );
}

#[sqlx::test(migrator = "MIGRATOR")]
async fn the_minimum_is_the_highest_that_a_migration_names(pool: PgPool) {
    let mut connection = pool.acquire().await.unwrap();
    for (version, name, minimum) in [
        (9001, "more min 1", 1),
        (9002, "another table", 9002),
        (9003, "more min 1", 9002),
        (9004, "drop what 9003 replaced min 9003", 9003),
        (9005, "admin 7", 9005),
    ] {
        sqlx::query("insert into _sqlx_migrations values ($1, $2, now(), true, '', 0)")
            .bind(version)
            .bind(name)
            .execute(&mut *connection)
            .await
            .unwrap();
        assert_eq!(Schema::find(&mut connection).await.unwrap(), Schema { version, minimum }, "{name}");
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
    let connect = |migrator: &Migrator| {
        let options = pool.connect_options().as_ref().clone().application_name(&application_name(migrator));
        PgPoolOptions::new().max_connections(1).connect_with(options)
    };
    // A process of the older program needs nothing of what is taken back.
    let (old, new) = (connect(&MIGRATOR).await.unwrap(), connect(&newer).await.unwrap());
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

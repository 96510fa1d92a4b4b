//! The handle on the database.

use std::time::Duration;

use domain::Timestamp;
use secrecy::{ExposeSecret, SecretString};
use sqlx::{PgConnection, PgPool, migrate::Migrator, postgres::PgPoolOptions};

use crate::{error::StoreError, seal::Sealer};

/// The schema, compiled in.
pub static MIGRATOR: Migrator = sqlx::migrate!("../../migrations");

/// How to reach the database.
#[derive(Debug, Clone)]
pub struct StoreOptions {
    pub url: SecretString,
    pub max_connections: u32,
    /// How long a statement waits for a free connection before the database counts as unavailable.
    pub acquire_timeout: Duration,
}

const OLDEST_CONNECTION: Duration = Duration::from_mins(2);
/// A connection that was not used for so long is looked at before it is.
const IDLE: Duration = Duration::from_secs(1);

async fn is_standby(connection: &mut PgConnection) -> Result<bool, sqlx::Error> {
    sqlx::query_scalar!(
        r#"-- store::is_standby
           select pg_is_in_recovery() as "standby!""#
    )
    .fetch_one(connection)
    .await
}

/// A server that follows another refuses every write; the one that leads now is found by connecting again.
async fn refuse_standby(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    if is_standby(connection).await? {
        return Err(sqlx::Error::Io(std::io::Error::other("the server is a standby, which only reads")));
    }
    Ok(())
}

/// A process that was stopped, or whose machine is gone, in the middle of a transaction holds its locks, and jobs behind them
/// would wait as long as it does. Nothing here waits for anything but the database in a transaction.
async fn give_locks_back_when_stopped(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    sqlx::raw_sql("set idle_in_transaction_session_timeout = '5s'").execute(connection).await?;
    Ok(())
}

/// The one database. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Store {
    pub(crate) pool: PgPool,
    pub(crate) sealer: Sealer,
}

impl Store {
    /// Connects; the schema is not looked at yet.
    pub async fn connect(options: &StoreOptions, sealer: Sealer) -> Result<Self, StoreError> {
        let pool = PgPoolOptions::new()
            .max_connections(options.max_connections)
            .acquire_timeout(options.acquire_timeout)
            // It would ask of each, and each statement would be two questions.
            .test_before_acquire(false)
            // After a failover, connections may still lead to a server that only reads now: none is used for ever.
            .max_lifetime(OLDEST_CONNECTION)
            .after_connect(|connection, _| {
                Box::pin(async move {
                    refuse_standby(connection).await?;
                    give_locks_back_when_stopped(connection).await
                })
            })
            .before_acquire(|connection, meta| {
                Box::pin(async move { Ok(meta.idle_for < IDLE || !is_standby(connection).await?) })
            })
            .connect(options.url.expose_secret())
            .await?;
        Ok(Self::from_pool(pool, sealer))
    }

    pub fn from_pool(pool: PgPool, sealer: Sealer) -> Self {
        Self { pool, sealer }
    }

    /// Brings the schema up to date. Safe to run from several processes at once: sqlx takes an advisory lock.
    pub async fn migrate(&self) -> Result<(), StoreError> {
        Ok(MIGRATOR.run(&self.pool).await?)
    }

    /// Whether the database answers and has this program's schema.
    pub async fn ready(&self) -> Result<(), StoreError> {
        let wanted = MIGRATOR.iter().map(|migration| migration.version).max().unwrap_or_default();
        let found = sqlx::query_scalar!(
            "-- store::ready
             select max(version) from _sqlx_migrations where success"
        )
        .fetch_one(&self.pool)
        .await?;
        if found == Some(wanted) { Ok(()) } else { Err(StoreError::Schema { found, wanted }) }
    }

    /// The database's time, by which leases end.
    pub async fn now(&self) -> Result<Timestamp, StoreError> {
        let now = sqlx::query_scalar!(
            r#"-- store::now
               select clock_timestamp() as "now!""#
        );
        Ok(now.fetch_one(&self.pool).await?)
    }

    /// Waits for statements under way and closes all connections.
    pub async fn close(&self) {
        self.pool.close().await;
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;
    use sqlx::ConnectOptions as _;

    use super::*;

    #[sqlx::test(migrator = "MIGRATOR")]
    async fn the_time_is_the_databases(pool: PgPool) {
        let store = Store::from_pool(pool, Sealer::from_key([7; 32]));
        let (one, other) = (store.now().await.unwrap(), store.now().await.unwrap());
        assert!(one <= other && other - one < TimeDelta::minutes(1), "{one} {other}");
    }

    /// How to reach a server that says of itself what a table of ours says: a function stands before Postgres' own.
    async fn of_a_server_that_may_follow_another(pool: &PgPool) -> StoreOptions {
        let options = pool.connect_options();
        let name = options.get_database().unwrap();
        let faked = format!(
            "create table of_itself (is_standby boolean not null);
             insert into of_itself values (true);
             create function public.pg_is_in_recovery() returns boolean language sql
                 as 'select is_standby from public.of_itself';
             alter database \"{name}\" set search_path = public, pg_catalog"
        );
        sqlx::raw_sql(sqlx::AssertSqlSafe(faked)).execute(pool).await.unwrap();
        StoreOptions {
            url: options.to_url_lossy().to_string().into(),
            max_connections: 1,
            acquire_timeout: Duration::from_secs(2),
        }
    }

    async fn follow(pool: &PgPool, another: bool) {
        let set = format!("update of_itself set is_standby = {another}");
        sqlx::raw_sql(sqlx::AssertSqlSafe(set)).execute(pool).await.unwrap();
    }

    #[sqlx::test(migrator = "MIGRATOR")]
    async fn no_connection_to_a_standby_is_used(pool: PgPool) {
        let options = of_a_server_that_may_follow_another(&pool).await;
        let connect = || Store::connect(&options, Sealer::from_key([7; 32]));
        assert!(connect().await.unwrap_err().is_unavailable());
        follow(&pool, false).await;
        let store = connect().await.unwrap();
        store.ready().await.unwrap();
        // The server that led follows another now, and the connection is still open.
        follow(&pool, true).await;
        tokio::time::sleep(IDLE + Duration::from_millis(100)).await;
        assert!(store.ready().await.unwrap_err().is_unavailable());
        follow(&pool, false).await;
        store.ready().await.unwrap();
    }

    #[sqlx::test(migrator = "MIGRATOR")]
    async fn whoever_stops_in_a_transaction_holds_its_locks_for_seconds(pool: PgPool) {
        let options = StoreOptions {
            url: pool.connect_options().to_url_lossy().to_string().into(),
            max_connections: 1,
            acquire_timeout: Duration::from_secs(2),
        };
        let store = Store::connect(&options, Sealer::from_key([7; 32])).await.unwrap();
        let lock = "lock table jobs in access exclusive mode";
        let mut stopped = store.pool.begin().await.unwrap();
        sqlx::raw_sql(lock).execute(&mut *stopped).await.unwrap();
        let mut other = pool.begin().await.unwrap();
        let waits = sqlx::raw_sql(lock).execute(&mut *other);
        tokio::time::timeout(Duration::from_secs(20), waits).await.unwrap().unwrap();
        let late = sqlx::raw_sql("delete from jobs").execute(&mut *stopped).await.unwrap_err();
        assert!(StoreError::from(late).is_unavailable());
    }

    #[sqlx::test(migrator = "MIGRATOR")]
    async fn a_server_that_only_reads_and_a_rolled_back_statement_are_a_reason_to_try_again(pool: PgPool) {
        for failing in [
            "set transaction read only; delete from jobs",
            "do $$ begin raise exception using errcode = '40001'; end $$",
            "do $$ begin raise exception using errcode = '40P01'; end $$",
            "do $$ begin raise exception using errcode = '57P01'; end $$",
        ] {
            let mut tx = pool.begin().await.unwrap();
            let error = StoreError::from(sqlx::raw_sql(failing).execute(&mut *tx).await.unwrap_err());
            assert!(error.is_unavailable() && !error.is_about_the_data(), "{failing}: {error:?}");
        }
        let wrong = sqlx::raw_sql("select 1 / 0").execute(&pool).await.unwrap_err();
        assert!(!StoreError::from(wrong).is_unavailable());
    }
}

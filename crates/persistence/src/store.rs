//! The handle on the database.

use std::{future::Future, str::FromStr, time::Duration};

use domain::Timestamp;
use secrecy::{ExposeSecret, SecretString};
use sqlx::{
    PgConnection, PgPool, Postgres, Transaction,
    postgres::{PgArguments, PgConnectOptions, PgPoolOptions},
    query::Query,
};

use crate::{
    error::Result,
    schema::version::{MIGRATOR, application_name},
    seal::Sealer,
};

/// How to reach the database.
#[derive(Debug, Clone)]
pub struct StoreOptions {
    pub url: SecretString,
    pub max_connections: u32,
    /// How long a statement waits for a free connection before the database counts as unavailable.
    pub acquire_timeout: Duration,
}

/// Connections are closed after this time.
const OLDEST_CONNECTION: Duration = Duration::from_mins(2);
/// A connection that was idle for longer is checked before its next use.
const IDLE: Duration = Duration::from_secs(1);

/// A call of the database.
pub trait Call<T>: Future<Output = Result<T>> + Send {}
impl<T, F: Future<Output = Result<T>> + Send> Call<T> for F {}

async fn is_standby(connection: &mut PgConnection) -> Result<bool, sqlx::Error> {
    sqlx::query_scalar!(
        r#"-- store::is_standby
           select pg_is_in_recovery() as "standby!""#
    )
    .fetch_one(connection)
    .await
}

/// A standby rejects every write. The next connection may reach the primary.
async fn refuse_standby(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    if is_standby(connection).await? {
        return Err(sqlx::Error::Io(std::io::Error::other(
            "the server is a read-only standby; set database.url to the primary",
        )));
    }
    Ok(())
}

/// Releases the locks of a process that stopped in the middle of a transaction: other transactions would wait for them as
/// long as it stays stopped. No transaction here waits for anything but the database.
async fn limit_idle_transactions(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    sqlx::raw_sql("set idle_in_transaction_session_timeout = '5s'").execute(connection).await?;
    Ok(())
}

/// Begins a transaction, in a task of its own, which ends although the caller stops waiting for it. With a half-begun transaction sqlx 0.9.0
/// puts the connection back into the pool as it is: statements of other callers would run in that transaction and never be committed
/// (<https://github.com/transact-rs/sqlx/issues/4393>).
pub(crate) async fn begin(pool: &PgPool) -> Result<Transaction<'static, Postgres>, sqlx::Error> {
    let pool = pool.clone();
    #[expect(
        clippy::disallowed_methods,
        reason = "the one place; whoever stops waiting drops the transaction"
    )]
    let task = tokio::spawn(async move { pool.begin().await });
    task.await.unwrap_or(Err(sqlx::Error::WorkerCrashed))
}

/// The database. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Store {
    pub(crate) pool: PgPool,
    pub(crate) sealer: Sealer,
}

impl Store {
    /// Connects. Does not check the schema.
    pub async fn connect(options: &StoreOptions, sealer: Sealer) -> Result<Self> {
        // Others see in `pg_stat_activity` which schema this process needs.
        let server = PgConnectOptions::from_str(options.url.expose_secret())?
            .application_name(&application_name(&MIGRATOR));
        let pool = PgPoolOptions::new()
            .max_connections(options.max_connections)
            .acquire_timeout(options.acquire_timeout)
            // This would send a second query for every statement; `before_acquire` checks idle connections only.
            .test_before_acquire(false)
            // After a failover, old connections may still reach a server that is now read-only.
            .max_lifetime(OLDEST_CONNECTION)
            .after_connect(|connection, _| {
                Box::pin(async move {
                    refuse_standby(connection).await?;
                    limit_idle_transactions(connection).await
                })
            })
            .before_acquire(|connection, meta| {
                Box::pin(async move { Ok(meta.idle_for < IDLE || !is_standby(connection).await?) })
            })
            .connect_with(server)
            .await?;
        Ok(Self::from_pool(pool, sealer))
    }

    pub fn from_pool(pool: PgPool, sealer: Sealer) -> Self {
        Self { pool, sealer }
    }

    /// The server clock, which decides when leases end.
    pub async fn now(&self) -> Result<Timestamp> {
        let now = sqlx::query_scalar!(
            r#"-- store::now
               select clock_timestamp() as "now!""#
        );
        Ok(now.fetch_one(&self.pool).await?)
    }

    /// Begins a transaction.
    pub(crate) async fn begin(&self) -> Result<Transaction<'static, Postgres>> {
        Ok(begin(&self.pool).await?)
    }

    /// Runs a statement that returns no rows, and returns the number of rows that it changed.
    pub(crate) async fn execute(&self, statement: Query<'_, Postgres, PgArguments>) -> Result<u64> {
        Ok(statement.execute(&self.pool).await?.rows_affected())
    }

    /// Runs a statement that may change any number of rows.
    pub(crate) async fn run(&self, statement: Query<'_, Postgres, PgArguments>) -> Result<()> {
        self.execute(statement).await.map(drop)
    }

    /// Waits for running statements, then closes all connections.
    pub async fn close(&self) {
        self.pool.close().await;
    }
}

#[cfg(test)]
mod tests {
    use std::{future::poll_fn, task::Poll};

    use chrono::TimeDelta;
    use sqlx::ConnectOptions as _;

    use super::*;
    use crate::error::StoreError;

    #[sqlx::test(migrator = "MIGRATOR")]
    async fn the_time_comes_from_the_database(pool: PgPool) {
        let store = Store::from_pool(pool, Sealer::from_key([7; 32]));
        let (one, other) = (store.now().await.unwrap(), store.now().await.unwrap());
        assert!(one <= other && other - one < TimeDelta::minutes(1), "{one} {other}");
    }

    fn one_connection(pool: &PgPool) -> StoreOptions {
        StoreOptions {
            url: pool.connect_options().to_url_lossy().to_string().into(),
            max_connections: 1,
            acquire_timeout: Duration::from_mins(1),
        }
    }

    /// Options for a server that reports itself as a standby or not, as a table says: a function shadows Postgres's own.
    async fn options_of_a_fake_standby(pool: &PgPool) -> StoreOptions {
        let options = pool.connect_options();
        let name = options.get_database().unwrap();
        let faked = format!(
            "create table fake_standby (is_standby boolean not null);
             insert into fake_standby values (true);
             create function public.pg_is_in_recovery() returns boolean language sql
                 as 'select is_standby from public.fake_standby';
             alter database \"{name}\" set search_path = public, pg_catalog"
        );
        sqlx::raw_sql(sqlx::AssertSqlSafe(faked)).execute(pool).await.unwrap();
        StoreOptions { acquire_timeout: Duration::from_secs(5), ..one_connection(pool) }
    }

    async fn set_standby(pool: &PgPool, is_standby: bool) {
        let set = format!("update fake_standby set is_standby = {is_standby}");
        sqlx::raw_sql(sqlx::AssertSqlSafe(set)).execute(pool).await.unwrap();
    }

    #[sqlx::test(migrator = "MIGRATOR")]
    async fn no_connection_to_a_standby_is_used(pool: PgPool) {
        let options = options_of_a_fake_standby(&pool).await;
        let connect = || Store::connect(&options, Sealer::from_key([7; 32]));
        assert!(connect().await.unwrap_err().is_unavailable());
        set_standby(&pool, false).await;
        let store = connect().await.unwrap();
        store.ready().await.unwrap();
        // The primary becomes a standby while the connection is open.
        set_standby(&pool, true).await;
        tokio::time::sleep(IDLE + Duration::from_millis(100)).await;
        assert!(store.ready().await.unwrap_err().is_unavailable());
        set_standby(&pool, false).await;
        store.ready().await.unwrap();
    }

    #[sqlx::test(migrator = "MIGRATOR")]
    async fn a_process_that_stops_in_a_transaction_holds_its_locks_for_seconds(pool: PgPool) {
        let store = Store::connect(&one_connection(&pool), Sealer::from_key([7; 32])).await.unwrap();
        let lock = "lock table jobs in access exclusive mode";
        let mut stopped = store.begin().await.unwrap();
        sqlx::raw_sql(lock).execute(&mut *stopped).await.unwrap();
        let mut other = begin(&pool).await.unwrap();
        let waits = sqlx::raw_sql(lock).execute(&mut *other);
        tokio::time::timeout(Duration::from_mins(3), waits).await.unwrap().unwrap();
        let late = sqlx::raw_sql("delete from jobs").execute(&mut *stopped).await.unwrap_err();
        assert!(StoreError::from(late).is_unavailable());
    }

    #[sqlx::test(migrator = "MIGRATOR")]
    async fn whoever_stops_waiting_for_a_transaction_leaves_none_open(pool: PgPool) {
        let store = Store::connect(&one_connection(&pool), Sealer::from_key([7; 32])).await.unwrap();
        let one = &store.pool;
        let open = "select count(*) from pg_stat_activity where xact_start is not null and pid = $1";
        let pid: i32 = sqlx::query_scalar("select pg_backend_pid()").fetch_one(one).await.unwrap();
        let mut has_begun = false;
        for polls in 0.. {
            if has_begun {
                break;
            }
            let mut begun = Box::pin(store.begin());
            for _ in 0..polls {
                has_begun = poll_fn(|context| Poll::Ready(begun.as_mut().poll(context).is_ready())).await;
                if has_begun {
                    break;
                }
                tokio::task::yield_now().await;
            }
            drop(begun);
            // Whoever has the connection next.
            let next: i32 = sqlx::query_scalar("select pg_backend_pid()").fetch_one(one).await.unwrap();
            assert_eq!(next, pid);
            let open: i64 = sqlx::query_scalar(open).bind(pid).fetch_one(&pool).await.unwrap();
            assert_eq!(open, 0, "after {polls} polls");
        }
    }

    #[sqlx::test(migrator = "MIGRATOR")]
    async fn a_read_only_server_and_a_rolled_back_statement_are_reasons_to_retry(pool: PgPool) {
        for failing in [
            "set transaction read only; delete from jobs",
            "do $$ begin raise exception using errcode = '40001'; end $$",
            "do $$ begin raise exception using errcode = '40P01'; end $$",
            "do $$ begin raise exception using errcode = '57P01'; end $$",
        ] {
            let mut tx = begin(&pool).await.unwrap();
            let error = StoreError::from(sqlx::raw_sql(failing).execute(&mut *tx).await.unwrap_err());
            assert!(error.is_unavailable() && !error.is_about_the_data(), "{failing}: {error:?}");
        }
        let wrong = sqlx::raw_sql("select 1 / 0").execute(&pool).await.unwrap_err();
        assert!(!StoreError::from(wrong).is_unavailable());
    }
}

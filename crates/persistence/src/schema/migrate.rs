//! Changing the version of the schema: up, or back to an earlier one.

use sqlx::{
    PgConnection,
    migrate::{Migrate as _, Migrator},
};

use super::version::{MIGRATOR, Schema, version_of};
use crate::{
    error::{Result, SchemaError},
    store::Store,
};

/// The same migrations, for a database that may have newer ones.
fn tolerant(migrator: &Migrator) -> Migrator {
    let mut tolerant = Migrator::with_migrations(migrator.iter().cloned().collect());
    tolerant.set_ignore_missing(true);
    tolerant
}

impl Store {
    /// Checks that the database answers and that this program may run on its schema.
    pub async fn ready(&self) -> Result<()> {
        let mut connection = self.pool.acquire().await?;
        Ok(Schema::find(&mut connection).await?.admit(version_of(&MIGRATOR))?)
    }

    /// Brings the schema up to date, and returns its version, which may be newer than this program. Several processes may call
    /// this at once: sqlx takes an advisory lock.
    pub async fn migrate(&self) -> Result<i64> {
        self.migrate_by(&MIGRATOR).await
    }

    async fn migrate_by(&self, migrator: &Migrator) -> Result<i64> {
        let mut connection = self.pool.acquire().await?;
        tolerant(migrator).run(&mut *connection).await?;
        let schema = Schema::find(&mut connection).await?;
        schema.admit(version_of(migrator))?;
        Ok(schema.version)
    }

    /// Takes back the migrations after `target`. Refuses while a process is connected that needs one of them. It looks for them
    /// under the lock of migrations: a newer process that connects later waits for the lock, and then migrates again.
    pub async fn migrate_back(&self, target: i64) -> Result<()> {
        self.migrate_back_by(&MIGRATOR, target).await
    }

    async fn migrate_back_by(&self, migrator: &Migrator, target: i64) -> Result<()> {
        let mut connection = self.pool.acquire().await?;
        connection.lock().await?;
        let result = take_back(&mut connection, migrator, target).await;
        // This releases the lock, which belongs to the session, after an error too.
        connection.close().await?;
        result
    }
}

/// Call with the lock. sqlx takes it a second time, which a session may.
async fn take_back(connection: &mut PgConnection, migrator: &Migrator, target: i64) -> Result<()> {
    Schema::find(connection).await?.admit_return(target, version_of(migrator))?;
    let users = newer_users(connection, target).await?;
    if !users.is_empty() {
        return Err(SchemaError::InUse { target, users }.into());
    }
    Ok(migrator.undo(connection, target).await?)
}

/// The connected programs of a version after `target`, except this connection.
async fn newer_users(connection: &mut PgConnection, target: i64) -> Result<Vec<String>> {
    let users = sqlx::query_scalar!(
        r#"-- schema::migrate::newer_users
           select format('%s from %s (%s connections)', application_name,
                         coalesce(host(client_addr), 'the machine of the database'), count(*)) as "user!"
           from pg_stat_activity
           where datname = current_database() and pid <> pg_backend_pid()
             and substring(application_name from '^tao-slurm \S+ schema (\d{1,9})$')::bigint > $1
           group by application_name, client_addr
           order by application_name, client_addr"#,
        target
    );
    Ok(users.fetch_all(connection).await?)
}

#[cfg(test)]
mod tests;

//! The version of the database schema: which programs may run on it, and the ways up and back.
//!
//! The version of a schema is the number of its newest migration. The version of a program is the number of the newest
//! migration that it contains. A migration keeps older programs running if its name ends in `_min_N`: programs from version N
//! on may run on the new schema. sqlx stores the name with the migration, so that older programs read it in the database.
//! A migration that does not say so stops all older programs.

use sqlx::{PgConnection, migrate::Migrator};

use crate::{error::Result, store::Store};

/// The schema, compiled in.
pub static MIGRATOR: Migrator = sqlx::migrate!("../../migrations");

/// Why the schema and this program do not fit together, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    #[error(
        "the database schema is at version {found}, and this program needs version {program}: run `tao-slurm migrate` of \
         this program"
    )]
    Older { found: i64, program: i64 },
    #[error(
        "the database schema is at version {found} and needs programs of schema version {minimum} or later, and this program \
         has version {program}: run a newer program; or go back: stop all newer processes, then run `tao-slurm migrate --to \
         {program}` of the newest program"
    )]
    Newer { found: i64, minimum: i64, program: i64 },
    #[error("`--to {target}` is not possible: this program knows the schema versions 1 to {program}")]
    NoSuchVersion { target: i64, program: i64 },
    #[error("the database schema is at version {found}, before {target}: `tao-slurm migrate` upgrades it")]
    NotReached { found: i64, target: i64 },
    #[error(
        "the database schema is at version {found}, and this program knows the way back from version {program} only: run \
         `tao-slurm migrate --to {target}` of the newest program"
    )]
    Unknown { found: i64, target: i64, program: i64 },
    #[error(
        "processes that need a newer schema than version {target} use the database: {}; stop them or install an older \
         program there, then run this command again", users.join(", ")
    )]
    InUse { target: i64, users: Vec<String> },
}

/// What the database says about its schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Schema {
    version: i64,
    /// The oldest program that may run on it.
    minimum: i64,
}

impl Schema {
    async fn find(connection: &mut PgConnection) -> Result<Self> {
        let found = sqlx::query_as!(
            Self,
            r#"-- schema::find
               select coalesce(max(version), 0) as "version!",
                      coalesce(max(coalesce(substring(description from ' min (\d{1,9})$')::bigint, version)), 0) as "minimum!"
               from _sqlx_migrations where success"#
        );
        Ok(found.fetch_one(connection).await?)
    }

    /// Whether a program may run.
    fn admit(self, program: i64) -> Result<(), SchemaError> {
        let Self { version: found, minimum } = self;
        if found < program {
            Err(SchemaError::Older { found, program })
        } else if minimum > program {
            Err(SchemaError::Newer { found, minimum, program })
        } else {
            Ok(())
        }
    }

    /// Whether a program may take back all migrations after `target`.
    fn admit_return(self, target: i64, program: i64) -> Result<(), SchemaError> {
        let found = self.version;
        if !(1..=program).contains(&target) {
            Err(SchemaError::NoSuchVersion { target, program })
        } else if found < target {
            Err(SchemaError::NotReached { found, target })
        } else if found > program {
            Err(SchemaError::Unknown { found, target, program })
        } else {
            Ok(())
        }
    }
}

/// The schema version of a program with these migrations.
pub(crate) fn version_of(migrator: &Migrator) -> i64 {
    migrator.iter().map(|migration| migration.version).max().unwrap_or_default()
}

/// The name that the connections of a program with these migrations have in `pg_stat_activity`.
pub(crate) fn application_name(migrator: &Migrator) -> String {
    format!("tao-slurm {} schema {}", env!("CARGO_PKG_VERSION"), version_of(migrator))
}

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

    /// Takes back the migrations after `target`. Refuses while a process is connected that needs one of them.
    pub async fn migrate_back(&self, target: i64) -> Result<()> {
        self.migrate_back_by(&MIGRATOR, target).await
    }

    async fn migrate_back_by(&self, migrator: &Migrator, target: i64) -> Result<()> {
        let mut connection = self.pool.acquire().await?;
        Schema::find(&mut connection).await?.admit_return(target, version_of(migrator))?;
        let users = newer_users(&mut connection, target).await?;
        if !users.is_empty() {
            return Err(SchemaError::InUse { target, users }.into());
        }
        Ok(migrator.undo(&mut *connection, target).await?)
    }
}

/// The connected programs of a version after `target`, except this connection.
async fn newer_users(connection: &mut PgConnection, target: i64) -> Result<Vec<String>> {
    let users = sqlx::query_scalar!(
        r#"-- schema::newer_users
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

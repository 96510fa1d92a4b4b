//! The version of the database schema, and which programs may run on it.
//!
//! The version of a schema is the number of its newest migration. The version of a program is the number of the newest
//! migration that it contains. A migration keeps older programs running if its name ends in `_min_N`: programs from version N
//! on may run on the new schema. sqlx stores the name with the migration, so that older programs read it in the database.
//! A migration that does not say so stops all older programs.

use sqlx::{PgConnection, migrate::Migrator};

use crate::error::{Result, SchemaError};

/// The schema, compiled in.
pub static MIGRATOR: Migrator = sqlx::migrate!("../../migrations");

/// What the database says about its schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Schema {
    pub(crate) version: i64,
    /// The oldest program that may run on it.
    minimum: i64,
}

impl Schema {
    pub(crate) async fn find(connection: &mut PgConnection) -> Result<Self> {
        let found = sqlx::query_as!(
            Self,
            r#"-- schema::version::find
               select coalesce(max(version), 0) as "version!",
                      coalesce(max(coalesce(substring(description from ' min (\d{1,9})$')::bigint, version)), 0) as "minimum!"
               from _sqlx_migrations where success"#
        );
        Ok(found.fetch_one(connection).await?)
    }

    /// Whether a program may run.
    pub(crate) fn admit(self, program: i64) -> Result<(), SchemaError> {
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
    pub(crate) fn admit_return(self, target: i64, program: i64) -> Result<(), SchemaError> {
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

#[cfg(test)]
mod tests {
    use sqlx::PgPool;

    use super::*;

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
            (9001, "more min 3", 13),
            (9002, "another table", 9002),
            (9003, "more min 3", 9002),
            (9004, "drop what 9003 replaced min 9003", 9003),
            (9005, "admin 7", 9005),
        ] {
            let row =
                format!("insert into _sqlx_migrations values ({version}, '{name}', now(), true, '', 0)");
            sqlx::raw_sql(sqlx::AssertSqlSafe(row)).execute(&mut *connection).await.unwrap();
            assert_eq!(Schema::find(&mut connection).await.unwrap(), Schema { version, minimum }, "{name}");
        }
    }
}

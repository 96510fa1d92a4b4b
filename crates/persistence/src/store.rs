//! The handle on the database.

use std::time::Duration;

use secrecy::{ExposeSecret, SecretString};
use sqlx::{PgPool, migrate::Migrator, postgres::PgPoolOptions};

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

    /// Waits for statements under way and closes all connections.
    pub async fn close(&self) {
        self.pool.close().await;
    }
}

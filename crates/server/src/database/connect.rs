//! Opening the database: the configured one, or a private Postgres.

use std::time::{Duration, Instant};

use anyhow::Context;
use persistence::{Sealer, Store, StoreOptions};

use crate::{
    config::{Config, Environment, make_data_dir, sealing_key},
    database::embedded_postgres::EmbeddedPostgres,
};

const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(3);
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(5);

/// An open database, with its private server if it has one.
pub(crate) struct Database {
    pub(crate) store: Store,
    private: Option<EmbeddedPostgres>,
}

impl Database {
    /// Connects. It starts the private server if no database is configured.
    pub(crate) async fn open(config: &Config, environment: &Environment) -> anyhow::Result<Self> {
        let settings = &config.settings;
        make_data_dir(&settings.data_dir)?;
        let sealer = Sealer::from_key(sealing_key(&settings.secrets.key_file)?);
        let (data_dir, search_path) = (settings.data_dir.clone(), environment.search_path());
        let private = if settings.database.url.is_none() {
            let start = move || EmbeddedPostgres::start(&data_dir, &search_path);
            Some(tokio::task::spawn_blocking(start).await??)
        } else {
            None
        };
        let url = private.as_ref().map_or(settings.database.url.as_ref(), |postgres| Some(postgres.url()));
        let options = StoreOptions {
            url: url.context("no database is configured")?.clone(),
            max_connections: settings.database.max_connections,
            acquire_timeout: ACQUIRE_TIMEOUT,
        };
        match connect(&options, sealer, settings.database.startup_timeout).await {
            Ok(store) => Ok(Self { store, private }),
            Err(error) => {
                Self::stop(private).await?;
                Err(error)
            }
        }
    }

    /// Connects and upgrades the schema.
    pub(crate) async fn open_current(config: &Config, environment: &Environment) -> anyhow::Result<Self> {
        let database = Self::open(config, environment).await?;
        match database.store.migrate().await.context("cannot upgrade the database schema") {
            Ok(_) => Ok(database),
            Err(error) => {
                database.close().await?;
                Err(error)
            }
        }
    }

    /// Takes the private server out, for a task that monitors it.
    pub(crate) fn take_private(&mut self) -> Option<EmbeddedPostgres> {
        self.private.take()
    }

    /// Closes the connections, then stops the private server.
    pub(crate) async fn close(self) -> anyhow::Result<()> {
        self.store.close().await;
        Self::stop(self.private).await
    }

    /// Stops a private server, unless another process uses it.
    pub(crate) async fn stop(private: Option<EmbeddedPostgres>) -> anyhow::Result<()> {
        match private {
            Some(postgres) => tokio::task::spawn_blocking(|| postgres.stop()).await?,
            None => Ok(()),
        }
    }
}

async fn connect(options: &StoreOptions, sealer: Sealer, timeout: Duration) -> anyhow::Result<Store> {
    let started = Instant::now();
    let mut pause = FIRST_PAUSE;
    loop {
        let error = match Store::connect(options, sealer.clone()).await {
            Ok(store) => return Ok(store),
            Err(error) => error,
        };
        // A retry does not help with a wrong password or a missing database.
        if !error.is_unavailable() || started.elapsed() + pause > timeout {
            return Err(error).context(
                "cannot connect to the database; check database.url (DATABASE_URL) and that its server runs, or unset it to use a \
                 private Postgres",
            );
        }
        let error = format!("{:#}", anyhow::Error::new(error));
        tracing::warn!(error, "cannot connect to the database yet; retrying");
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

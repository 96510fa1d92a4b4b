//! `tao-slurm serve`: everything is made here, runs under the lifecycle, and is taken down in reverse.

use std::{net::SocketAddr, process::ExitCode, sync::Arc, time::Duration};

use anyhow::Context;
use api::{ApiState, Feed, Limits, RateLimit};
use domain::{Clock, Cluster};
use metrics_exporter_prometheus::PrometheusHandle;
use tokio::{net::TcpListener, sync::Mutex};
use webhooks::{Deliverer, DeliverySettings};
use worker::Worker;

use crate::{
    cli::Role,
    clock::{ASK_EVERY, RandomIds, SharedClock},
    cluster_links::Links,
    cluster_ops::Operations,
    config::{self, AuthMode, Config, Environment},
    database::Database,
    embedded_postgres::EmbeddedPostgres,
    http_server::{self, ConnectionLimits},
    lifecycle::{Ending, Lifecycle, signals},
    log_links::LogLinks,
    open_files, stranded, telemetry,
    wiring::{WorkerPulse, targets, worker_settings},
};

mod listener;

use listener::listen;

/// How often the recorder of metrics sheds what nobody asked for.
const UPKEEP: Duration = Duration::from_secs(5);
const LOOK_AT_POSTGRES: Duration = Duration::from_secs(1);

pub(super) async fn run(config: Config, environment: Environment, role: Role) -> anyhow::Result<ExitCode> {
    // Signals first: one that comes during the start is an orderly end, too.
    let mut signals = signals().context("cannot listen for signals")?;
    open_files::raise_limit();
    let listener = listen(&config.settings, role).await?;
    let metrics = telemetry::start_metrics()?;
    for warning in config::warnings(&config) {
        tracing::warn!("{warning}");
    }
    let opening = Database::open_current(&config, &environment);
    let mut database = if config.settings.database.url.is_some() {
        // Somebody else's database may be waited for, and that wait may be cut short.
        tokio::select! {
            opened = opening => opened?,
            Some(_) = signals.recv() => return Ok(ExitCode::SUCCESS),
        }
    } else {
        opening.await?
    };
    warn_of_stranded(&config, &database).await;
    let lifecycle = Lifecycle::new(config.settings.server.drain_timeout);
    let postgres = database.take_private().map(|postgres| Arc::new(Mutex::new(postgres)));
    if let Some(postgres) = &postgres {
        let stop = lifecycle.soft();
        lifecycle.spawn("private postgres", watch(Arc::clone(postgres), stop));
    }
    let clock = Arc::new(SharedClock::of(&database.store).await);
    let started = start(&config, role, listener, &database, &clock, &lifecycle, metrics);
    let ending = match &started {
        Ok(()) => lifecycle.run(signals).await,
        Err(_) => Ending::Failed,
    };
    database.close().await?;
    let postgres = postgres.and_then(Arc::into_inner).map(Mutex::into_inner);
    Database::stop(postgres).await?;
    started?;
    tracing::info!("stopped");
    Ok(if ending == Ending::Asked { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Puts the parts of this process to work.
fn start(
    config: &Config,
    role: Role,
    listener: Option<TcpListener>,
    database: &Database,
    clock: &Arc<SharedClock>,
    lifecycle: &Lifecycle,
    metrics: PrometheusHandle,
) -> anyhow::Result<()> {
    let logs = Arc::new(LogLinks::new(&config.clusters));
    let targets = if role == Role::Api { Vec::new() } else { targets(&config.clusters) };
    let ops = Arc::new(Operations::new(&config.clusters));
    let links = Arc::new(Links::new(&config.clusters, &targets, Arc::clone(&logs), Arc::clone(&ops)));
    let worker = (role != Role::Api).then(|| {
        let settings = worker_settings(&config.settings);
        Arc::new(Worker::new(
            database.store.clone(),
            targets,
            settings,
            Arc::clone(clock) as Arc<dyn Clock>,
            Arc::new(RandomIds),
        ))
    });
    if let Some(worker) = &worker {
        let (worker, stop) = (Arc::clone(worker), lifecycle.soft());
        lifecycle.spawn("worker", async move { Ok(worker.run(stop).await?) });
    }
    let (clock_of, store, stop) = (Arc::clone(clock), database.store.clone(), lifecycle.soft());
    lifecycle.spawn("clock", async move {
        while stop.run_until_cancelled(tokio::time::sleep(ASK_EVERY)).await.is_some() {
            clock_of.ask(&store).await;
        }
        Ok(())
    });
    if role != Role::Api {
        let deliverer = deliverer(config, database, clock);
        let stop = lifecycle.soft();
        lifecycle.spawn("webhooks", async move {
            deliverer.run(stop).await;
            Ok(())
        });
    }
    let (upkeep, stop) = (metrics.clone(), lifecycle.soft());
    lifecycle.spawn("metrics", async move {
        while stop.run_until_cancelled(tokio::time::sleep(UPKEEP)).await.is_some() {
            upkeep.run_upkeep();
        }
        Ok(())
    });
    let Some(listener) = listener else {
        tracing::info!(clusters = config.clusters.len(), "working");
        return Ok(());
    };
    let settings = &config.settings;
    let clusters: Vec<Cluster> = config.clusters.iter().map(|cluster| cluster.cluster.clone()).collect();
    let state = ApiState {
        store: database.store.clone(),
        clusters: clusters.into(),
        container_images: Arc::new(config.container_images.clone()),
        webhook_networks: Arc::new(config.webhook_networks.clone()),
        clock: Arc::clone(clock) as Arc<dyn Clock>,
        ids: Arc::new(RandomIds),
        logs,
        links,
        ops,
        feed: start_feed(role, database, clock, lifecycle),
        auth: match settings.auth.mode {
            AuthMode::Tokens => api::AuthMode::Tokens,
            AuthMode::Disabled => api::AuthMode::Disabled,
        },
        metrics: Some(metrics),
        readiness: Arc::new(WorkerPulse(worker)),
        limits: Limits {
            body_bytes: settings.server.body_limit_bytes,
            header_bytes: settings.server.header_limit_bytes,
            body_timeout: settings.server.body_timeout,
            rate: RateLimit::new(settings.server.rate_limit, settings.server.rate_burst),
            idempotency_keep: settings.server.idempotency_keep,
            request_timeout: settings.server.request_timeout,
            // Some connections remain for those who only ask.
            watchers: settings.server.max_connections / 8 * 7,
            ..Limits::default()
        },
        cors_origins: settings.server.cors_origins.clone().into(),
        stop: lifecycle.soft(),
    };
    let address = listener.local_addr().context("the listener has no address")?;
    let routes = match role {
        Role::All | Role::Api => api::router(state),
        Role::Worker => api::health_router(state),
    };
    let stop = lifecycle.soft();
    let limits = ConnectionLimits {
        header_timeout: settings.server.header_timeout,
        header_bytes: settings.server.header_limit_bytes,
        connections: settings.server.max_connections,
    };
    lifecycle.spawn("http", async move { Ok(http_server::serve(listener, routes, limits, stop).await?) });
    announce(config, role, address);
    Ok(())
}

/// What tells those who watch; a process without an API has nobody to tell.
fn start_feed(role: Role, database: &Database, clock: &Arc<SharedClock>, lifecycle: &Lifecycle) -> Arc<Feed> {
    let clock = Arc::clone(clock) as Arc<dyn Clock>;
    let feed = Arc::new(Feed::new(database.store.clone(), clock, Feed::SWEEP));
    if role != Role::Worker {
        let (reader, stop) = (Arc::clone(&feed), lifecycle.soft());
        lifecycle.spawn("events", async move {
            reader.run(stop).await;
            Ok(())
        });
    }
    feed
}

/// What tells webhooks of jobs.
fn deliverer(config: &Config, database: &Database, clock: &Arc<SharedClock>) -> Arc<Deliverer> {
    let clock = Arc::clone(clock) as Arc<dyn Clock>;
    let settings = DeliverySettings {
        networks: config.webhook_networks.clone(),
        timeout: config.settings.webhooks.timeout,
        attempts: config.settings.webhooks.max_attempts,
    };
    Arc::new(Deliverer::new(database.store.clone(), settings, clock, Arc::new(RandomIds)))
}

/// Says once what somebody has to know who took a cluster out of the configuration too early.
async fn warn_of_stranded(config: &Config, database: &Database) {
    match database.store.live_jobs_by_cluster().await {
        Ok(live) => {
            let configured = config.clusters.iter().map(|cluster| &cluster.cluster.name);
            if let Some(warning) = stranded::warning(live, configured) {
                tracing::warn!("{warning}");
            }
        }
        // Only advice is lost; whoever needs the database will say what is wrong with it.
        Err(error) => tracing::warn!(%error, "cannot look for jobs on clusters that are not configured"),
    }
}

fn announce(config: &Config, role: Role, address: SocketAddr) {
    if role == Role::Worker {
        tracing::info!(
            clusters = config.clusters.len(),
            "working: health at http://{address}/readyz, metrics at http://{address}/metrics"
        );
        return;
    }
    tracing::info!(
        clusters = config.clusters.len(),
        "ready: API at http://{address}, documentation at http://{address}/docs, metrics at http://{address}/metrics"
    );
    match config.settings.auth.mode {
        AuthMode::Tokens => tracing::info!(
            "callers need a token; make one with `tao-slurm token create --owner NAME --scope read,write`"
        ),
        AuthMode::Disabled => {
            tracing::warn!("auth.mode is \"disabled\": everybody on this machine may run jobs");
        }
    }
}

/// Ends the service when its database has ended: better a restart than a process that can do nothing.
async fn watch(
    postgres: Arc<Mutex<EmbeddedPostgres>>,
    stop: tokio_util::sync::CancellationToken,
) -> anyhow::Result<()> {
    while stop.run_until_cancelled(tokio::time::sleep(LOOK_AT_POSTGRES)).await.is_some() {
        if !postgres.lock().await.is_alive() {
            anyhow::bail!("the private Postgres has ended; see postgres.log in the data directory");
        }
    }
    Ok(())
}

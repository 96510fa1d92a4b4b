//! `serve`: creates the parts of the service, runs them and stops them in reverse order.

mod listener;
mod pages;

use std::{net::SocketAddr, process::ExitCode, sync::Arc, time::Duration};

use anyhow::Context;
use api::{ApiState, Feed, Limits, RateLimit};
use domain::Clock;
use listener::listen;
use metrics_exporter_prometheus::PrometheusHandle;
use persistence::Store;
use tokio::{net::TcpListener, sync::Mutex, time::sleep};
use tokio_util::sync::CancellationToken;
use webhooks::{Deliverer, DeliverySettings};
use worker::{Timeline, Worker};

use crate::{
    cli::Role,
    clusters::{connections::ClusterConnections, registry::ClusterRegistry, stranded},
    config::{self, AuthMode, Config, Environment, KeptRules, Server},
    database::{connect::Database, embedded_postgres::EmbeddedPostgres, retention::Retention},
    process::{
        clock::{REFRESH_INTERVAL, RandomIds, SharedClock},
        gauges::Gauges,
        http_server::{self, ConnectionLimits, Routes},
        jwks,
        lifecycle::{Ending, Lifecycle, signals},
        open_files, telemetry,
    },
    wiring::{WorkerPulse, worker_settings},
};

/// How often the metrics recorder drops outdated samples.
const UPKEEP_INTERVAL: Duration = Duration::from_secs(5);
const POSTGRES_CHECK_INTERVAL: Duration = Duration::from_secs(1);

pub(super) async fn run(config: Config, environment: Environment, role: Role) -> anyhow::Result<ExitCode> {
    // First, so that a signal during the start also stops the service in order.
    let mut signals = signals().context("cannot listen for signals")?;
    open_files::raise_limit();
    let listener = listen(&config.settings, role).await?;
    let metrics = telemetry::start_metrics()?;
    for warning in config::warnings(&config) {
        tracing::warn!("{warning}");
    }
    let opening = Database::open_current(&config, &environment);
    let mut database = if config.settings.database.url.is_some() {
        // The wait for a database that is not ours may be interrupted.
        tokio::select! {
            opened = opening => opened?,
            Some(_) = signals.recv() => return Ok(ExitCode::SUCCESS),
        }
    } else {
        opening.await?
    };
    let lifecycle = Lifecycle::new(config.settings.server.drain_timeout);
    let postgres = database.take_private().map(|postgres| Arc::new(Mutex::new(postgres)));
    if let Some(postgres) = &postgres {
        lifecycle.spawn("private postgres", |stop| watch(Arc::clone(postgres), stop));
    }
    let started = start(&config, &environment, role, listener, &database.store, &lifecycle, metrics).await;
    let ending = match &started {
        Ok(()) => lifecycle.run(signals).await,
        Err(_) => Ending::Failed,
    };
    database.close().await?;
    let postgres = postgres.and_then(Arc::into_inner).map(Mutex::into_inner);
    Database::stop(postgres).await?;
    started?;
    tracing::info!("stopped");
    Ok(if ending == Ending::Requested { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn start(
    config: &Config,
    environment: &Environment,
    role: Role,
    listener: Option<TcpListener>,
    store: &Store,
    lifecycle: &Lifecycle,
    metrics: PrometheusHandle,
) -> anyhow::Result<()> {
    let shared_clock = Arc::new(SharedClock::of(store).await);
    let clock = Arc::clone(&shared_clock) as Arc<dyn Clock>;
    let (timeline, writer) = Timeline::new(store.clone(), Arc::clone(&clock));
    lifecycle.spawn_loop("timeline", |stop| writer.run(stop));
    let worker = (role != Role::Api).then(|| {
        let settings = worker_settings(&config.settings);
        Arc::new(Worker::new(store.clone(), Vec::new(), settings, Arc::clone(&clock), Arc::new(RandomIds)))
    });
    let connections = Arc::new(ClusterConnections::new(timeline, store.clone()));
    let registry = Arc::new(ClusterRegistry::new(
        store.clone(),
        KeptRules::of(&config.settings, environment),
        config.clusters.clone(),
        worker.clone(),
        Arc::clone(&connections),
    ));
    registry.refresh().await.context("cannot read the clusters from the database")?;
    let known = registry.known();
    stranded::warn(&known, store).await;
    lifecycle.spawn_loop("clusters", |stop| Arc::clone(&registry).follow(stop));
    if let Some(worker) = worker.clone() {
        lifecycle.spawn("worker", |stop| async { Ok(worker.run(stop).await?) });
        let deliverer = deliverer(config, store, &clock);
        lifecycle.spawn_loop("webhooks", |stop| deliverer.run(stop));
        if let Some(keep) = config.settings.database.keep_ended_jobs {
            let retention = Retention { store: store.clone(), keep };
            lifecycle.spawn_loop("retention", |stop| async move { retention.run(stop).await });
        }
    }
    let clock_store = store.clone();
    lifecycle.spawn_loop("clock", |stop| async move {
        while stop.run_until_cancelled(sleep(REFRESH_INTERVAL)).await.is_some() {
            shared_clock.refresh(&clock_store).await;
        }
    });
    let pulse = Arc::new(WorkerPulse(worker));
    let gauges = Gauges {
        store: store.clone(),
        clusters: known.clone(),
        connections: Arc::clone(&connections),
        pulse: Arc::clone(&pulse),
    };
    lifecycle.spawn_loop("gauges", |stop| async move { gauges.run(stop).await });
    let recorder = metrics.clone();
    lifecycle.spawn_loop("metrics", |stop| async move {
        while stop.run_until_cancelled(sleep(UPKEEP_INTERVAL)).await.is_some() {
            recorder.run_upkeep();
        }
    });
    let clusters = known.now().all().len();
    let Some(listener) = listener else {
        tracing::info!(clusters, "the worker is running");
        return Ok(());
    };
    let settings = &config.settings;
    let feed = Arc::new(Feed::new(store.clone(), Arc::clone(&clock), Feed::SWEEP));
    if role != Role::Worker {
        let feed = Arc::clone(&feed);
        lifecycle.spawn_loop("events", |stop| async move { feed.run(stop).await });
    }
    let now = Arc::clone(&clock);
    let state = ApiState {
        store: store.clone(),
        clusters: known,
        keeper: registry,
        container_images: Arc::new(config.container_images.clone()),
        webhook_networks: Arc::new(config.webhook_networks.clone()),
        clock,
        ids: Arc::new(RandomIds),
        logs: Arc::clone(&connections) as Arc<dyn api::LogSource>,
        links: Arc::clone(&connections) as Arc<dyn api::ClusterLinks>,
        ops: connections,
        feed,
        auth: match settings.auth.mode {
            AuthMode::Tokens => api::AuthMode::Tokens,
            AuthMode::Disabled => api::AuthMode::Disabled,
        },
        jwt: config.jwt.as_ref().map(jwks::jwt),
        metrics: Some(metrics),
        readiness: pulse,
        limits: limits(&settings.server),
        cors_origins: settings.server.cors_origins.clone().into(),
        stop: lifecycle.soft(),
        errands: lifecycle.errands(),
    };
    let address = listener.local_addr().context("the listener has no address")?;
    let routes = match role {
        Role::All | Role::Api => pages::before(api::router(state), now, config)?,
        Role::Worker => {
            let all = api::health_router(state);
            Routes { probes: api::probes_only(all.clone()), all }
        }
    };
    let limits = connection_limits(&settings.server);
    lifecycle
        .spawn("http", |stop| async move { Ok(http_server::serve(listener, routes, limits, stop).await?) });
    announce(settings.auth.mode, clusters, role, address);
    Ok(())
}

fn connection_limits(server: &Server) -> ConnectionLimits {
    ConnectionLimits {
        header_timeout: server.header_timeout,
        header_bytes: server.header_limit_bytes,
        write_timeout: server.write_timeout,
        connections: server.max_connections,
        connections_of_address: server.max_connections_per_address,
    }
}

fn limits(server: &Server) -> Limits {
    Limits {
        body_bytes: server.body_limit_bytes,
        header_bytes: server.header_limit_bytes,
        body_timeout: server.body_timeout,
        rate: RateLimit::new(server.rate_limit, server.rate_burst),
        buffer_bytes: server.buffer_bytes,
        idempotency_keep: server.idempotency_keep,
        request_timeout: server.request_timeout,
        clusters: server.max_clusters,
        // The rest of the connections is reserved for ordinary requests.
        watchers: server.max_connections / 8 * 7,
        ..Limits::default()
    }
}

fn deliverer(config: &Config, store: &Store, clock: &Arc<dyn Clock>) -> Arc<Deliverer> {
    let settings = DeliverySettings {
        networks: config.webhook_networks.clone(),
        authorities: config.webhook_authorities.clone(),
        timeout: config.settings.webhooks.timeout,
        attempts: config.settings.webhooks.max_attempts,
    };
    Arc::new(Deliverer::new(store.clone(), settings, Arc::clone(clock), Arc::new(RandomIds)))
}

fn announce(auth: AuthMode, clusters: usize, role: Role, address: SocketAddr) {
    if role == Role::Worker {
        tracing::info!(
            clusters,
            "the worker is running: health at http://{address}/readyz, metrics at http://{address}/metrics"
        );
        return;
    }
    tracing::info!(
        clusters,
        "ready: API at http://{address}, console at http://{address}/ui, documentation at http://{address}/docs, metrics at http://{address}/metrics"
    );
    match auth {
        AuthMode::Tokens => tracing::info!(
            "requests need a token; create one with `tao-slurm token create --owner NAME --scope read,write`"
        ),
        AuthMode::Disabled => {
            tracing::warn!("auth.mode is \"disabled\": every user of this machine can run jobs");
        }
    }
}

/// Fails when the private Postgres has ended: the service then stops, and can be restarted.
async fn watch(postgres: Arc<Mutex<EmbeddedPostgres>>, stop: CancellationToken) -> anyhow::Result<()> {
    while stop.run_until_cancelled(sleep(POSTGRES_CHECK_INTERVAL)).await.is_some() {
        if !postgres.lock().await.is_alive() {
            anyhow::bail!("the private Postgres has ended; see postgres.log in the data directory");
        }
    }
    Ok(())
}

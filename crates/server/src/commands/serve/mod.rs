//! `tao-slurm serve`: everything is made here, runs under the lifecycle, and is taken down in reverse.

use std::{net::SocketAddr, process::ExitCode, sync::Arc, time::Duration};

use anyhow::Context;
use api::{ApiState, Feed, KnownClusters, Limits, RateLimit};
use domain::Clock;
use metrics_exporter_prometheus::PrometheusHandle;
use tokio::{net::TcpListener, sync::Mutex};
use webhooks::{Deliverer, DeliverySettings};
use worker::{Timeline, Worker};

use crate::{
    cli::Role,
    clusters::{
        links::Links,
        log_links::LogLinks,
        operations::Operations,
        runtime::{AtWork, Clusters},
        stranded,
    },
    config::{self, AuthMode, Config, Environment, KeptRules, Server},
    database::{connect::Database, embedded_postgres::EmbeddedPostgres, retention::Retention},
    process::{
        clock::{ASK_EVERY, RandomIds, SharedClock},
        gauges::Gauges,
        http_server::{self, ConnectionLimits},
        jwks,
        lifecycle::{Ending, Lifecycle, signals},
        open_files, telemetry,
    },
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
    let lifecycle = Lifecycle::new(config.settings.server.drain_timeout);
    let postgres = database.take_private().map(|postgres| Arc::new(Mutex::new(postgres)));
    if let Some(postgres) = &postgres {
        let stop = lifecycle.soft();
        lifecycle.spawn("private postgres", watch(Arc::clone(postgres), stop));
    }
    let started = start(&config, &environment, role, listener, &database, &lifecycle, metrics).await;
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
async fn start(
    config: &Config,
    environment: &Environment,
    role: Role,
    listener: Option<TcpListener>,
    database: &Database,
    lifecycle: &Lifecycle,
    metrics: PrometheusHandle,
) -> anyhow::Result<()> {
    let clock = &Arc::new(SharedClock::of(&database.store).await);
    let timeline = start_timeline(database, clock, lifecycle);
    let logs = Arc::new(LogLinks::new(&config.clusters, &timeline));
    let targets = if role == Role::Api { Vec::new() } else { targets(&config.clusters, &timeline) };
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
    let at_work = AtWork {
        worker: worker.clone(),
        links: Arc::clone(&links),
        logs: Arc::clone(&logs),
        ops: Arc::clone(&ops),
        timeline,
    };
    let clusters = keep_clusters(config, environment, database, at_work, lifecycle).await?;
    let known = clusters.known();
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
        start_retention(config, database, lifecycle);
    }
    let pulse = Arc::new(WorkerPulse(worker));
    start_gauges(&known, database, &links, &pulse, lifecycle);
    let (upkeep, stop) = (metrics.clone(), lifecycle.soft());
    lifecycle.spawn("metrics", async move {
        while stop.run_until_cancelled(tokio::time::sleep(UPKEEP)).await.is_some() {
            upkeep.run_upkeep();
        }
        Ok(())
    });
    let Some(listener) = listener else {
        tracing::info!(clusters = known.now().all().len(), "working");
        return Ok(());
    };
    let settings = &config.settings;
    let state = ApiState {
        store: database.store.clone(),
        clusters: known.clone(),
        keeper: clusters,
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
    announce(config, known.now().all().len(), role, address);
    Ok(())
}

/// What reads the numbers that nobody counts as they happen.
fn start_gauges(
    clusters: &KnownClusters,
    database: &Database,
    links: &Arc<Links>,
    pulse: &Arc<WorkerPulse>,
    lifecycle: &Lifecycle,
) {
    let gauges = Gauges {
        store: database.store.clone(),
        clusters: clusters.clone(),
        links: Arc::clone(links),
        pulse: Arc::clone(pulse),
    };
    let stop = lifecycle.soft();
    lifecycle.spawn("gauges", async move {
        gauges.run(stop).await;
        Ok(())
    });
}

/// The clusters, as the database has them at the start and from then on.
async fn keep_clusters(
    config: &Config,
    environment: &Environment,
    database: &Database,
    at_work: AtWork,
    lifecycle: &Lifecycle,
) -> anyhow::Result<Arc<Clusters>> {
    let rules = KeptRules::of(&config.settings, environment);
    let clusters = Clusters::new(database.store.clone(), rules, config.clusters.clone(), at_work);
    let clusters = Arc::new(clusters);
    clusters.refresh().await.context("cannot read the clusters that are kept in the database")?;
    warn_of_stranded(&clusters.known(), database).await;
    let (follower, stop) = (Arc::clone(&clusters), lifecycle.soft());
    lifecycle.spawn("clusters", async move {
        follower.follow(stop).await;
        Ok(())
    });
    Ok(clusters)
}

fn limits(server: &Server) -> Limits {
    Limits {
        body_bytes: server.body_limit_bytes,
        header_bytes: server.header_limit_bytes,
        body_timeout: server.body_timeout,
        rate: RateLimit::new(server.rate_limit, server.rate_burst),
        idempotency_keep: server.idempotency_keep,
        request_timeout: server.request_timeout,
        clusters: server.max_clusters,
        // Some connections remain for those who only ask.
        watchers: server.max_connections / 8 * 7,
        ..Limits::default()
    }
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

/// Where remote commands are noted, and what writes them down.
fn start_timeline(database: &Database, clock: &Arc<SharedClock>, lifecycle: &Lifecycle) -> Timeline {
    let (timeline, writer) = Timeline::new(database.store.clone(), Arc::clone(clock) as Arc<dyn Clock>);
    let stop = lifecycle.soft();
    lifecycle.spawn("timeline", async move {
        writer.run(stop).await;
        Ok(())
    });
    timeline
}

/// What forgets jobs that ended long ago; nothing unless somebody has said how long they stay.
fn start_retention(config: &Config, database: &Database, lifecycle: &Lifecycle) {
    let Some(keep) = config.settings.database.keep_ended_jobs else { return };
    let retention = Retention { store: database.store.clone(), keep };
    let stop = lifecycle.soft();
    lifecycle.spawn("retention", async move {
        retention.run(stop).await;
        Ok(())
    });
}

/// What tells webhooks of jobs.
fn deliverer(config: &Config, database: &Database, clock: &Arc<SharedClock>) -> Arc<Deliverer> {
    let clock = Arc::clone(clock) as Arc<dyn Clock>;
    let settings = DeliverySettings {
        networks: config.webhook_networks.clone(),
        authorities: config.webhook_authorities.clone(),
        timeout: config.settings.webhooks.timeout,
        attempts: config.settings.webhooks.max_attempts,
    };
    Arc::new(Deliverer::new(database.store.clone(), settings, clock, Arc::new(RandomIds)))
}

/// Says once what somebody has to know who took a cluster out of the configuration too early.
async fn warn_of_stranded(known: &KnownClusters, database: &Database) {
    match database.store.live_jobs_by_cluster().await {
        Ok(live) => {
            let known = known.now();
            let configured = known.all().iter().map(|cluster| &cluster.name);
            if let Some(warning) = stranded::warning(live, configured) {
                tracing::warn!("{warning}");
            }
        }
        // Only advice is lost; whoever needs the database will say what is wrong with it.
        Err(error) => tracing::warn!(%error, "cannot look for jobs on clusters that are not configured"),
    }
}

fn announce(config: &Config, clusters: usize, role: Role, address: SocketAddr) {
    if role == Role::Worker {
        tracing::info!(
            clusters,
            "working: health at http://{address}/readyz, metrics at http://{address}/metrics"
        );
        return;
    }
    tracing::info!(
        clusters,
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

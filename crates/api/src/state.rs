//! What the endpoints share.

use std::{fmt, sync::Arc, time::Duration};

use domain::{Clock, ContainerImages, Ids, Networks};
use metrics_exporter_prometheus::PrometheusHandle;
use persistence::Store;
use tokio::sync::Semaphore;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    auth::{
        AuthMode, Jwt, TokenCache,
        jwt::{JwtTerms, KeySource},
    },
    caches::{
        job_reads::{JobReads, KnownJobs},
        known_clusters::KnownClusters,
        known_partitions::PartitionsCache,
        log_reads::LogReads,
        pulses::PulseCache,
    },
    http::rate::{RateLimit, Rates},
    ports::{
        cluster_keeper::ClusterKeeper, cluster_links::ClusterLinks, cluster_ops::ClusterOps,
        log_source::LogSource,
    },
    watchers::feed::Feed,
};

/// Everything the service needs from outside; the composition root makes it.
#[derive(Clone)]
pub struct ApiState {
    /// The database.
    pub store: Store,
    /// The clusters, as they come and go.
    pub clusters: KnownClusters,
    /// Who knows what makes a cluster.
    pub keeper: Arc<dyn ClusterKeeper>,
    /// Which image a network runs in whose job comes by TAO's own wire.
    pub container_images: Arc<ContainerImages>,
    /// What webhooks may call beside public addresses.
    pub webhook_networks: Arc<Networks>,
    /// Where the present moment comes from.
    pub clock: Arc<dyn Clock>,
    /// Where new ids come from.
    pub ids: Arc<dyn Ids>,
    /// Where the bytes of logs come from.
    pub logs: Arc<dyn LogSource>,
    /// How this process's connections to the clusters fare.
    pub links: Arc<dyn ClusterLinks>,
    /// The way to ask something of a cluster itself.
    pub ops: Arc<dyn ClusterOps>,
    /// What tells those who watch jobs; whoever makes it runs it.
    pub feed: Arc<Feed>,
    /// Who may call.
    pub auth: AuthMode,
    /// Whose signed tokens are accepted beside the service's own, and where the keys are; none for nobody's.
    pub jwt: Option<(JwtTerms, Arc<dyn KeySource>)>,
    /// The numbers behind `/metrics`; none when they are not collected.
    pub metrics: Option<PrometheusHandle>,
    /// What else has to be alive for `/readyz`.
    pub readiness: Arc<dyn Readiness>,
    /// How much a request may cost.
    pub limits: Limits,
    /// The origins of web pages that may call from a browser; see [`is_origin`](crate::is_origin).
    pub cors_origins: Arc<[String]>,
    /// Canceled when the service is to finish: answers that go on and on end then.
    pub stop: CancellationToken,
    /// Runs what an answer must not be needed for to go on.
    pub errands: TaskTracker,
}

impl fmt::Debug for ApiState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApiState")
            .field("auth", &self.auth)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

/// What must be alive in this process, beside the database, for it to be ready.
pub trait Readiness: Send + Sync + 'static {
    /// The parts that are not ready, as a person would name them; empty when all are.
    fn not_ready(&self) -> Vec<String>;
}

/// How much one request may cost, and all that read logs together.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// The largest body.
    pub body_bytes: usize,
    /// The largest head, its address included.
    pub header_bytes: usize,
    /// How long the body may take to arrive.
    pub body_timeout: Duration,
    /// The longest time from the request's head to the answer's.
    pub request_timeout: Duration,
    /// How many requests a token may make; none for any number.
    pub rate: Option<RateLimit>,
    /// How long a token is remembered: within this time a revocation is felt, by requests and by streams.
    pub token_memory: Duration,
    /// How long an `Idempotency-Key` is known.
    pub idempotency_keep: Duration,
    /// The most bytes of a log in one answer.
    pub log_bytes: u64,
    /// How many requests may read logs of one cluster at a time. Each occupies a connection to a login host for as
    /// long as the shared file system takes, and may hold `log_bytes` twice.
    pub log_reads: usize,
    /// How long one more waits for its turn before it is told to come back.
    pub log_patience: Duration,
    /// How long a cluster may take to answer a question about logs.
    pub log_answer: Duration,
    /// How many logs may be followed at a time. Each is a connection to us and at most half a megabyte.
    pub log_followers: usize,
    /// How soon a followed log that has grown is looked at again.
    pub log_tick: Duration,
    /// After this long a follower or watcher has to come again, and show that he still may.
    pub follow_for: Duration,
    /// How many clusters are kept in the database.
    pub clusters: u32,
    /// How many may watch events or wait for a job to change at a time.
    pub watchers: usize,
    /// After this long without an event a comment goes out.
    pub heartbeat: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body_bytes: 10 * 1024 * 1024,
            header_bytes: 32 * 1024,
            body_timeout: Duration::from_secs(30),
            request_timeout: Duration::from_secs(40),
            rate: None,
            token_memory: Duration::from_secs(5),
            idempotency_keep: Duration::from_hours(24),
            log_bytes: 8 * 1024 * 1024,
            log_reads: 4,
            log_patience: Duration::from_secs(2),
            log_answer: Duration::from_secs(10),
            log_followers: 100,
            log_tick: Duration::from_secs(1),
            follow_for: Duration::from_hours(1),
            clusters: 64,
            watchers: 5000,
            heartbeat: Duration::from_secs(15),
        }
    }
}

/// The state of the router: what came from outside, and what is remembered between requests.
#[derive(Clone)]
pub(crate) struct App(Arc<Shared>);

pub(crate) struct Shared {
    pub(crate) outside: ApiState,
    pub(crate) job_reads: JobReads,
    pub(crate) tokens: TokenCache,
    pub(crate) jwt: Option<Jwt>,
    pub(crate) pulses: PulseCache,
    pub(crate) partitions: PartitionsCache,
    pub(crate) log_reads: LogReads,
    pub(crate) followers: Arc<Semaphore>,
    pub(crate) watchers: Arc<Semaphore>,
    pub(crate) rates: Option<Rates>,
}

impl App {
    pub(crate) fn new(outside: ApiState) -> Self {
        let Limits { log_answer, log_reads, log_followers, .. } = outside.limits;
        let log_reads = LogReads::new(Arc::clone(&outside.logs), log_answer, log_reads);
        let followers = Arc::new(Semaphore::new(log_followers));
        let watchers = Arc::new(Semaphore::new(outside.limits.watchers));
        let known_jobs = Arc::new(KnownJobs::new(outside.store.clone()));
        let job_reads = JobReads::new(outside.errands.clone(), move |ids| {
            let known_jobs = Arc::clone(&known_jobs);
            Box::pin(async move { known_jobs.read(ids).await })
        });
        let tokens = TokenCache::new(outside.limits.token_memory);
        let jwt = outside.jwt.clone().map(|(terms, keys)| Jwt::new(terms, keys));
        let (pulses, partitions) = (PulseCache::default(), PartitionsCache::default());
        let rates = outside.limits.rate.map(Rates::new);
        Self(Arc::new(Shared {
            outside,
            job_reads,
            tokens,
            jwt,
            pulses,
            partitions,
            log_reads,
            followers,
            watchers,
            rates,
        }))
    }

    pub(crate) fn job_reads(&self) -> &JobReads {
        &self.0.job_reads
    }

    pub(crate) fn tokens(&self) -> &TokenCache {
        &self.0.tokens
    }

    /// Who judges signed tokens; none when they are not accepted.
    pub(crate) fn jwt(&self) -> Option<&Jwt> {
        self.0.jwt.as_ref()
    }

    pub(crate) fn pulses(&self) -> &PulseCache {
        &self.0.pulses
    }

    pub(crate) fn partitions(&self) -> &PartitionsCache {
        &self.0.partitions
    }

    /// The one way to the logs on the clusters.
    pub(crate) fn log_reads(&self) -> &LogReads {
        &self.0.log_reads
    }

    /// What callers have left of their rate; none when there is no limit.
    pub(crate) fn rates(&self) -> Option<&Rates> {
        self.0.rates.as_ref()
    }

    /// The right to follow a log, one for each that may be followed at a time.
    pub(crate) fn followers(&self) -> Arc<Semaphore> {
        Arc::clone(&self.0.followers)
    }

    /// The right to watch events, one for each who may at a time.
    pub(crate) fn watchers(&self) -> Arc<Semaphore> {
        Arc::clone(&self.0.watchers)
    }
}

impl std::ops::Deref for App {
    type Target = ApiState;

    fn deref(&self) -> &ApiState {
        &self.0.outside
    }
}

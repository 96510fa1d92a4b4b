//! The state of the router.

use std::{collections::HashMap, fmt, ops::Deref, sync::Arc, time::Duration};

use domain::{Clock, ClusterName, ContainerImages, Ids, Networks};
use metrics_exporter_prometheus::PrometheusHandle;
use persistence::{KnownPartitions, PartitionTurns as _, Pulse, Store, StoreError};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    auth::{
        AuthMode, Jwt, TokenCache,
        jwt::{JwtTerms, KeySource},
    },
    caches::{
        job_reads::{JobReads, KnownJobs},
        known_clusters::KnownClusters,
        log_reads::LogReads,
        remembered::Remembered,
    },
    http::{
        buffers::Buffers,
        rate::{RateLimit, Rates},
    },
    ports::{ClusterKeeper, ClusterLinks, ClusterOps, LogSource},
    watchers::feed::Feed,
};

/// The dependencies of the API; the composition root creates them.
#[derive(Clone)]
pub struct ApiState {
    /// The database.
    pub store: Store,
    /// The known clusters.
    pub clusters: KnownClusters,
    /// Checks the settings of clusters.
    pub keeper: Arc<dyn ClusterKeeper>,
    /// The images of networks in TAO's own job format.
    pub container_images: Arc<ContainerImages>,
    /// Networks that webhooks may call beside public addresses.
    pub webhook_networks: Arc<Networks>,
    /// The current time.
    pub clock: Arc<dyn Clock>,
    /// New ids.
    pub ids: Arc<dyn Ids>,
    /// Reads logs on clusters.
    pub logs: Arc<dyn LogSource>,
    /// The state of this process's SSH connections.
    pub links: Arc<dyn ClusterLinks>,
    /// Calls that contact a cluster.
    pub ops: Arc<dyn ClusterOps>,
    /// The feed for watchers; its creator runs it.
    pub feed: Arc<Feed>,
    /// Who may call.
    pub auth: AuthMode,
    /// The issuer of signed tokens and the source of its keys; none if signed tokens are not accepted.
    pub jwt: Option<(JwtTerms, Arc<dyn KeySource>)>,
    /// The metrics behind `/metrics`; none if they are not collected.
    pub metrics: Option<PrometheusHandle>,
    /// The other conditions of `/readyz`.
    pub readiness: Arc<dyn Readiness>,
    /// The limits of requests.
    pub limits: Limits,
    /// Origins of web pages that may call; see [`is_origin`](crate::is_origin).
    pub cors_origins: Arc<[String]>,
    /// Canceled when the service stops; streams end then.
    pub stop: CancellationToken,
    /// Tasks that outlive their request.
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

/// Whether the loops of this process are alive.
pub trait Readiness: Send + Sync + 'static {
    /// The names of the parts that are not ready.
    fn not_ready(&self) -> Vec<String>;
}

/// The limits of one request, and of all log reads and streams together.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// The largest body, in bytes.
    pub body_bytes: usize,
    /// The largest head with the address, in bytes.
    pub header_bytes: usize,
    /// The time for the body to arrive.
    pub body_timeout: Duration,
    /// The time from the request's head to the answer's head.
    pub request_timeout: Duration,
    /// The rate limit of a token; none for no limit.
    pub rate: Option<RateLimit>,
    /// How long a token is cached. A revocation takes effect within this time, for requests and streams.
    pub token_memory: Duration,
    /// The most bytes of large bodies, and of large answers that are not sent yet.
    pub buffer_bytes: usize,
    /// How long an `Idempotency-Key` is stored.
    pub idempotency_keep: Duration,
    /// The most bytes of a log in one answer.
    pub log_bytes: u64,
    /// The most concurrent log reads of one cluster. Each occupies a connection to a login host for as long as the shared file
    /// system takes, and may hold `log_bytes` twice.
    pub log_reads: usize,
    /// How long one more read waits for its turn before it is refused.
    pub log_patience: Duration,
    /// How long a cluster may take to answer a log question.
    pub log_answer: Duration,
    /// The most followed logs. Each is a connection and at most half a megabyte.
    pub log_followers: usize,
    /// The interval between reads of a followed log that has grown.
    pub log_tick: Duration,
    /// The longest stream; afterwards the client reconnects and is authorized again.
    pub follow_for: Duration,
    /// The most clusters in the database.
    pub clusters: u32,
    /// The most callers that watch events or wait for a job.
    pub watchers: usize,
    /// The interval of keep-alive comments.
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
            buffer_bytes: 128 * 1024 * 1024,
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

/// The router's state: its dependencies, and what is cached between requests.
#[derive(Clone)]
pub(crate) struct App(Arc<Shared>);

pub(crate) struct Shared {
    outside: ApiState,
    pub(crate) job_reads: JobReads,
    pub(crate) tokens: TokenCache,
    /// Checks signed tokens; none if they are not accepted.
    pub(crate) jwt: Option<Jwt>,
    pulses: Remembered<Pulses>,
    partitions: Remembered<Partitions>,
    pub(crate) log_reads: LogReads,
    /// The permits to follow a log.
    pub(crate) followers: Arc<Semaphore>,
    /// The permits to watch events or wait.
    pub(crate) watchers: Arc<Semaphore>,
    /// The callers' rates; none without a limit.
    pub(crate) rates: Option<Rates>,
    /// The memory of large bodies and answers.
    pub(crate) buffers: Buffers,
    /// The permits to make a page of a list.
    pages: Semaphore,
}

/// The most pages of lists that are made at a time. A page of large jobs takes 26 MB until it is an answer, whose memory is
/// counted. The database's other connections are left for small answers.
const PAGES: usize = 4;

/// When each cluster last answered a poll.
pub(crate) type Pulses = HashMap<ClusterName, Pulse>;
/// The partitions that each cluster last reported.
pub(crate) type Partitions = HashMap<ClusterName, KnownPartitions>;

impl App {
    pub(crate) fn new(outside: ApiState) -> Self {
        let Limits { log_answer, log_reads, log_followers, .. } = outside.limits;
        let known_jobs = Arc::new(KnownJobs::new(outside.store.clone()));
        Self(Arc::new(Shared {
            job_reads: JobReads::new(outside.errands.clone(), move |ids| {
                let known_jobs = Arc::clone(&known_jobs);
                Box::pin(async move { known_jobs.read(ids).await })
            }),
            tokens: TokenCache::new(outside.limits.token_memory),
            jwt: outside.jwt.clone().map(|(terms, keys)| Jwt::new(terms, keys)),
            // Much less than any poll interval.
            pulses: Remembered::new(Duration::from_millis(500)),
            // Every submitted job is checked against them, and they change every few minutes.
            partitions: Remembered::new(Duration::from_secs(1)),
            log_reads: LogReads::new(Arc::clone(&outside.logs), log_answer, log_reads),
            followers: Arc::new(Semaphore::new(log_followers)),
            watchers: Arc::new(Semaphore::new(outside.limits.watchers)),
            rates: outside.limits.rate.map(Rates::new),
            buffers: Buffers::new(outside.limits.buffer_bytes),
            pages: Semaphore::new(PAGES),
            outside,
        }))
    }

    /// Waits for the turn to make a page of a list. The request's time limit ends the wait.
    pub(crate) async fn page_turn(&self) -> Option<SemaphorePermit<'_>> {
        self.pages.acquire().await.ok()
    }

    pub(crate) async fn pulses(&self) -> Result<Arc<Pulses>, StoreError> {
        self.pulses.get(self.store.pulses()).await
    }

    pub(crate) async fn partitions(&self) -> Result<Arc<Partitions>, StoreError> {
        self.partitions.get(self.store.partitions()).await
    }
}

impl Deref for App {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.0
    }
}

impl Deref for Shared {
    type Target = ApiState;

    fn deref(&self) -> &ApiState {
        &self.outside
    }
}

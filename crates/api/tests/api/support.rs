//! A service to call, with a clock, ids and a cluster's logs in the test's hands.

use std::{sync::Arc, time::Duration};

use api::{ApiState, AuthMode, Feed, JwtTerms, KeySource, Limits};
use axum::Router;
use chrono::DateTime;
use domain::{Clock, ContainerImages, Owner, Timestamp};
use metrics_exporter_prometheus::PrometheusBuilder;
use persistence::{NewToken, Scopes, Sealer, Store};
use sha2::{Digest, Sha256};
use sqlx::{PgPool, postgres::PgPoolOptions};
use testkit::{CountingIds, HandClock};
use tokio::task::JoinSet;
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use uuid::Uuid;

mod answer;
mod clusters;
mod events;
mod fakes;
mod issuer;
mod requests;
mod worker_steps;

pub(crate) use answer::Answer;
pub(crate) use clusters::{FakeKeeper, FakeLinks, FakeOps, cluster};
pub(crate) use events::{Events, Told};
pub(crate) use fakes::{FakeLogs, Loops};
pub(crate) use issuer::{Issuer, claims};

/// Whoever is told of a change only by the clock is told too late for any test.
const NEVER: Duration = Duration::from_hours(1);

pub(crate) struct TestApi {
    router: Router,
    /// Whether it serves everything that the document has.
    is_whole: bool,
    /// What runs beside the answers, until this is dropped.
    tasks: JoinSet<()>,
    pub(crate) store: Store,
    pub(crate) pool: PgPool,
    pub(crate) clock: Arc<HandClock>,
    pub(crate) logs: Arc<FakeLogs>,
    pub(crate) loops: Arc<Loops>,
    pub(crate) links: Arc<FakeLinks>,
    pub(crate) ops: Arc<FakeOps>,
    pub(crate) keeper: Arc<FakeKeeper>,
    pub(crate) stop: CancellationToken,
}

/// One network has an image, the others have none.
fn container_images() -> ContainerImages {
    let dino = ("dino".to_owned(), "registry.example/tao/dino:1".parse().unwrap());
    ContainerImages { by_network: [dino].into(), default: None }
}

impl TestApi {
    /// Over a database, everybody allowed.
    pub(crate) fn new(pool: PgPool) -> Self {
        Self::with(pool, AuthMode::Disabled, Limits::default())
    }

    /// Over a database, tokens needed.
    pub(crate) fn guarded(pool: PgPool) -> Self {
        Self::with(pool, AuthMode::Tokens, Limits::default())
    }

    /// Over a database, tokens needed, those of an issuer among them.
    pub(crate) fn trusting(pool: PgPool, issuer: &Arc<Issuer>, limits: Limits) -> Self {
        let jwt = Some((issuer::terms(), Arc::clone(issuer) as Arc<dyn KeySource>));
        Self::routed(pool, AuthMode::Tokens, jwt, limits, NEVER, &[], api::router)
    }

    /// Over a database, with limits of its own.
    pub(crate) fn limited(pool: PgPool, limits: Limits) -> Self {
        Self::with(pool, AuthMode::Disabled, limits)
    }

    /// Only the service's own health, over a database.
    pub(crate) fn health_only(pool: PgPool) -> Self {
        let api =
            Self::routed(pool, AuthMode::Tokens, None, Limits::default(), NEVER, &[], api::health_router);
        Self { is_whole: false, ..api }
    }

    /// As it answers on connections beyond the limits, over a database.
    pub(crate) fn crowded(pool: PgPool) -> Self {
        let router = |state| api::probes_only(api::router(state));
        Self::routed(pool, AuthMode::Tokens, None, Limits::default(), NEVER, &[], router)
    }

    /// Over a database that nobody answers for.
    pub(crate) fn offline(auth: AuthMode) -> Self {
        Self::offline_with(auth, Limits::default())
    }

    pub(crate) fn offline_with(auth: AuthMode, limits: Limits) -> Self {
        let pool = PgPoolOptions::new()
            .acquire_timeout(Duration::from_millis(500))
            .connect_lazy("postgres://nobody@127.0.0.1:1/none")
            .unwrap();
        let mut api = Self::with(pool, auth, limits);
        // It could only say again and again what every test of this expects.
        api.tasks.abort_all();
        api
    }

    /// Over a database that says no word of changes, so that they have to be looked for.
    pub(crate) async fn unheard(pool: PgPool) -> Self {
        sqlx::raw_sql(
            "alter table jobs disable trigger jobs_notify_added_or_deleted, disable trigger jobs_notify_changed",
        )
        .execute(&pool)
        .await
        .unwrap();
        Self::routed(
            pool,
            AuthMode::Disabled,
            None,
            Limits::default(),
            Duration::from_millis(50),
            &[],
            api::router,
        )
    }

    pub(crate) fn with(pool: PgPool, auth: AuthMode, limits: Limits) -> Self {
        Self::routed(pool, auth, None, limits, NEVER, &[], api::router)
    }

    /// Over a database that nobody answers for, open to pages of some origins.
    pub(crate) fn open_to(origins: &[&str]) -> Self {
        let pool = PgPoolOptions::new().connect_lazy("postgres://nobody@127.0.0.1:1/none").unwrap();
        let mut api =
            Self::routed(pool, AuthMode::Disabled, None, Limits::default(), NEVER, origins, api::router);
        api.tasks.abort_all();
        api
    }

    fn routed(
        pool: PgPool,
        auth: AuthMode,
        jwt: Option<(JwtTerms, Arc<dyn KeySource>)>,
        limits: Limits,
        sweep: Duration,
        cors_origins: &[&str],
        router: fn(ApiState) -> Router,
    ) -> Self {
        let store = Store::from_pool(pool.clone(), Sealer::from_key([7; 32]));
        let clock = Arc::new(HandClock::at(DateTime::from_timestamp(1_790_000_000, 123_456_789).unwrap()));
        let logs = Arc::new(FakeLogs::default());
        let loops = Arc::new(Loops::default());
        let links = Arc::new(FakeLinks::default());
        let ops = Arc::new(FakeOps::default());
        let keeper = Arc::new(FakeKeeper::new(store.clone()));
        let stop = CancellationToken::new();
        let feed = Arc::new(Feed::new(store.clone(), clock.clone(), sweep));
        let mut tasks = JoinSet::new();
        let (reader, stopped) = (Arc::clone(&feed), stop.clone());
        tasks.spawn(async move { reader.run(stopped).await });
        let router = router(ApiState {
            store: store.clone(),
            clusters: keeper.clusters.clone(),
            keeper: keeper.clone(),
            container_images: Arc::new(container_images()),
            webhook_networks: Arc::default(),
            clock: clock.clone(),
            ids: Arc::new(CountingIds::default()),
            logs: logs.clone(),
            links: links.clone(),
            ops: ops.clone(),
            feed,
            auth,
            jwt,
            metrics: Some(PrometheusBuilder::new().build_recorder().handle()),
            readiness: loops.clone(),
            limits,
            cors_origins: cors_origins.iter().map(|origin| (*origin).to_owned()).collect(),
            stop: stop.clone(),
            errands: TaskTracker::new(),
        });
        Self { router, is_whole: true, tasks, store, pool, clock, logs, loops, links, ops, keeper, stop }
    }

    /// Stores a token; `scopes` as `read write`.
    pub(crate) async fn token(&self, text: &str, owner: &str, scopes: &str, expires_at: Option<Timestamp>) {
        let has = |scope| scopes.split(' ').any(|word| word == scope);
        let token = NewToken {
            id: Uuid::from_u128(u128::from(u64::from_be_bytes(
                *Sha256::digest(text).first_chunk::<8>().unwrap(),
            ))),
            name: text.to_owned(),
            owner: Owner::new(owner),
            hash: Sha256::digest(text).into(),
            scopes: Scopes { read: has("read"), write: has("write"), admin: has("admin") },
            created_at: self.clock.now(),
            expires_at,
            webhook: None,
        };
        self.store.create_token(&token).await.unwrap();
    }
}

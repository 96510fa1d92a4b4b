//! A service to call, with a clock, ids and a cluster's logs in the test's hands.

use std::{sync::Arc, time::Duration};

use api::{ApiState, AuthMode, Feed, JwtTerms, KeySource, Limits};
use axum::{
    Router,
    body::Body,
    http::{HeaderMap, Method, Request, StatusCode, header, request},
    response::Response,
};
use chrono::DateTime;
use domain::{Clock, ContainerImages, Job, ObservedChange, Owner, Phase, Source, Status, Timestamp};
use http_body_util::BodyExt;
use metrics_exporter_prometheus::PrometheusBuilder;
use persistence::{
    DueJobs as _, Lane, LeaseTerms, NewToken, Observations as _, PollResult, PollTurns as _, Scopes, Sealer,
    StepRecord, StepRecords as _, Store, Viewer,
};
use serde_json::Value;
use sha2::{Digest, Sha256};
use sqlx::{PgPool, postgres::PgPoolOptions};
use testkit::{CountingIds, HandClock};
use tokio::task::JoinSet;
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tower::ServiceExt;
use uuid::Uuid;

use crate::promised;

mod answer;
mod clusters;
mod events;
mod fakes;
mod issuer;

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

    /// The answer, which is one that the document has.
    pub(crate) async fn answer(&self, request: Request<Body>) -> Response {
        let (method, uri) = (request.method().clone(), request.uri().clone());
        let response = self.router.clone().oneshot(request).await.unwrap();
        if self.is_whole {
            promised::is_kept(&method, uri.path(), response.status(), response.headers());
        }
        response
    }

    pub(crate) async fn send(&self, request: Request<Body>) -> Answer {
        self.read(request, |_| true).await
    }

    /// What is said of a request, and not what may go on and on after it: the body of a problem only.
    pub(crate) async fn verdict(&self, request: Request<Body>) -> Answer {
        self.read(request, answer::is_problem).await
    }

    async fn read(&self, request: Request<Body>, is_read: fn(&HeaderMap) -> bool) -> Answer {
        let (method, uri) = (request.method().clone(), request.uri().clone());
        let (head, body) = self.answer(request).await.into_parts();
        let bytes = if is_read(&head.headers) {
            body.collect().await.unwrap().to_bytes().to_vec()
        } else {
            Vec::new()
        };
        let answer = Answer { status: head.status, headers: head.headers, bytes };
        if self.is_whole && answer::is_problem(&answer.headers) {
            promised::has_problem(&method, uri.path(), answer.status, &answer.json());
        }
        answer
    }

    /// An answer that goes on and on.
    pub(crate) async fn events(&self, path: &str, last: Option<&str>) -> Events {
        self.stream(Request::get(path), last).await
    }

    /// The same of somebody who shows a token.
    pub(crate) async fn events_as(&self, token: &str, path: &str, last: Option<&str>) -> Events {
        let request = Request::get(path).header(header::AUTHORIZATION, format!("Bearer {token}"));
        self.stream(request, last).await
    }

    async fn stream(&self, mut request: request::Builder, last: Option<&str>) -> Events {
        request = request.header(header::ACCEPT, "text/event-stream");
        if let Some(last) = last {
            request = request.header("last-event-id", last);
        }
        let response = self.answer(request.body(Body::empty()).unwrap()).await;
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(response.headers()[header::CONTENT_TYPE], "text/event-stream");
        Events::new(response.into_body())
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send(Request::get(path).body(Body::empty()).unwrap()).await
    }

    pub(crate) async fn get_as(&self, token: &str, path: &str) -> Answer {
        self.call_as(token, Method::GET, path, None).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Answer {
        self.post_text(path, &body.to_string()).await
    }

    pub(crate) async fn post_text(&self, path: &str, body: &str) -> Answer {
        let request = Request::post(path).header(header::CONTENT_TYPE, "application/json");
        self.send(request.body(Body::from(body.to_owned())).unwrap()).await
    }

    pub(crate) async fn call_as(
        &self,
        token: &str,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Answer {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::AUTHORIZATION, format!("Bearer {token}"))
            .header(header::CONTENT_TYPE, "application/json");
        let body = body.map_or_else(Body::empty, |body| Body::from(body.to_string()));
        self.send(request.body(body).unwrap()).await
    }

    /// Sends a job and returns its id.
    pub(crate) async fn job(&self, body: &Value) -> String {
        let answer = self.post("/jobs", body).await;
        assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.text());
        answer.json()["id"].as_str().unwrap().to_owned()
    }

    /// Does what a worker does: one step of the job, which changes it.
    pub(crate) async fn step(&self, id: &str, due_at: Option<Timestamp>, change: impl FnOnce(&mut Job)) {
        let terms = LeaseTerms { duration: Duration::from_mins(1), limit: 10 };
        let dgx = "dgx".parse().unwrap();
        let mut lease = self.store.acquire_due(&dgx, Lane::Submit, Uuid::from_u128(9), terms).await.unwrap();
        if lease.jobs.is_empty() {
            lease = self.store.acquire_due(&dgx, Lane::Follow, Uuid::from_u128(9), terms).await.unwrap();
        }
        let mut job = lease.jobs.iter().find(|job| job.id.to_string() == id).unwrap().clone();
        change(&mut job);
        let step = StepRecord { job, due_at };
        assert_eq!(self.store.record_steps(&lease, &[step], self.clock.now()).await.unwrap().len(), 1);
    }

    /// Slurm has accepted the job.
    pub(crate) async fn submit(&self, id: &str, slurm_id: u32, nodes: &str) {
        let now = self.clock.now();
        // Due in the past of the database's own clock, for the step after this one.
        self.step(id, Some(DateTime::UNIX_EPOCH), |job| {
            let mut attempt = job.new_attempt(cluster().base_dir, now).unwrap();
            attempt.slurm_id = slurm::SlurmJobId::new(slurm_id);
            attempt.submitted_at = Some(now);
            job.begin_attempt(attempt);
            job.run.nodes = Some(nodes.to_owned());
            job.submitted_at = Some(now);
            job.observed_at = Some(now);
            job.phase = Phase::InQueue;
            job.source = Source::Squeue;
        })
        .await;
    }

    /// A poll has seen it wait in the queue since an hour ago, for the reason.
    pub(crate) async fn see_waiting(&self, id: &str, reason: &str, estimated_start: Option<Timestamp>) {
        let since = self.clock.now() - chrono::TimeDelta::hours(1);
        self.see(id, |job| {
            job.pending_reason = Some(reason.to_owned());
            job.run.state = Some(slurm::SlurmState::Pending);
            job.run.queued_since = Some(since);
            job.run.estimated_start = estimated_start;
        })
        .await;
    }

    /// Does what a poll does: it changes what is known of the job.
    pub(crate) async fn see(&self, id: &str, change: impl FnOnce(&mut Job)) {
        let (now, dgx) = (self.clock.now(), "dgx".parse().unwrap());
        let id = domain::JobId::new(id.parse().unwrap());
        let mut job = self.store.find_job(id, &Viewer::All).await.unwrap().unwrap();
        job.observed_at = Some(now);
        change(&mut job);
        let lease =
            self.store.acquire_poll(&dgx, Uuid::from_u128(8), Duration::from_mins(1)).await.unwrap().unwrap();
        let seen = [ObservedChange { job, step_due: false }];
        assert_eq!(self.store.record_observations(&lease, &seen, now).await.unwrap(), 1);
        self.store.record_poll(&lease, PollResult::Idle, Duration::ZERO, now).await.unwrap();
    }

    /// An attempt failed, and another will follow.
    pub(crate) async fn fail(&self, id: &str, slurm_id: u32) {
        let now = self.clock.now();
        // Due in the past of the database's own clock.
        self.step(id, Some(DateTime::UNIX_EPOCH), |job| {
            let mut attempt = job.new_attempt(cluster().base_dir, now).unwrap();
            attempt.slurm_id = slurm::SlurmJobId::new(slurm_id);
            attempt.submitted_at = Some(now);
            job.attempt = Some(attempt);
            job.retry_count += 1;
            job.phase = Phase::RetryWait;
        })
        .await;
    }

    /// The job has failed.
    pub(crate) async fn error(&self, id: &str) {
        let now = self.clock.now();
        self.step(id, None, |job| {
            job.status = Status::Error;
            job.phase = Phase::Ended;
            job.finished_at = Some(now);
        })
        .await;
    }

    /// The job is done.
    pub(crate) async fn end(&self, id: &str) {
        let now = self.clock.now();
        self.step(id, None, |job| {
            job.status = Status::Done;
            job.phase = Phase::Ended;
            job.finished_at = Some(now);
        })
        .await;
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

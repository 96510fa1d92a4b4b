//! The two stores, and the calls of a test that a worker does not make.

use std::{sync::Arc, time::Duration};

use chrono::TimeDelta;
use domain::{Clock, ClusterName, Job, JobId, Secrets, Timestamp};
use persistence::{Inserted, JobEvent, NewJob, Requested, Retry, Sealer, Store, Viewer, WorkStore};
use sqlx::PgPool;
use testkit::{HandClock, MemoryStore};

/// What an owner may request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Request {
    Cancel,
    Pause,
    Resume,
    Retry,
    Delete { artifacts: bool },
}

/// A store, its callers, and a way to let time pass.
pub(crate) trait Side {
    type Store: WorkStore;

    fn store(&self) -> &Self::Store;
    async fn pass(&self, time: TimeDelta);
    async fn insert(&self, new: &NewJob) -> Inserted;
    async fn find(&self, id: JobId) -> Option<Job>;
    async fn request(&self, id: JobId, request: Request, now: Timestamp) -> Requested;
    async fn events(&self, id: JobId) -> Vec<JobEvent>;
    /// Lets a name mean this cluster, or no cluster.
    async fn set_incarnation(&self, name: &ClusterName, incarnation: Option<i64>);
}

pub(crate) fn secrets() -> Secrets {
    let mut secrets = Secrets::default();
    secrets.env.insert("HF_TOKEN".parse().unwrap(), "hunter2".to_owned().into());
    secrets
}

/// The real store. Its clock cannot be moved, so the stored times are moved.
pub(crate) struct Postgres {
    pool: PgPool,
    store: Store,
}

impl Postgres {
    pub(crate) fn new(pool: PgPool) -> Self {
        Self { store: Store::from_pool(pool.clone(), Sealer::from_key([7; 32])), pool }
    }

    pub(crate) async fn empty(pool: &PgPool) {
        let tables = "jobs, deleted_jobs, cluster_polls, cached_images, cluster_partitions";
        sqlx::raw_sql(sqlx::AssertSqlSafe(format!("truncate {tables} cascade"))).execute(pool).await.unwrap();
    }
}

impl Side for Postgres {
    type Store = Store;

    fn store(&self) -> &Store {
        &self.store
    }

    async fn pass(&self, time: TimeDelta) {
        let time = format!("interval '{} milliseconds'", time.num_milliseconds());
        for table in ["jobs", "cluster_polls"] {
            let moved = format!(
                "update {table} set due_at = due_at - {time}, lease_expires_at = lease_expires_at - {time}"
            );
            sqlx::raw_sql(sqlx::AssertSqlSafe(moved)).execute(&self.pool).await.unwrap();
        }
        let moved = format!("update cluster_partitions set due_at = due_at - {time}");
        sqlx::raw_sql(sqlx::AssertSqlSafe(moved)).execute(&self.pool).await.unwrap();
    }

    async fn insert(&self, new: &NewJob) -> Inserted {
        self.store.insert_job(new).await.unwrap()
    }

    async fn find(&self, id: JobId) -> Option<Job> {
        self.store.find_job(id, &Viewer::All).await.unwrap()
    }

    async fn request(&self, id: JobId, request: Request, now: Timestamp) -> Requested {
        match request {
            Request::Cancel => self.store.request_cancel(id, &Viewer::All, now).await,
            Request::Pause => self.store.request_pause(id, &Viewer::All, now).await,
            Request::Resume => self.store.request_resume(id, &Viewer::All, None, now).await,
            Request::Retry => {
                self.store
                    .request_retry(
                        id,
                        &Viewer::All,
                        &Retry { secrets: &secrets(), incarnation: None, array: None },
                        None,
                        now,
                    )
                    .await
            }
            Request::Delete { artifacts } => {
                self.store.request_delete(id, &Viewer::All, artifacts, None, now).await
            }
        }
        .unwrap()
    }

    async fn events(&self, id: JobId) -> Vec<JobEvent> {
        self.store.place_events().await.unwrap();
        let events = self.store.job_feed(id, 0, 0, &[], 10_000).await.unwrap();
        events.into_iter().map(|of_feed| of_feed.event).collect()
    }

    async fn set_incarnation(&self, name: &ClusterName, incarnation: Option<i64>) {
        let name = name.as_str();
        let gone = format!("delete from clusters where name = '{name}'");
        let come = incarnation.map(|incarnation| {
            format!(
                "insert into clusters (name, settings, incarnation, login, hosts, base_dir, created_by, changed_by)
                 values ('{name}', '{{}}', {incarnation}, 'tao', '{{login1}}', '/lustre', 'a', 'a')"
            )
        });
        for statement in [gone].into_iter().chain(come) {
            sqlx::raw_sql(sqlx::AssertSqlSafe(statement)).execute(&self.pool).await.unwrap();
        }
    }
}

/// The store in memory.
pub(crate) struct Memory {
    clock: Arc<HandClock>,
    store: MemoryStore,
}

impl Memory {
    pub(crate) fn new() -> Self {
        let clock = Arc::new(HandClock::new());
        let shared: Arc<dyn Clock> = Arc::<HandClock>::clone(&clock);
        Self { clock, store: MemoryStore::new(shared) }
    }
}

impl Side for Memory {
    type Store = MemoryStore;

    fn store(&self) -> &MemoryStore {
        &self.store
    }

    async fn pass(&self, time: TimeDelta) {
        self.clock.advance(time);
    }

    async fn insert(&self, new: &NewJob) -> Inserted {
        self.store.insert_job(new)
    }

    async fn find(&self, id: JobId) -> Option<Job> {
        self.store.find_job(id)
    }

    async fn request(&self, id: JobId, request: Request, now: Timestamp) -> Requested {
        match request {
            Request::Cancel => self.store.request_cancel(id, now),
            Request::Pause => self.store.request_pause(id, now),
            Request::Resume => self.store.request_resume(id, now),
            Request::Retry => self.store.request_retry(id, &secrets(), None, now),
            Request::Delete { artifacts } => self.store.request_delete(id, artifacts, now),
        }
    }

    async fn events(&self, id: JobId) -> Vec<JobEvent> {
        self.store.events_of(id)
    }

    async fn set_incarnation(&self, name: &ClusterName, incarnation: Option<i64>) {
        self.store.set_incarnation(name, incarnation);
    }
}

/// How long a lease lasts: between the steps in which time passes.
pub(crate) const LEASE: Duration = Duration::from_secs(35);

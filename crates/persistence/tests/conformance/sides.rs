//! The two stores, and what a test does with each beside what a worker does.

use std::{sync::Arc, time::Duration};

use chrono::TimeDelta;
use domain::{Clock, ClusterName, Job, JobId, Secrets, Timestamp};
use persistence::{Inserted, JobEvent, NewJob, Requested, Sealer, Store, Viewer, WorkStore};
use sqlx::PgPool;
use testkit::{HandClock, MemoryStore};

/// What an owner may wish for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wish {
    Cancel,
    Pause,
    Resume,
    Retry,
    Delete { artifacts: bool },
}

/// A store with its callers, and a way to let its time pass.
pub(crate) trait Side {
    type Store: WorkStore;

    fn store(&self) -> &Self::Store;
    async fn pass(&self, time: TimeDelta);
    async fn insert(&self, new: &NewJob) -> Inserted;
    async fn find(&self, id: JobId) -> Option<Job>;
    async fn wish(&self, id: JobId, wish: Wish, now: Timestamp) -> Requested;
    async fn events(&self, id: JobId) -> Vec<JobEvent>;
    /// Lets a name mean this cluster, or none.
    async fn mean(&self, name: &ClusterName, incarnation: Option<i64>);
}

pub(crate) fn secrets() -> Secrets {
    let mut secrets = Secrets::default();
    secrets.env.insert("HF_TOKEN".parse().unwrap(), "hunter2".to_owned().into());
    secrets
}

/// The real one. Its clock cannot be moved: what it has written down is moved instead.
pub(crate) struct Postgres {
    pool: PgPool,
    store: Store,
}

impl Postgres {
    pub(crate) fn new(pool: PgPool) -> Self {
        Self { store: Store::from_pool(pool.clone(), Sealer::from_key([7; 32])), pool }
    }

    pub(crate) async fn empty(pool: &PgPool) {
        let tables = "jobs, deleted_jobs, cluster_polls, image_conversions, cluster_partitions";
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
        for table in ["jobs", "cluster_polls", "image_conversions"] {
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

    async fn wish(&self, id: JobId, wish: Wish, now: Timestamp) -> Requested {
        match wish {
            Wish::Cancel => self.store.request_cancel(id, &Viewer::All, now).await,
            Wish::Pause => self.store.request_pause(id, &Viewer::All, now).await,
            Wish::Resume => self.store.request_resume(id, &Viewer::All, None, now).await,
            Wish::Retry => self.store.request_retry(id, &Viewer::All, &secrets(), None, None, now).await,
            Wish::Delete { artifacts } => {
                self.store.request_delete(id, &Viewer::All, artifacts, None, now).await
            }
        }
        .unwrap()
    }

    async fn events(&self, id: JobId) -> Vec<JobEvent> {
        self.store.events(id, 0, &[], 10_000).await.unwrap()
    }

    async fn mean(&self, name: &ClusterName, incarnation: Option<i64>) {
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

/// The one without a database.
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

    async fn wish(&self, id: JobId, wish: Wish, now: Timestamp) -> Requested {
        match wish {
            Wish::Cancel => self.store.request_cancel(id, now),
            Wish::Pause => self.store.request_pause(id, now),
            Wish::Resume => self.store.request_resume(id, now),
            Wish::Retry => self.store.request_retry(id, &secrets(), now),
            Wish::Delete { artifacts } => self.store.request_delete(id, artifacts, now),
        }
    }

    async fn events(&self, id: JobId) -> Vec<JobEvent> {
        self.store.events_of(id)
    }

    async fn mean(&self, name: &ClusterName, incarnation: Option<i64>) {
        self.store.set_incarnation(name, incarnation);
    }
}

/// How long a lease lasts here: between the times that pass.
pub(crate) const LEASE: Duration = Duration::from_secs(35);

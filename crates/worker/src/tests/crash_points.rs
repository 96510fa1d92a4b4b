//! A worker that is stopped at each boundary of its work, one after the other, and another that takes over.
//!
//! The boundaries come from the code: a first run of a life records every call of the two ports, and behind each of them,
//! which is before the next, the worker is stopped in a run of its own. Whatever it had begun by then, the life ends as it would have, and
//! nothing is submitted twice.

use std::sync::{Mutex, PoisonError};

use domain::DesiredState;
use remote::ImageFile;
use tokio::sync::Notify;

use super::{
    ports::{Gate, GatedLink, GatedStore, PortError},
    *,
};

/// What happens to a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Life {
    Plain,
    Canceled,
    PausedAndResumed,
    Retried,
    Converted,
    Deleted,
}

/// Counts the boundaries that a worker passes, and stops it at one of them.
#[derive(Debug, Clone, Default)]
struct Boundaries {
    passed: Arc<Mutex<Vec<String>>>,
    dies_at: Option<usize>,
    died: Arc<Notify>,
}

impl Boundaries {
    fn until(dies_at: usize) -> Self {
        Self { dies_at: Some(dies_at), ..Self::default() }
    }

    fn passed(&self) -> Vec<String> {
        self.passed.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn pass_one(&self, name: String) {
        let number = {
            let mut passed = self.passed.lock().unwrap_or_else(PoisonError::into_inner);
            passed.push(name);
            passed.len() - 1
        };
        if self.dies_at.is_some_and(|at| number >= at) {
            self.died.notify_one();
            std::future::pending::<()>().await;
        }
    }
}

impl Gate for Boundaries {
    async fn pass<T: Send, E: PortError>(
        &self,
        call: &'static str,
        work: impl Future<Output = Result<T, E>> + Send,
    ) -> Result<T, E> {
        let is_first = self.passed.lock().unwrap_or_else(PoisonError::into_inner).is_empty();
        if is_first {
            self.pass_one(format!("before {call}")).await;
        }
        let result = work.await;
        self.pass_one(format!("behind {call}")).await;
        result
    }
}

type Link = GatedLink<FakeLink, Boundaries>;

/// One life of one job.
struct Run {
    life: Life,
    pool: PgPool,
    fake: Arc<FakeCluster>,
    clock: Arc<HandClock>,
    ids: Arc<CountingIds>,
    store: Store,
    job: Job,
    wishes: usize,
}

/// More rounds than any life needs, with time to prove an absence in them.
const ROUNDS: usize = 40;

impl Run {
    /// Begins a life in an empty database.
    async fn begin(pool: &PgPool, life: Life) -> Self {
        let clean = "truncate jobs, deleted_jobs, cluster_polls, cached_images cascade";
        sqlx::raw_sql(clean).execute(pool).await.unwrap();
        let clock = Arc::new(HandClock::new());
        let mut job = Job { created_at: clock.now(), ..command_job(1) };
        if life == Life::Converted {
            job.spec.image = Some("registry.example/a/b:1".parse().unwrap());
        }
        let run = Self {
            life,
            pool: pool.clone(),
            fake: Arc::new(FakeCluster::new()),
            clock,
            ids: Arc::new(CountingIds::default()),
            store: Store::from_pool(pool.clone(), Sealer::from_key([7; 32])),
            job,
            wishes: 0,
        };
        let mut secrets = Secrets::default();
        secrets.env.insert("HF_TOKEN".parse().unwrap(), "hunter2".to_owned().into());
        let new = NewJob { job: run.job.clone(), secrets, request_hash: [0; 32] };
        assert!(matches!(run.store.insert_job(&new).await.unwrap(), Inserted::Created(_)));
        run
    }

    fn worker(&self, gate: &Boundaries) -> Worker<Link, GatedStore<Store, Boundaries>> {
        let link = GatedLink { link: FakeLink(Arc::clone(&self.fake)), gate: gate.clone() };
        let pace = Pace { min: Duration::ZERO, max: Duration::ZERO };
        let settings = WorkerSettings {
            lease: Duration::from_secs(30),
            batch: 64,
            graces: Graces::default(),
            partitions_every: Duration::from_mins(5),
        };
        let store = GatedStore { store: self.store.clone(), gate: gate.clone() };
        let target = ClusterTarget { cluster: cluster(), incarnation: None, link, pace };
        let (clock, ids) = (Arc::<HandClock>::clone(&self.clock), Arc::<CountingIds>::clone(&self.ids));
        Worker::new(store, vec![target], settings, clock, ids)
    }

    /// The whole life, by a worker that is stopped at a boundary and others that are not.
    async fn live(mut self, gate: Boundaries) -> Self {
        let mut gate = gate;
        for _ in 0..ROUNDS {
            let worker = self.worker(&gate);
            tokio::select! {
                biased;
                () = gate.died.notified() => gate = Boundaries::default(),
                () = Box::pin(round(&worker)) => {}
            }
            if self.is_over().await {
                return self;
            }
            self.let_time_pass().await;
            self.react().await;
        }
        let job = self.find().await.unwrap();
        panic!("it is stuck: {} {} {}", job.status, job.phase, job.message);
    }

    /// Whoever held a lease is dead by now, and what was put off is due.
    async fn let_time_pass(&self) {
        self.clock.advance(TimeDelta::seconds(30));
        for table in ["jobs", "cluster_polls"] {
            let passed = format!(
                "update {table} set due_at = case when due_at is null then null else now() - interval '1 second' end,
                     lease_expires_at = lease_expires_at - interval '1 hour'"
            );
            sqlx::raw_sql(sqlx::AssertSqlSafe(passed)).execute(&self.pool).await.unwrap();
        }
    }

    async fn find(&self) -> Option<Job> {
        self.store.find_job(self.job.id, &Viewer::All).await.unwrap()
    }

    async fn is_over(&self) -> bool {
        if self.life == Life::Deleted {
            let left: i64 =
                sqlx::query_scalar("select count(*) from jobs").fetch_one(&self.pool).await.unwrap();
            return left == 0;
        }
        self.find().await.is_some_and(|job| job.phase == Phase::Ended)
    }

    /// What Slurm and the job's owner do, from where the job stands.
    async fn react(&mut self) {
        self.convert().await;
        let Some(job) = self.find().await else { return };
        let now = self.clock.now();
        let name = job.attempt.as_ref().map_or_else(String::new, |attempt| attempt.token.to_string());
        match (self.life, job.phase) {
            (_, Phase::InQueue) if job.desired == DesiredState::Run => self.fake.run_on(&name, "node01"),
            (Life::Canceled, Phase::Running) if self.wishes == 0 => {
                self.wishes = 1;
                self.store.request_cancel(job.id, &Viewer::All, now).await.unwrap();
            }
            (Life::PausedAndResumed, Phase::Running) if self.wishes == 0 => {
                self.wishes = 1;
                self.store.request_pause(job.id, &Viewer::All, now).await.unwrap();
            }
            (Life::PausedAndResumed, Phase::Paused) => {
                self.store.request_resume(job.id, &Viewer::All, None, now).await.unwrap();
            }
            (Life::Retried, Phase::Running) if !name.ends_with("-r2") => {
                self.fake.set_state(&name, &SlurmState::NodeFail, None);
            }
            (Life::Deleted, Phase::Ended) => {
                self.store.request_delete(job.id, &Viewer::All, true, None, now).await.unwrap();
            }
            (_, Phase::Running) if job.desired == DesiredState::Run => {
                self.fake.set_state(&name, &SlurmState::Completed, Some(0));
            }
            _ => {}
        }
    }

    /// A conversion that Slurm has makes its image.
    async fn convert(&self) {
        let token: Option<String> = sqlx::query_scalar(
            "select a.token from slurm_metadata a join jobs j on j.id = a.job_id where j.owner = '' and a.slurm_job_id is not null
             order by a.attempt desc limit 1",
        )
        .fetch_optional(&self.pool)
        .await
        .unwrap();
        if let (Some(name), Some(image)) = (token, &self.job.spec.image) {
            self.fake.set_state(&name, &SlurmState::Completed, Some(0));
            let image: domain::ImageRef = image.to_string().parse().unwrap();
            let path = cluster().images.cache_dir.join(&image.cache_file_name()).unwrap();
            self.fake.put_image(path.as_str(), ImageFile::Whole);
        }
    }

    /// How it ended, and that nothing of it was submitted twice or has left a secret.
    async fn audit(&self, at: &str) {
        let id = self.job.id;
        let tokens = [format!("tao-job-{id}"), format!("tao-job-{id}-r2"), format!("tao-job-{id}-r3")];
        let submitted = tokens.each_ref().map(|token| self.fake.submissions(token));
        let attempts = match self.life {
            Life::PausedAndResumed | Life::Retried => [1, 1, 0],
            Life::Plain | Life::Canceled | Life::Converted | Life::Deleted => [1, 0, 0],
        };
        assert_eq!(submitted, attempts, "{:?}, {at}: how often each attempt was submitted", self.life);
        assert!(self.fake.removed(&format!("/lustre/users/tao/env/{id}.sh")), "{:?}, {at}", self.life);
        if self.life == Life::Deleted {
            assert!(self.fake.purged(id.get()), "{at}: its files are still there");
            return;
        }
        let job = self.find().await.unwrap();
        let end = if self.life == Life::Canceled { Status::Canceled } else { Status::Done };
        assert_eq!(job.status, end, "{:?}, {at}: {}", self.life, job.message);
    }
}

/// All lanes once, as often as there is something to do.
async fn round(worker: &Worker<Link, GatedStore<Store, Boundaries>>) {
    let runtime = worker.runtimes().next().unwrap();
    for lane in [Lane::Submit, Lane::Follow] {
        Box::pin(worker.take_steps(&runtime, lane, None)).await.unwrap();
    }
    worker.poll_if_due(&runtime, Duration::ZERO).await.unwrap();
}

async fn at_every_boundary(pool: PgPool, life: Life) {
    let gate = Boundaries::default();
    Box::pin(Run::begin(&pool, life).await.live(gate.clone())).await.audit("undisturbed").await;
    let boundaries = gate.passed();
    assert!(boundaries.len() > 25, "{} boundaries", boundaries.len());
    for (number, name) in boundaries.iter().enumerate() {
        let run = Box::pin(Run::begin(&pool, life).await.live(Boundaries::until(number))).await;
        run.audit(&format!("stopped at boundary {number}, {name}")).await;
    }
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_plain_life_survives_a_stop_at_every_boundary(pool: PgPool) {
    Box::pin(at_every_boundary(pool, Life::Plain)).await;
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_cancellation_survives_a_stop_at_every_boundary(pool: PgPool) {
    Box::pin(at_every_boundary(pool, Life::Canceled)).await;
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_pause_and_its_end_survive_a_stop_at_every_boundary(pool: PgPool) {
    Box::pin(at_every_boundary(pool, Life::PausedAndResumed)).await;
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn another_attempt_survives_a_stop_at_every_boundary(pool: PgPool) {
    Box::pin(at_every_boundary(pool, Life::Retried)).await;
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_conversion_survives_a_stop_at_every_boundary(pool: PgPool) {
    Box::pin(at_every_boundary(pool, Life::Converted)).await;
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_deletion_survives_a_stop_at_every_boundary(pool: PgPool) {
    Box::pin(at_every_boundary(pool, Life::Deleted)).await;
}

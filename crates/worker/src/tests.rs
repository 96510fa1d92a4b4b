//! The loop against the fake cluster and a real Postgres: one step or poll at a time, by hand.

use std::{sync::Arc, time::Duration};

use chrono::TimeDelta;
use domain::{Clock, Cluster, Graces, Job, JobId, Phase, Secrets, Status};
use persistence::{Inserted, Lane, NewJob, Sealer, Store, Viewer};
use remote::RemoteCommand;
use slurm::{FailureClass, SlurmJobId, SlurmState};
use sqlx::PgPool;
use testkit::{CountingIds, FakeCluster, Fault, HandClock, Unanswered, cluster, command_job};

mod again;
mod allocations;
mod clusters;
mod crash_points;
mod endless;
mod exclusions;
mod images;
mod leases;
mod log_lines;
mod orphans;
mod partitions;
mod ports;
mod quiet;
mod rpc_budget;
mod simulation;
mod submitting;
mod wishes;

use crate::{
    ClusterLink, ClusterTarget, LinkError, Pace, WorkerSettings, cluster_runtime::Runtime, worker::Worker,
};

#[derive(Debug, Clone)]
struct FakeLink(Arc<FakeCluster>);

impl ClusterLink for FakeLink {
    async fn call<C: RemoteCommand>(&self, command: &C) -> Result<C::Output, LinkError> {
        self.0.call(command).map_err(|unanswered| match unanswered {
            Unanswered::NotSent => LinkError::NotSent { why: "no route to host".to_owned() },
            Unanswered::Lost => LinkError::Lost { why: "no trailer".to_owned() },
        })
    }

    fn out_of_reach(&self) -> Option<LinkError> {
        self.0.is_away().then(|| LinkError::NotSent { why: "no route to host".to_owned() })
    }
}

/// A worker whose every step is taken by the test.
struct Bench {
    worker: Worker<FakeLink>,
    runtime: Arc<Runtime<FakeLink>>,
    fake: Arc<FakeCluster>,
    clock: Arc<HandClock>,
    pool: PgPool,
}

impl Bench {
    fn new(pool: PgPool) -> Self {
        Self::of(pool, cluster())
    }

    fn of(pool: PgPool, cluster: Cluster) -> Self {
        let (fake, clock) = (Arc::new(FakeCluster::new()), Arc::new(HandClock::new()));
        let store = Store::from_pool(pool.clone(), Sealer::from_key([7; 32]));
        let pace = Pace { min: Duration::ZERO, max: Duration::ZERO };
        let target = ClusterTarget { cluster, incarnation: None, link: FakeLink(Arc::clone(&fake)), pace };
        let settings = WorkerSettings {
            lease: Duration::from_secs(30),
            batch: 64,
            graces: Graces::default(),
            partitions_every: Duration::from_mins(5),
        };
        let clock_of = Arc::clone(&clock);
        let worker = Worker::new(store, vec![target], settings, clock_of, Arc::new(CountingIds::default()));
        let runtime = worker.runtimes().next().unwrap();
        Self { worker, runtime, fake, clock, pool }
    }

    async fn accept(&self, job: Job) -> JobId {
        let mut secrets = Secrets::default();
        secrets.env.insert("HF_TOKEN".parse().unwrap(), "hunter2".to_owned().into());
        let new = NewJob { job: Job { created_at: self.clock.now(), ..job }, secrets, request_hash: [0; 32] };
        match self.worker.store.insert_job(&new).await.unwrap() {
            Inserted::Created(job) => job.id,
            other => panic!("{other:?}"),
        }
    }

    async fn step(&self, lane: Lane) -> usize {
        self.worker.take_steps(&self.runtime, lane, None).await.unwrap()
    }

    /// The database's clock runs by itself; what was put off by a pause is due now.
    async fn make_due(&self) {
        sqlx::raw_sql("update jobs set due_at = now() - interval '1 second' where due_at is not null")
            .execute(&self.pool)
            .await
            .unwrap();
    }

    async fn poll(&self) {
        self.worker.poll_if_due(&self.runtime, Duration::ZERO).await.unwrap();
    }

    async fn job(&self, id: JobId) -> Job {
        self.worker.store.find_job(id, &Viewer::All).await.unwrap().unwrap()
    }

    async fn status(&self, id: JobId) -> (Status, Phase) {
        let job = self.job(id).await;
        (job.status, job.phase)
    }

    /// Accepted, submitted, and seen in the queue.
    async fn submitted(&self) -> (JobId, String) {
        let id = self.accept(command_job(1)).await;
        self.step(Lane::Submit).await;
        (id, format!("tao-job-{id}"))
    }
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_job_goes_from_accepted_to_done(pool: PgPool) {
    let bench = Bench::new(pool);
    let (id, name) = bench.submitted().await;
    assert_eq!(bench.status(id).await, (Status::Pending, Phase::InQueue));
    bench.fake.set_state(&name, &SlurmState::Running, None);
    bench.poll().await;
    assert_eq!(bench.status(id).await, (Status::Running, Phase::Running));
    bench.fake.set_state(&name, &SlurmState::Completed, Some(0));
    bench.poll().await;
    assert_eq!(bench.status(id).await, (Status::Running, Phase::Finishing));
    bench.step(Lane::Follow).await;
    assert_eq!(bench.status(id).await, (Status::Done, Phase::Ended));
    assert!(bench.fake.removed(&format!("/lustre/users/tao/env/{id}.sh")));
    assert_eq!(
        bench.step(Lane::Submit).await + bench.step(Lane::Follow).await,
        0,
        "and nothing is due any more"
    );
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn many_jobs_are_one_submission_and_one_poll(pool: PgPool) {
    let bench = Bench::new(pool);
    for number in 1..=50 {
        bench.accept(command_job(number)).await;
    }
    assert_eq!(bench.step(Lane::Submit).await, 50);
    assert_eq!(bench.fake.commands(), 1);
    bench.poll().await;
    assert_eq!(bench.fake.commands(), 2);
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn an_idle_cluster_is_not_polled(pool: PgPool) {
    let bench = Bench::new(pool);
    bench.poll().await;
    assert_eq!(bench.fake.commands(), 0);
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_poll_without_a_proper_answer_changes_nothing(pool: PgPool) {
    let bench = Bench::new(pool);
    let (id, name) = bench.submitted().await;
    bench.fake.set_state(&name, &SlurmState::Running, None);
    bench.poll().await;
    for fault in [Fault::Unreachable, Fault::ReplyLost, Fault::SchedulerSilent] {
        bench.fake.lose(&name);
        bench.fake.plan_fault(fault);
        bench.clock.advance(TimeDelta::hours(1));
        bench.poll().await;
        let job = bench.job(id).await;
        assert_eq!((job.status, job.run.missing_since), (Status::Running, None), "{fault:?}");
    }
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn what_squeue_forgot_accounting_remembers(pool: PgPool) {
    let bench = Bench::new(pool);
    let (id, name) = bench.submitted().await;
    bench.fake.set_state(&name, &SlurmState::Failed, Some(3));
    bench.fake.forget(&name);
    bench.poll().await;
    bench.step(Lane::Follow).await;
    let job = bench.job(id).await;
    assert_eq!(job.status, Status::Error);
    assert_eq!(job.run.exit.unwrap().code, 3);
    assert!(job.message.contains("its last line"), "{}", job.message);
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_canceled_job_is_canceled_when_its_end_is_seen_and_not_before(pool: PgPool) {
    let bench = Bench::new(pool);
    let (id, _) = bench.submitted().await;
    bench.worker.store.request_cancel(id, &Viewer::All, bench.clock.now()).await.unwrap();
    bench.step(Lane::Follow).await;
    assert_eq!(bench.status(id).await.0, Status::Canceling);
    bench.poll().await;
    bench.step(Lane::Follow).await;
    assert_eq!(bench.status(id).await, (Status::Canceled, Phase::Ended));
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_job_canceled_before_its_submission_never_reaches_the_cluster(pool: PgPool) {
    let bench = Bench::new(pool);
    let id = bench.accept(command_job(1)).await;
    bench.worker.store.request_cancel(id, &Viewer::All, bench.clock.now()).await.unwrap();
    bench.step(Lane::Submit).await;
    assert_eq!(bench.status(id).await, (Status::Canceled, Phase::Ended));
    assert_eq!(bench.fake.commands(), 0);
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_cancellation_that_does_not_get_through_is_sent_again(pool: PgPool) {
    let bench = Bench::new(pool);
    let (id, _) = bench.submitted().await;
    bench.worker.store.request_cancel(id, &Viewer::All, bench.clock.now()).await.unwrap();
    bench.fake.plan_fault(Fault::Unreachable);
    bench.step(Lane::Follow).await;
    bench.make_due().await;
    bench.step(Lane::Follow).await;
    bench.poll().await;
    bench.step(Lane::Follow).await;
    assert_eq!(bench.status(id).await.0, Status::Canceled);
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn last_words_that_cannot_be_read_are_asked_for_again(pool: PgPool) {
    let bench = Bench::new(pool);
    let (id, name) = bench.submitted().await;
    bench.fake.set_state(&name, &SlurmState::Completed, Some(0));
    bench.poll().await;
    bench.fake.plan_fault(Fault::ReplyLost);
    bench.step(Lane::Follow).await;
    assert_eq!(bench.status(id).await.1, Phase::Finishing);
    bench.make_due().await;
    bench.step(Lane::Follow).await;
    assert_eq!(bench.status(id).await.0, Status::Done);
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_job_whose_secrets_cannot_be_removed_yet_has_not_ended(pool: PgPool) {
    let bench = Bench::new(pool);
    bench.fake.refuse(Some((FailureClass::Capacity, "too many jobs")));
    let (id, _) = bench.submitted().await;
    bench.worker.store.request_cancel(id, &Viewer::All, bench.clock.now()).await.unwrap();
    bench.fake.plan_fault(Fault::Unreachable);
    bench.step(Lane::Submit).await;
    assert_eq!(bench.status(id).await.0, Status::Canceling);
    bench.make_due().await;
    bench.step(Lane::Submit).await;
    assert_eq!(bench.status(id).await, (Status::Canceled, Phase::Ended));
    assert!(bench.fake.removed(&format!("/lustre/users/tao/env/{id}.sh")));
}

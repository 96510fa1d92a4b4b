use std::time::Duration;

use chrono::{DateTime, TimeDelta};
use domain::{Graces, Job, JobId, Observation, ObservedChange, Phase, Secrets, Status, Transition, observe};
use remote::StatusChunk;
use serde_json::json;
use slurm::{QueueRow, SlurmJobId, SlurmState};
use sqlx::PgPool;
use testkit::command_job;
use uuid::Uuid;

use super::*;
use crate::{
    DueJobs as _, FeedEvent, Inserted, Lane, LeaseTerms, NewJob, Observations as _, PollLease, PollResult,
    PollTurns as _, Sealer, StepRecords as _, Store, StoreError, Viewer,
};

const LEASE: Duration = Duration::from_mins(1);
const T0: Timestamp = DateTime::UNIX_EPOCH;

struct Bench {
    store: Store,
    job: JobId,
}

impl Bench {
    /// A job that Slurm has.
    async fn new(pool: PgPool) -> Self {
        let store = Store::from_pool(pool, Sealer::from_key([7; 32]));
        let new = NewJob { job: command_job(1), secrets: Secrets::default(), request_hash: [0; 32] };
        let Inserted::Created(mut job) = store.insert_job(&new).await.unwrap() else { panic!("not created") };
        let terms = LeaseTerms { duration: LEASE, limit: 1, only_stopped: false };
        let lease = store.acquire_due(&dgx(), Lane::Submit, Uuid::from_u128(9), terms).await.unwrap();
        let mut attempt = job.new_attempt("/lustre/tao".parse().unwrap(), T0).unwrap();
        attempt.slurm_id = SlurmJobId::new(7);
        attempt.submitted_at = Some(T0);
        job.attempt = Some(attempt);
        job.submitted_at = Some(T0);
        job.phase = Phase::InQueue;
        let id = job.id;
        store.record_steps(&lease, &[Transition { job, due_at: None }], T0).await.unwrap();
        Self { store, job: id }
    }

    async fn find(&self) -> Job {
        self.store.find_job(self.job, &Viewer::All).await.unwrap().unwrap()
    }

    async fn acquire(&self, token: u128) -> PollLease {
        self.store.acquire_poll(&dgx(), Uuid::from_u128(token), LEASE).await.unwrap().unwrap()
    }

    async fn record(&self, lease: &PollLease, next: ObservedChange) -> Result<u64, StoreError> {
        let changed = [next];
        let written = self.store.record_observations(lease, &changed, T0).await?;
        self.store.record_poll(lease, PollResult::Answered, Duration::ZERO, T0).await?;
        Ok(written)
    }

    async fn kinds(&self) -> Vec<(u64, String, Value)> {
        self.store.place_events().await.unwrap();
        let events = self.store.job_feed(self.job, 0, 0, &[], 10_000).await.unwrap();
        events.into_iter().map(|FeedEvent { event, .. }| (event.seq, event.kind, event.data)).collect()
    }

    /// The lines that became events, in order. The numbers of all events have no gap.
    async fn said(&self) -> Vec<String> {
        let events = self.kinds().await;
        let numbers: Vec<u64> = events.iter().map(|(seq, ..)| *seq).collect();
        assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
        let lines = events.iter().filter(|(_, kind, _)| kind == "status");
        lines.map(|(.., data)| data["message"].as_str().unwrap().to_owned()).collect()
    }

    async fn lose_leases(&self) {
        sqlx::raw_sql("update cluster_polls set lease_expires_at = now() - interval '1 second'")
            .execute(&self.store.pool)
            .await
            .unwrap();
    }
}

fn dgx() -> domain::ClusterName {
    "dgx".parse().unwrap()
}

fn lines(numbers: std::ops::Range<u32>) -> String {
    numbers
        .map(|number| json!({"status": "RUNNING", "message": number.to_string()}).to_string() + "\n")
        .collect()
}

/// The job after a poll that read this text in its status file, from the cursor on.
fn saw(job: &Job, file: &str, state: SlurmState) -> ObservedChange {
    let attempt = job.attempt.as_ref().unwrap();
    let start = job.run.status.cursors().first().map_or(0, |cursor| usize::try_from(cursor.offset).unwrap());
    let chunk = StatusChunk {
        key: String::new(),
        path: "/lustre/tao/results/x/status.json".parse().unwrap(),
        inode: u64::MAX,
        size: file.len() as u64,
        written_at: 1,
        note: None,
        start_offset: start as u64,
        skipped: 0,
        before: file.as_bytes()[start.saturating_sub(remote::STATUS_OVERLAP)..start].to_vec(),
        bytes: file.as_bytes()[start..].to_vec(),
        complete: true,
        restarted: false,
    };
    let row = QueueRow {
        id: SlurmJobId::new(7).unwrap(),
        state,
        reason: "None".to_owned(),
        nodes: "node01".to_owned(),
        submit: Some(1),
        start: Some(2),
        end: None,
        partition: "polar".to_owned(),
        name: attempt.token.to_string(),
    };
    let status = [chunk];
    let seen =
        Observation { queue: Some(&row), queue_answered: true, status: &status, ..Observation::default() };
    observe(job, &seen, &Graces::default(), T0 + TimeDelta::seconds(10)).unwrap()
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn every_transition_is_an_event_for_any_statement(pool: PgPool) {
    let bench = Bench::new(pool).await;
    bench.store.request_cancel(bench.job, &Viewer::All, T0).await.unwrap();
    sqlx::raw_sql(
        "update jobs set status = 'Running', phase = 'running'; update jobs set message = 'the same'",
    )
    .execute(&bench.store.pool)
    .await
    .unwrap();
    let seen: Vec<_> = bench.kinds().await;
    let show =
        |index: usize| (seen[index].0, seen[index].2["status"].clone(), seen[index].2["phase"].clone());
    assert_eq!(show(0), (1, json!("Pending"), json!("queued")));
    assert_eq!(show(1), (2, json!("Pending"), json!("in_queue")));
    assert_eq!(seen[1].2["slurm_job_id"], "7", "the attempt that the same statement stored");
    assert_eq!(show(2), (3, json!("Canceling"), json!("in_queue")));
    assert_eq!(show(3), (4, json!("Running"), json!("running")));
    assert_eq!(seen.len(), 4);
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn lines_come_before_the_transition_that_they_caused(pool: PgPool) {
    let bench = Bench::new(pool).await;
    let next = saw(&bench.find().await, &lines(0..3), SlurmState::Running);
    assert_eq!(bench.record(&bench.acquire(1).await, next).await.unwrap(), 1);
    let kinds: Vec<String> = bench.kinds().await.into_iter().map(|(_, kind, _)| kind).collect();
    assert_eq!(kinds, ["transition", "transition", "status", "status", "status", "transition"]);
    let only = bench.store.job_feed(bench.job, 4, 0, &["status".to_owned()], 1).await.unwrap();
    let only: Vec<_> = only.into_iter().map(|of_feed| of_feed.event).collect();
    assert_eq!((only[0].seq, only.len(), only[0].data["message"].as_str()), (5, 1, Some("2")));
    assert_eq!((only[0].attempt, only[0].earlier_run), (1, false));
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn two_pollers_that_read_the_same_lines_store_them_once(pool: PgPool) {
    let bench = Bench::new(pool).await;
    let job = bench.find().await;
    // The first sleeps beyond its lease with what it has read.
    let slept = bench.acquire(1).await;
    bench.lose_leases().await;
    let awake = bench.acquire(2).await;
    bench.record(&awake, saw(&job, &lines(0..5), SlurmState::Running)).await.unwrap();
    let refused = bench.record(&slept, saw(&job, &lines(0..7), SlurmState::Running)).await;
    assert!(matches!(refused, Err(StoreError::LeaseLost { .. })));
    // One with a lease, and with the job as it was before.
    let stale = bench.acquire(3).await;
    assert_eq!(bench.record(&stale, saw(&job, &lines(0..7), SlurmState::Running)).await.unwrap(), 0);
    let fresh = bench.acquire(4).await;
    bench.record(&fresh, saw(&bench.find().await, &lines(0..7), SlurmState::Running)).await.unwrap();
    assert_eq!(bench.said().await, ["0", "1", "2", "3", "4", "5", "6"]);
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn pollers_at_the_same_time_store_each_line_once(pool: PgPool) {
    let bench = Bench::new(pool).await;
    for round in 1..=20_u32 {
        let job = bench.find().await;
        let (one, other) =
            (bench.acquire(u128::from(round)).await, saw(&job, &lines(0..round * 3), SlurmState::Running));
        // As two processes that each believe in their own right: the version is what decides.
        let (mut first, mut second) =
            (bench.store.pool.acquire().await.unwrap(), bench.store.pool.acquire().await.unwrap());
        let changed = [other];
        let (a, b) = tokio::join!(
            crate::polls::observations::write(&mut first, &changed, T0),
            crate::polls::observations::write(&mut second, &changed, T0),
        );
        assert_eq!(a.unwrap().len() + b.unwrap().len(), 1);
        bench.store.record_poll(&one, PollResult::Idle, Duration::ZERO, T0).await.unwrap();
    }
    assert_eq!(bench.said().await, (0..60).map(|number| number.to_string()).collect::<Vec<_>>());
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_poller_that_dies_before_storing_leaves_everything_to_the_next(pool: PgPool) {
    let bench = Bench::new(pool).await;
    drop(saw(&bench.find().await, &lines(0..5), SlurmState::Running));
    let next = saw(&bench.find().await, &lines(0..5), SlurmState::Running);
    bench.record(&bench.acquire(1).await, next).await.unwrap();
    assert_eq!(bench.said().await.len(), 5);
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_step_of_a_running_job_does_not_overwrite_what_a_poll_has_read_meanwhile(pool: PgPool) {
    let bench = Bench::new(pool).await;
    sqlx::raw_sql("update jobs set due_at = now()").execute(&bench.store.pool).await.unwrap();
    let terms = LeaseTerms { duration: LEASE, limit: 1, only_stopped: false };
    let mut lease = bench.store.acquire_due(&dgx(), Lane::Follow, Uuid::from_u128(10), terms).await.unwrap();
    let leased = lease.jobs.pop().unwrap();
    let next = saw(&bench.find().await, &lines(0..4), SlurmState::Running);
    bench.record(&bench.acquire(1).await, next).await.unwrap();
    // The step knows the job as it was before; it even believes to have read lines.
    let step = saw(&leased, &lines(0..2), SlurmState::Running).job;
    bench.store.record_steps(&lease, &[Transition { job: step, due_at: None }], T0).await.unwrap();
    let next = saw(&bench.find().await, &lines(0..6), SlurmState::Running);
    bench.record(&bench.acquire(2).await, next).await.unwrap();
    assert_eq!(bench.said().await, ["0", "1", "2", "3", "4", "5"]);
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_conclusion_adds_the_last_lines_once(pool: PgPool) {
    let bench = Bench::new(pool).await;
    let next = saw(&bench.find().await, &lines(0..2), SlurmState::Completed);
    bench.record(&bench.acquire(1).await, next).await.unwrap();
    let terms = LeaseTerms { duration: Duration::ZERO, limit: 1, only_stopped: false };
    let mut slept = bench.store.acquire_due(&dgx(), Lane::Follow, Uuid::from_u128(10), terms).await.unwrap();
    let terms = LeaseTerms { duration: LEASE, limit: 1, only_stopped: false };
    let lease = bench.store.acquire_due(&dgx(), Lane::Follow, Uuid::from_u128(11), terms).await.unwrap();
    let job = slept.jobs.pop().unwrap();
    let concluded = || {
        let running = Job { phase: Phase::Running, ..job.clone() };
        let read = saw(&running, &lines(0..5), SlurmState::Running).job;
        let ended = Job { phase: Phase::Ended, status: Status::Done, finished_at: Some(T0), ..read };
        [Transition { job: ended, due_at: None }]
    };
    assert!(bench.store.record_steps(&slept, &concluded(), T0).await.unwrap().is_empty());
    assert_eq!(bench.store.record_steps(&lease, &concluded(), T0).await.unwrap().len(), 1);
    assert_eq!(bench.said().await, ["0", "1", "2", "3", "4"]);
    let last = bench.kinds().await.pop().unwrap();
    assert_eq!((last.1.as_str(), &last.2["status"]), ("transition", &json!("Done")));
}

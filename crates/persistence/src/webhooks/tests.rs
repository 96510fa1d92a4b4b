use std::time::Duration;

use domain::{Job, JobId, Networks, Owner, Secrets, Status, WebhookRequest};
use serde_json::Value;
use sqlx::PgPool;
use testkit::command_job;

use super::*;
use crate::{InsertWith, Inserted, NewJob, Store, Viewer};

const TERMS: DeliveryTerms =
    DeliveryTerms { duration: Duration::from_mins(1), limit: 10, limit_per_owner: 2 };

fn webhook() -> Webhook {
    let request = WebhookRequest {
        url: "https://example.org/hook".to_owned(),
        secret: "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD".to_owned(),
    };
    Webhook::from_request(&request, &Networks::default()).unwrap()
}

struct Bench {
    pool: PgPool,
    store: Store,
    job: JobId,
}

impl Bench {
    async fn new(pool: PgPool) -> Self {
        Self::of(pool, 1, "ann").await
    }

    /// A job of this owner.
    async fn of(pool: PgPool, number: u128, owner: &str) -> Self {
        let store = Store::from_pool(pool.clone(), Sealer::from_key([7; 32]));
        let job = Job { owner: Owner::new(owner), ..command_job(number) };
        let new = NewJob { job, secrets: Secrets::default(), request_hash: [0; 32] };
        let webhook = webhook();
        let along = InsertWith { webhook: Some(&webhook), ..InsertWith::default() };
        let inserted = store.insert_job_with(&new, along).await.unwrap();
        let Some(Inserted::Created(job)) = inserted else { panic!("not created") };
        Self { pool, store, job: job.id }
    }

    /// Changes the status with a statement of its own.
    async fn change(&self, status: Status) {
        sqlx::query!("update jobs set status = $2 where id = $1", self.job.get(), <&str>::from(status))
            .execute(&self.pool)
            .await
            .unwrap();
    }

    async fn lease(&self, token: u128) -> Vec<WebhookLease> {
        self.store.lease_webhooks(Uuid::from_u128(token), TERMS).await.unwrap()
    }

    /// The next message.
    async fn turn(&self, token: u128) -> WebhookLease {
        let [turn] = self.lease(token).await.try_into().unwrap();
        turn
    }

    async fn history(&self) -> WebhookHistory {
        self.store.webhook_history(self.job).await.unwrap().unwrap()
    }

    async fn states(&self) -> Vec<String> {
        self.history().await.deliveries.into_iter().rev().map(|delivery| delivery.state).collect()
    }

    async fn let_time_pass(&self) {
        sqlx::query!("update webhooks set due_at = now() where due_at is not null")
            .execute(&self.pool)
            .await
            .unwrap();
    }
}

fn delivered() -> DeliveryResult {
    DeliveryResult::Delivered { response_status: 204 }
}

fn failed(again: Option<u64>) -> DeliveryResult {
    DeliveryResult::Failed {
        response_status: Some(500),
        error: "the receiver answered 500".to_owned(),
        retry_in: again.map(Duration::from_secs),
    }
}

fn status_of(turn: &WebhookLease) -> String {
    let body: Value = serde_json::from_str(&turn.body).unwrap();
    assert_eq!(body["type"], "job.status");
    assert_eq!(body["data"]["seq"], turn.seq);
    assert_eq!(body["data"]["job_id"], turn.job.to_string());
    body["data"]["status"].as_str().unwrap().to_owned()
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn each_status_is_delivered_once_and_in_order(pool: PgPool) {
    let bench = Bench::new(pool).await;
    for status in [Status::Running, Status::Canceling, Status::Running] {
        bench.change(status).await;
    }
    // No change of the status.
    bench.change(Status::Running).await;
    let mut told = Vec::new();
    for token in 1..=4 {
        let turn = bench.turn(token).await;
        assert!(bench.lease(100).await.is_empty(), "one message of a job at a time");
        assert_eq!(turn.webhook.key_bytes(), webhook().key_bytes());
        told.push(status_of(&turn));
        assert!(bench.store.record_delivery(&turn, &delivered()).await.unwrap());
    }
    assert_eq!(told, ["Pending", "Running", "Canceling", "Running"]);
    assert!(bench.lease(9).await.is_empty());
    assert_eq!(bench.history().await.due_at, None);
    bench.change(Status::Canceling).await;
    assert_eq!(status_of(&bench.turn(10).await), "Canceling");
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_failing_delivery_holds_up_the_next_until_it_is_dead(pool: PgPool) {
    let bench = Bench::new(pool).await;
    let turn = bench.turn(1).await;
    bench.change(Status::Running).await;
    bench.store.record_delivery(&turn, &failed(Some(60))).await.unwrap();
    assert!(bench.lease(2).await.is_empty(), "it waits, and a later change does not cut that short");
    bench.let_time_pass().await;
    let again = bench.turn(3).await;
    assert_eq!((again.seq, again.attempts, &again.body), (turn.seq, 1, &turn.body));
    bench.store.record_delivery(&again, &failed(None)).await.unwrap();
    assert_eq!(bench.states().await, ["dead", "pending"]);
    let next = bench.turn(4).await;
    assert_eq!(status_of(&next), "Running");
    bench.store.record_delivery(&next, &delivered()).await.unwrap();

    let history = bench.history().await;
    assert_eq!((history.pending, history.dead), (0, 1));
    let dead = history.deliveries.last().unwrap();
    assert_eq!((dead.attempts, dead.response_status), (2, Some(500)));
    assert_eq!(dead.error.as_deref(), Some("the receiver answered 500"));
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_dead_message_is_redelivered_on_request(pool: PgPool) {
    let bench = Bench::new(pool).await;
    let turn = bench.turn(1).await;
    bench.store.record_delivery(&turn, &failed(None)).await.unwrap();
    assert!(bench.lease(2).await.is_empty());
    assert_eq!(bench.store.redeliver(bench.job, None).await.unwrap(), Some(1));
    let again = bench.turn(3).await;
    assert_eq!((again.seq, again.attempts), (turn.seq, 0));
    bench.store.record_delivery(&again, &delivered()).await.unwrap();
    // No message is dead, so redelivering all dead ones does nothing. A single message is redelivered in any state.
    assert_eq!(bench.store.redeliver(bench.job, None).await.unwrap(), Some(0));
    assert_eq!(bench.store.redeliver(bench.job, Some(turn.seq)).await.unwrap(), Some(1));
    assert_eq!(bench.turn(4).await.seq, turn.seq);
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn an_expired_webhook_lease_goes_to_another_process_and_records_nothing(pool: PgPool) {
    let bench = Bench::new(pool.clone()).await;
    let lost = bench.turn(1).await;
    sqlx::query!("update webhooks set lease_expires_at = now()").execute(&pool).await.unwrap();
    let turn = bench.turn(2).await;
    assert_eq!((turn.seq, turn.attempts), (lost.seq, 0));
    assert!(!bench.store.record_delivery(&lost, &delivered()).await.unwrap());
    assert_eq!(bench.states().await, ["pending"]);
    assert!(bench.store.record_delivery(&turn, &delivered()).await.unwrap());
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_change_during_the_recording_of_a_delivery_is_delivered(pool: PgPool) {
    let bench = Bench::new(pool.clone()).await;
    let turn = bench.turn(1).await;
    // A change whose transaction has added its message and is still open when the record begins.
    let mut open = crate::store::begin(&pool).await.unwrap();
    sqlx::query!("update jobs set status = 'Running' where id = $1", bench.job.get())
        .execute(&mut *open)
        .await
        .unwrap();
    let store = bench.store.clone();
    let recorded = async { store.record_delivery(&turn, &delivered()).await.unwrap() };
    let changed = async {
        wait_for_a_waiting_statement(&pool).await;
        open.commit().await.unwrap();
    };
    let (recorded, ()) = tokio::join!(recorded, changed);
    assert!(recorded);
    assert_eq!(status_of(&bench.turn(2).await), "Running");
}

/// Waits until a statement waits for a lock.
async fn wait_for_a_waiting_statement(pool: &PgPool) {
    let waits = "select exists (select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database())";
    let seen = async {
        while !sqlx::query_scalar::<_, bool>(waits).fetch_one(pool).await.unwrap() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_mins(1), seen).await.expect("nobody waits");
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_job_that_is_being_deleted_is_not_redelivered(pool: PgPool) {
    let bench = Bench::new(pool.clone()).await;
    let turn = bench.turn(1).await;
    bench.store.record_delivery(&turn, &delivered()).await.unwrap();
    // Who forgets holds the job, has seen that nothing waits, and has not deleted it yet.
    let mut open = crate::store::begin(&pool).await.unwrap();
    sqlx::raw_sql("select from jobs for update").execute(&mut *open).await.unwrap();
    let asked = async { bench.store.redeliver(bench.job, Some(turn.seq)).await.unwrap() };
    let forgotten = async {
        wait_for_a_waiting_statement(&pool).await;
        sqlx::raw_sql("delete from jobs").execute(&mut *open).await.unwrap();
        open.commit().await.unwrap();
    };
    let (asked, ()) = tokio::join!(asked, forgotten);
    assert_eq!(asked, None, "a job that is gone has no webhook");
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_secret_is_stored_sealed_and_a_deleted_job_takes_everything_with_it(pool: PgPool) {
    let bench = Bench::new(pool.clone()).await;
    let stored = sqlx::query!("select url, secret from webhooks").fetch_one(&pool).await.unwrap();
    assert!(!stored.secret.windows(24).any(|part| part == webhook().key_bytes()));
    assert!(!stored.url.windows(11).any(|part| part == b"example.org"));
    assert_eq!(bench.history().await.url, webhook().url);
    sqlx::query!("delete from jobs").execute(&pool).await.unwrap();
    assert!(bench.store.webhook_history(bench.job).await.unwrap().is_none());
    assert!(bench.store.find_job(bench.job, &Viewer::All).await.unwrap().is_none());
    let left = sqlx::query_scalar!(r#"select count(*) as "n!" from webhook_deliveries"#);
    assert_eq!(left.fetch_one(&pool).await.unwrap(), 0);
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn hanging_receivers_of_one_owner_do_not_hold_up_others(pool: PgPool) {
    let mut last = None;
    for number in 1..=4 {
        last = Some(Bench::of(pool.clone(), number, "ann").await);
    }
    let bench = last.unwrap();
    let others = Bench::of(pool.clone(), 5, "bob").await.job;
    let turns = bench.lease(1).await;
    let of_bob = turns.iter().filter(|turn| turn.job == others).count();
    assert_eq!((turns.len(), of_bob), (3, 1), "two of one owner at a time");
    assert!(bench.lease(2).await.is_empty(), "also from another process");
    let of_ann = turns.iter().find(|turn| turn.job != others).unwrap();
    bench.store.record_delivery(of_ann, &delivered()).await.unwrap();
    assert_eq!(bench.lease(3).await.len(), 1);
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_webhook_lease_without_a_message_is_returned_at_once(pool: PgPool) {
    let bench = Bench::new(pool.clone()).await;
    let turn = bench.turn(1).await;
    bench.store.record_delivery(&turn, &delivered()).await.unwrap();
    sqlx::query!("update webhooks set due_at = now()").execute(&pool).await.unwrap();
    assert!(bench.lease(2).await.is_empty());
    bench.change(Status::Running).await;
    assert_eq!(status_of(&bench.turn(3).await), "Running");
}

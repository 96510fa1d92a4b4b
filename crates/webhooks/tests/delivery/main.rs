//! Deliveries to receivers that fail, hang or are not allowed, with a real database.

#![expect(clippy::unwrap_used, reason = "a test fails if a step of it fails")]
#![expect(clippy::expect_used, reason = "a test fails if a step of it fails")]

mod certificates;
mod receiver;

use std::{sync::Arc, time::Duration};

use base64::{Engine, prelude::BASE64_STANDARD};
use domain::{JobId, Networks, Secrets, Webhook};
use hmac::{Hmac, KeyInit, Mac};
use persistence::{InsertWith, Inserted, NewJob, Sealer, Store, WebhookHistory};
use sha2::Sha256;
use sqlx::PgPool;
use testkit::{CountingIds, HandClock, command_job};
use tokio_util::sync::CancellationToken;
use webhooks::{Authorities, Deliverer, DeliverySettings};

use receiver::{Answer, Receiver};

const KEY: &[u8] = b"a key of thirty-two bytes, exact";

#[derive(Clone)]
struct Bench {
    pool: PgPool,
    store: Store,
    job: JobId,
    stop: CancellationToken,
}

impl Bench {
    /// A job with this receiver as its webhook; its first message is due.
    async fn new(pool: PgPool, receiver: &Receiver) -> Self {
        Self::at(pool, receiver.url.clone()).await
    }

    async fn at(pool: PgPool, url: String) -> Self {
        let store = Store::from_pool(pool.clone(), Sealer::from_key([7; 32]));
        let new = NewJob { job: command_job(1), secrets: Secrets::default(), request_hash: [0; 32] };
        let webhook = Webhook { url, key: KEY.to_vec().into() };
        let along = InsertWith { webhook: Some(&webhook), ..InsertWith::default() };
        let inserted = store.insert_job_with(&new, along).await.unwrap();
        let Some(Inserted::Created(job)) = inserted else { panic!("not created") };
        Self { pool, store, job: job.id, stop: CancellationToken::new() }
    }

    fn deliverer(&self, networks: &[&str], attempts: u32) -> Arc<Deliverer> {
        self.with(settings(networks, attempts))
    }

    fn trusting(&self, authorities: Authorities, networks: &[&str], attempts: u32) -> Arc<Deliverer> {
        self.with(DeliverySettings { authorities, ..settings(networks, attempts) })
    }

    /// A deliverer for a receiver that hangs: it waits only so long.
    fn impatient(&self, timeout: Duration, attempts: u32) -> Arc<Deliverer> {
        self.with(DeliverySettings { timeout, ..settings(HERE, attempts) })
    }

    fn with(&self, settings: DeliverySettings) -> Arc<Deliverer> {
        let clock = HandClock::at(chrono::DateTime::from_timestamp(1_790_000_000, 0).unwrap());
        let ids = CountingIds::default();
        Arc::new(Deliverer::new(self.store.clone(), settings, Arc::new(clock), Arc::new(ids)))
    }

    /// Delivers until the history satisfies the condition; skips the waits between attempts.
    async fn until(
        &self,
        deliverers: &[Arc<Deliverer>],
        condition: impl Fn(&WebhookHistory) -> bool,
    ) -> WebhookHistory {
        self.watch(deliverers, async || self.cut_short().await, condition).await
    }

    async fn cut_short(&self) {
        let cut_short = "update webhooks set due_at = now() where due_at > now() returning 1";
        sqlx::query_scalar::<_, i32>(cut_short).fetch_all(&self.pool).await.unwrap();
    }

    async fn watch(
        &self,
        deliverers: &[Arc<Deliverer>],
        meanwhile: impl AsyncFn(),
        condition: impl Fn(&WebhookHistory) -> bool,
    ) -> WebhookHistory {
        let mut running = tokio::task::JoinSet::new();
        for deliverer in deliverers {
            running.spawn(Arc::clone(deliverer).run(self.stop.child_token()));
        }
        let look = async {
            loop {
                let history = self.store.webhook_history(self.job).await.unwrap().unwrap();
                if condition(&history) {
                    return history;
                }
                meanwhile().await;
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let history = tokio::time::timeout(Duration::from_mins(3), look).await.expect("the expected history");
        self.stop.cancel();
        while let Some(ended) = running.join_next().await {
            ended.unwrap();
        }
        history
    }

    async fn change(&self, status: &str) {
        let change = sqlx::query_scalar::<_, i32>("update jobs set status = $1 returning 1");
        change.bind(status).fetch_all(&self.pool).await.unwrap();
    }
}

/// The signature of a text, made with the key.
fn code(text: &str) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(KEY).unwrap();
    mac.update(text.as_bytes());
    BASE64_STANDARD.encode(mac.finalize().into_bytes())
}

const HERE: &[&str] = &["127.0.0.0/8"];

fn settings(networks: &[&str], attempts: u32) -> DeliverySettings {
    DeliverySettings {
        authorities: Authorities::default(),
        networks: Networks::new(networks.iter().map(|text| text.parse().unwrap()).collect()),
        // A receiver that answers is in time, on a busy machine too: tests count the attempts.
        timeout: Duration::from_secs(30),
        attempts,
    }
}

fn is_through(history: &WebhookHistory) -> bool {
    history.pending == 0
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn several_processes_deliver_each_message_once_signed_and_in_order(pool: PgPool) {
    let receiver = Receiver::new(&[]);
    let bench = Bench::new(pool, &receiver).await;
    for status in ["Running", "Pending", "Running"] {
        bench.change(status).await;
    }
    let both = [bench.deliverer(HERE, 15), bench.deliverer(HERE, 15)];
    let history = bench.until(&both, is_through).await;
    assert!(history.deliveries.iter().all(|one| one.state == "delivered" && one.attempts == 1));
    for (status, previous) in [
        ("Pending", None),
        ("Running", Some("Pending")),
        ("Pending", Some("Running")),
        ("Running", Some("Pending")),
    ] {
        let seen = receiver.next();
        assert_eq!(seen.body["data"]["status"], status);
        assert_eq!(seen.body["data"]["previous_status"].as_str(), previous);
        assert_eq!(seen.headers["webhook-id"], format!("{}_{}", bench.job, seen.body["data"]["seq"]));
        assert_eq!(seen.headers["webhook-timestamp"], "1790000000");
        let signed = format!("{}.1790000000.{}", seen.headers["webhook-id"], seen.text);
        assert_eq!(seen.headers["webhook-signature"], format!("v1,{}", code(&signed)));
        assert_eq!(seen.headers["content-type"], "application/json");
    }
    assert!(receiver.is_quiet());
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_failed_message_is_repeated_unchanged_before_the_next_one(pool: PgPool) {
    let receiver = Receiver::new(&[Answer::Status(500), Answer::Hang, Answer::Status(429)]);
    let bench = Bench::new(pool, &receiver).await;
    bench.change("Running").await;
    // It hangs once, for the whole time. Its other answers come within it, on a busy machine too.
    let history = bench.until(&[bench.impatient(Duration::from_secs(10), 15)], is_through).await;
    let received: Vec<_> = (0..5).map(|_| receiver.next()).collect();
    let ids: Vec<_> = received.iter().map(|seen| seen.headers["webhook-id"].clone()).collect();
    assert_eq!(ids[..4], vec![ids[0].clone(); 4]);
    assert_ne!(ids[3], ids[4]);
    assert!(received[..4].iter().all(|seen| seen.body == received[0].body));
    assert_eq!(history.deliveries.iter().rev().map(|one| one.attempts).collect::<Vec<_>>(), [4, 1]);
    assert!(receiver.is_through());
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn retry_after_of_the_receiver_is_respected(pool: PgPool) {
    // Ten minutes or so, a date (by the test's clock), and no value.
    let headers = ["600", "Mon, 21 Sep 2026 14:30:00 GMT", "soon"];
    let receiver = Receiver::new(&headers.map(Answer::Busy));
    let bench = Bench::new(pool.clone(), &receiver).await;
    for (attempt, (least, most)) in (1..).zip([(600.0, 602.5), (1000.0, 1005.0), (10.0, 20.0)]) {
        let bench = Bench { stop: CancellationToken::new(), ..bench.clone() };
        let is_tried = |history: &WebhookHistory| history.deliveries[0].attempts == attempt;
        bench.watch(&[bench.deliverer(HERE, 15)], async || (), is_tried).await;
        receiver.next();
        let wait = "select extract(epoch from w.due_at - d.tried_at)::float8 from webhooks w
                    join webhook_deliveries d on d.job_id = w.job_id";
        let wait: f64 = sqlx::query_scalar(wait).fetch_one(&pool).await.unwrap();
        assert!((least..=most).contains(&wait), "{attempt}: {wait}");
        bench.cut_short().await;
    }
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_message_is_given_up_with_the_reason_if_the_receiver_always_hangs(pool: PgPool) {
    let receiver = Receiver::new(&[Answer::Hang, Answer::Hang]);
    let bench = Bench::new(pool, &receiver).await;
    let history = bench.until(&[bench.impatient(Duration::from_millis(500), 2)], is_through).await;
    let [one] = history.deliveries.as_slice() else { panic!("{history:?}") };
    assert_eq!((one.state.as_str(), one.attempts, one.response_status), ("dead", 2, None));
    assert_eq!(one.error.as_deref(), Some("the receiver did not answer in time"));
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_private_address_is_not_called_unless_it_is_allowed(pool: PgPool) {
    let receiver = Receiver::new(&[]);
    let bench = Bench::new(pool, &receiver).await;
    let history = bench.until(&[bench.deliverer(&["10.0.0.0/8"], 1)], is_through).await;
    let error = history.deliveries[0].error.as_deref().unwrap();
    assert!(error.contains("127.0.0.1 has no address that may be called"), "{error}");
    assert_eq!(history.deliveries[0].state, "dead");
    assert!(receiver.is_quiet());
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_redirect_is_not_followed_and_410_ends_the_retries(pool: PgPool) {
    let receiver = Receiver::new(&[Answer::Status(302), Answer::Status(307), Answer::Status(410)]);
    let bench = Bench::new(pool, &receiver).await;
    let history = bench.until(&[bench.deliverer(HERE, 15)], is_through).await;
    let [one] = history.deliveries.as_slice() else { panic!("{history:?}") };
    assert_eq!((one.state.as_str(), one.attempts, one.response_status), ("dead", 3, Some(410)));
    let paths = [receiver.next().path, receiver.next().path, receiver.next().path];
    assert_eq!(paths, ["/hook", "/hook", "/hook"]);
    assert!(receiver.is_quiet());
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_name_is_checked_by_its_addresses(pool: PgPool) {
    let receiver = Receiver::new(&[]);
    let bench = Bench::at(pool, receiver.url_by_name()).await;
    let history = bench.until(&[bench.deliverer(&["10.0.0.0/8"], 1)], is_through).await;
    let error = history.deliveries[0].error.clone().unwrap();
    assert!(error.contains("localhost has no address that may be called"), "{error}");
    assert!(receiver.is_quiet());
    bench.store.redeliver(bench.job, None).await.unwrap();
    let bench = Bench { stop: CancellationToken::new(), ..bench };
    let history = bench.until(&[bench.deliverer(HERE, 1)], is_through).await;
    assert_eq!(history.deliveries[0].state, "delivered", "{history:?}");
    receiver.next();
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn an_https_url_is_never_called_in_plain_text(pool: PgPool) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://127.0.0.1:{}/", listener.local_addr().unwrap().port());
    let bench = Bench::at(pool, url).await;
    let heard = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut bytes = vec![0; 1];
        std::io::Read::read_exact(&mut stream, &mut bytes).unwrap();
        bytes[0]
    });
    let history = bench.until(&[bench.deliverer(HERE, 1)], is_through).await;
    assert_eq!(history.deliveries[0].state, "dead");
    // A handshake of TLS, and not the `P` of a POST.
    assert_eq!(heard.join().unwrap(), 0x16);
}

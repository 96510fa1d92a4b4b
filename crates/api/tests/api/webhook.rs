use std::time::Duration;

use axum::http::Method;
use domain::{Clock, Owner, Webhook};
use persistence::{DeliveryResult, DeliveryTerms, NewToken, Scopes, Store};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use sqlx::PgPool;
use uuid::Uuid;

use crate::support::TestApi;

const SECRET: &str = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";

pub(crate) fn with_webhook() -> Value {
    json!({"command": "true", "webhook": {"url": "https://example.org/hook?key=hunter2", "secret": SECRET}})
}

/// Does what the deliverer does of a receiver that never answers: gives up the messages that wait.
pub(crate) async fn give_up(store: &Store) {
    let terms = DeliveryTerms { duration: Duration::from_mins(1), limit: 10, limit_per_owner: 10 };
    for turn in store.lease_webhooks(Uuid::from_u128(7), terms).await.unwrap() {
        let error = "the receiver did not answer in time".to_owned();
        let result = DeliveryResult::Failed { response_status: None, error, retry_in: None };
        assert!(store.record_delivery(&turn, &result).await.unwrap());
    }
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_job_s_webhook_receives_its_status_and_its_secret_is_never_returned(pool: PgPool) {
    let api = TestApi::new(pool);
    let created = api.post("/jobs", &with_webhook()).await;
    assert_eq!(created.status, 201, "{}", created.text());
    let at = created.header("location").to_owned();
    let told = api.get(&format!("{at}/webhook")).await;
    let view = told.json();
    assert_eq!((&view["pending"], &view["dead"]), (&json!(1), &json!(0)));
    assert_eq!(view["deliveries"][0]["state"], "pending");
    let job = created.json()["id"].as_str().unwrap().to_owned();
    assert_eq!(view["deliveries"][0]["id"], format!("{job}_1"));
    assert_eq!(view["deliveries"][0]["body"]["data"]["status"], "Pending");
    for answer in [&created, &told, &api.get(&at).await] {
        assert!(!answer.text().contains("C2FVsBQIhrsc"), "{}", answer.text());
    }
    api.post(&format!("{at}/cancel"), &json!({})).await;
    assert_eq!(
        api.get(&format!("{at}/webhook")).await.json()["deliveries"][0]["body"]["data"]["previous_status"],
        "Pending"
    );
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_webhook_that_may_not_be_called_is_refused_with_all_other_faults(pool: PgPool) {
    let api = TestApi::new(pool);
    for url in ["http://example.org/", "https://127.0.0.1/", "https://169.254.169.254/latest", "x"] {
        let mut body = with_webhook();
        body["webhook"]["url"] = url.into();
        let answer = api.post("/jobs", &body).await;
        answer.problem(422, "invalid_request");
        assert_eq!(answer.json()["errors"][0]["pointer"], "/webhook/url", "{url}");
    }
    let answer = api
        .post("/jobs/validate", &json!({"command": "", "webhook": {"url": "x", "secret": "hunter2"}}))
        .await;
    let errors = answer.json()["errors"].as_array().unwrap().clone();
    let pointers: Vec<&str> = errors.iter().map(|error| error["pointer"].as_str().unwrap()).collect();
    assert_eq!(pointers, ["/command", "/webhook/url", "/webhook/secret"]);
    assert!(!answer.text().contains("hunter2"));
    api.post("/jobs", &json!({"command": "true", "webhook": ["x", "y"]}))
        .await
        .problem(422, "invalid_request");
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_job_without_a_webhook_says_so_and_another_owner_sees_no_job(pool: PgPool) {
    let api = TestApi::guarded(pool);
    api.token("ann", "ann", "read write", None).await;
    api.token("bob", "bob", "read write", None).await;
    let call = async |token: &str, method: Method, path: &str, body: Option<&Value>| {
        api.call_as(token, method, path, body).await
    };
    let without = call("ann", Method::POST, "/jobs", Some(&json!({"command": "true"}))).await;
    let at = format!("{}/webhook", without.header("location"));
    call("ann", Method::GET, &at, None).await.problem(404, "no_webhook");
    call("ann", Method::POST, &format!("{at}/redeliver"), None).await.problem(404, "no_webhook");

    let with = call("ann", Method::POST, "/jobs", Some(&with_webhook())).await;
    let at = format!("{}/webhook", with.header("location"));
    call("bob", Method::GET, &at, None).await.problem(404, "job_not_found");
    call("bob", Method::POST, &format!("{at}/redeliver"), None).await.problem(404, "job_not_found");
    assert_eq!(call("ann", Method::POST, &format!("{at}/redeliver?seq=1"), None).await.status, 202);
    call("ann", Method::POST, &format!("{at}/redeliver?seq=0"), None).await.problem(400, "invalid_parameter");
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn dead_letters_are_listed_by_pages_until_they_are_redelivered(pool: PgPool) {
    let api = TestApi::new(pool);
    let mut jobs = Vec::new();
    for _ in 0..3 {
        jobs.push(api.job(&with_webhook()).await);
    }
    give_up(&api.store).await;
    let mut seen = Vec::new();
    let mut next = Some("/webhooks/dead-letters?limit=2".to_owned());
    while let Some(page) = next.take() {
        let answer = api.get(&page).await;
        let list = answer.json();
        for letter in list["dead_letters"].as_array().unwrap() {
            assert_eq!(letter["delivery"]["state"], "dead");
            assert_eq!(letter["delivery"]["error"], "the receiver did not answer in time");
            assert_eq!(letter["delivery"]["body"]["data"]["job_id"], letter["job_id"]);
            seen.push(letter["job_id"].as_str().unwrap().to_owned());
        }
        assert!(!answer.text().contains("hunter2"), "the address may be a secret");
        next = list["next_before"].as_u64().map(|_| {
            let link = answer.header("link");
            link.trim_start_matches('<').split('>').next().unwrap().to_owned()
        });
    }
    seen.sort();
    jobs.sort();
    assert_eq!(seen, jobs);
    let again = api.post(&format!("/jobs/{}/webhook/redeliver", jobs[0]), &json!({})).await;
    assert_eq!((again.status.as_u16(), &again.json()["pending"]), (202, &json!(1)));
    let left = api.get("/webhooks/dead-letters").await.json();
    assert_eq!(left["dead_letters"].as_array().unwrap().len(), 2);
}

/// Makes a token of Ann's whose jobs tell somebody.
async fn telling(api: &TestApi, url: &str) {
    let token = NewToken {
        id: Uuid::from_u128(12),
        name: "telling".to_owned(),
        owner: Owner::new("ann"),
        hash: Sha256::digest("telling").into(),
        scopes: Scopes { read: true, write: true, admin: false },
        created_at: api.clock.now(),
        expires_at: None,
        webhook: Some(Webhook { url: url.to_owned(), key: b"of the token".to_vec().into() }),
    };
    api.store.create_token(&token).await.unwrap();
}

/// Whom the job that is told of next tells, and with which key.
async fn told(store: &Store) -> (String, Vec<u8>) {
    let terms = DeliveryTerms { duration: Duration::from_mins(1), limit: 10, limit_per_owner: 10 };
    let [turn] = store.lease_webhooks(Uuid::from_u128(9), terms).await.unwrap().try_into().unwrap();
    let said = (turn.webhook.url.clone(), turn.webhook.key_bytes().to_vec());
    let result = DeliveryResult::Delivered { response_status: 204 };
    assert!(store.record_delivery(&turn, &result).await.unwrap());
    said
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_token_s_webhook_is_the_default_of_its_jobs(pool: PgPool) {
    let api = TestApi::guarded(pool.clone());
    telling(&api, "https://example.org/of-token").await;
    api.token("silent", "ann", "read write", None).await;
    let post = async |token: &str, body: &Value| api.call_as(token, Method::POST, "/jobs", Some(body)).await;
    let plain = json!({"command": "true"});
    let job = post("telling", &plain).await;
    assert_eq!(told(&api.store).await, ("https://example.org/of-token".to_owned(), b"of the token".to_vec()));
    let at = format!("{}/webhook", job.header("location"));
    assert_eq!(api.get_as("silent", &at).await.json()["deliveries"][0]["state"], "delivered");
    post("telling", &with_webhook()).await;
    assert_eq!(told(&api.store).await.0, "https://example.org/hook?key=hunter2");
    let silent = post("silent", &plain).await;
    let at = format!("{}/webhook", silent.header("location"));
    api.get_as("silent", &at).await.problem(404, "no_webhook");
    // As TAO sends them, jobs cannot name anybody.
    let tao = json!({"neural_network_name": "dino", "action_name": "train", "specs": {}});
    let answer = api.call_as("telling", Method::POST, "/api/v1/internal/container_job", Some(&tao)).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(told(&api.store).await.0, "https://example.org/of-token");
    // Neither is in the database as it is, and one that cannot be opened is not forgotten.
    let sealed: Vec<u8> =
        sqlx::query_scalar("select url || secret from token_webhooks").fetch_one(&pool).await.unwrap();
    for plain in ["of-token", "of the token"] {
        assert!(!sealed.windows(plain.len()).any(|part| part == plain.as_bytes()));
    }
    sqlx::raw_sql("update token_webhooks set secret = url").execute(&pool).await.unwrap();
    let jobs = api.get_as("silent", "/jobs").await.json()["jobs"].as_array().unwrap().len();
    post("telling", &plain).await.problem(500, "internal");
    assert_eq!(api.get_as("silent", "/jobs").await.json()["jobs"].as_array().unwrap().len(), jobs);
}

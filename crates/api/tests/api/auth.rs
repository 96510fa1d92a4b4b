use axum::http::Method;
use chrono::TimeDelta;
use domain::Clock;
use serde_json::json;
use sqlx::PgPool;

use crate::support::TestApi;

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_call_without_a_valid_token_is_refused(pool: PgPool) {
    let api = TestApi::guarded(pool);
    let answer = api.get("/jobs").await;
    answer.problem(401, "unauthorized");
    assert_eq!(answer.header("www-authenticate"), r#"Bearer realm="tao-slurm""#);
    let answer = api.get_as("nobody-knows-it", "/jobs").await;
    answer.problem(401, "unauthorized");
    assert!(answer.header("www-authenticate").contains("invalid_token"));
    let body = json!({"command": "true"});
    api.call_as("nobody-knows-it", Method::POST, "/jobs", Some(&body)).await.problem(401, "unauthorized");
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_token_ends_when_it_expires_though_it_was_looked_up_before(pool: PgPool) {
    let api = TestApi::guarded(pool);
    api.token("t", "ann", "read", Some(api.clock.now() + TimeDelta::seconds(60))).await;
    assert_eq!(api.get_as("t", "/jobs").await.status, 200);
    api.clock.advance(TimeDelta::seconds(60));
    api.get_as("t", "/jobs").await.problem(401, "unauthorized");
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn reading_needs_the_scope_read_and_changing_needs_write(pool: PgPool) {
    let api = TestApi::guarded(pool);
    api.token("reader", "ann", "read", None).await;
    api.token("writer", "ann", "write", None).await;
    api.token("admin", "root", "admin", None).await;
    let body = json!({"command": "true"});
    let post = async |token: &str| api.call_as(token, Method::POST, "/jobs", Some(&body)).await;
    let refused = post("reader").await;
    refused.problem(403, "forbidden");
    assert!(refused.header("www-authenticate").contains(r#"scope="write""#));
    api.get_as("writer", "/jobs").await.problem(403, "forbidden");
    assert_eq!(post("writer").await.status, 201);
    assert_eq!(post("admin").await.status, 201);
    assert_eq!(api.get_as("reader", "/jobs").await.status, 200);
    let cancel = "/jobs/0f8fad5b-d9cb-469f-a165-70867728950e/cancel";
    api.call_as("reader", Method::POST, cancel, None).await.problem(403, "forbidden");
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn another_owners_job_does_not_exist_and_an_admin_sees_it(pool: PgPool) {
    let api = TestApi::guarded(pool);
    api.token("ann", "ann", "read write", None).await;
    api.token("bob", "bob", "read write", None).await;
    api.token("root", "root", "admin", None).await;
    let id = "0f8fad5b-d9cb-469f-a165-70867728950e";
    let body = json!({"id": id, "command": "true"});
    assert_eq!(api.call_as("ann", Method::POST, "/jobs", Some(&body)).await.json()["owner"], "ann");
    for path in ["", "/status", "/logs"] {
        let answer = api.get_as("bob", &format!("/jobs/{id}{path}")).await;
        answer.problem(404, "job_not_found");
        assert!(!answer.text().contains("ann"), "{}", answer.text());
    }
    let cancel = format!("/jobs/{id}/cancel");
    api.call_as("bob", Method::POST, &cancel, None).await.problem(404, "job_not_found");
    api.call_as("bob", Method::POST, "/jobs", Some(&body)).await.problem(422, "id_conflict");
    assert_eq!(api.get_as("bob", "/jobs").await.json()["jobs"], json!([]));
    assert_eq!(api.get_as("ann", &format!("/jobs/{id}")).await.json()["status"], "Pending");
    assert_eq!(api.get_as("root", "/jobs").await.json()["jobs"][0]["id"], id);
    assert_eq!(api.call_as("root", Method::POST, &cancel, None).await.status, 202);
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn the_last_use_of_a_token_is_recorded_but_not_for_every_request(pool: PgPool) {
    let api = TestApi::guarded(pool);
    api.token("used", "ann", "read", None).await;
    api.token("expired", "ann", "read", Some(api.clock.now())).await;
    api.token("idle", "ann", "read", None).await;
    let last_use = async |name: &str| {
        let tokens = api.store.list_tokens(None).await.unwrap();
        tokens.into_iter().find(|token| token.name == name).unwrap().last_used_at
    };
    assert_eq!(last_use("used").await, None);
    assert_eq!(api.get_as("used", "/jobs").await.status, 200);
    let noted = last_use("used").await;
    assert!(noted.is_some());
    let id = api.store.list_tokens(None).await.unwrap();
    let id = id.iter().find(|token| token.name == "used").unwrap().id;
    // Within the minute it is not written again, through whatever process it is asked for.
    api.store.record_use(id).await.unwrap();
    assert_eq!(last_use("used").await, noted);
    api.get_as("expired", "/jobs").await.problem(401, "unauthorized");
    assert_eq!((last_use("expired").await, last_use("idle").await), (None, None));
}

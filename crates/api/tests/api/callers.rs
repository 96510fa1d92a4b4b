//! Who calls, and the tokens of the service over the API.

use axum::http::Method;
use chrono::TimeDelta;
use domain::Clock;
use serde_json::{Value, json};
use sqlx::PgPool;

use crate::support::{Issuer, TestApi, claims};

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn every_kind_of_caller_reads_who_it_is(pool: PgPool) {
    let open = TestApi::new(pool.clone());
    let everything = json!(["read", "write", "admin"]);
    let expected =
        json!({"owner": "local", "scopes": everything, "authentication": "none", "expires_at": null});
    assert_eq!(open.get("/me").await.json(), expected);

    let issuer = std::sync::Arc::new(Issuer::new());
    let api = TestApi::trusting(pool, &issuer, api::Limits::default());
    api.token("t", "ann", "read", None).await;
    let expected = json!({"owner": "ann", "scopes": ["read"], "authentication": "token", "expires_at": null});
    assert_eq!(api.get_as("t", "/me").await.json(), expected);
    let signed = issuer.sign(&claims("bob", "read write", api.clock.now()));
    let me = api.get_as(&signed, "/me").await.json();
    assert_eq!((&me["owner"], &me["authentication"]), (&json!("jwt:bob"), &json!("jwt")));
    assert!(me["expires_at"].is_string(), "{me}");
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_token_is_created_used_listed_and_revoked(pool: PgPool) {
    let limits = api::Limits { token_memory: std::time::Duration::ZERO, ..api::Limits::default() };
    let api = TestApi::with(pool, api::AuthMode::Tokens, limits);
    api.token("root", "root", "admin", None).await;
    let expires_at = api.clock.now() + TimeDelta::days(1);
    let request = json!({"owner": " ann ", "name": "notebook", "expires_at": expires_at});
    let answer = api.call_as("root", Method::POST, "/tokens", Some(&request)).await;
    assert_eq!((answer.status, answer.header("cache-control")), (201.try_into().unwrap(), "no-store"));
    let new = answer.json();
    assert_eq!((&new["owner"], &new["scopes"]), (&json!("ann"), &json!(["read", "write"])));
    let text = new["token"].as_str().unwrap();
    assert!(text.starts_with("tsl_"), "{text}");

    assert_eq!(api.get_as(text, "/me").await.json()["owner"], "ann");
    api.get_as(text, "/tokens").await.problem(403, "forbidden");
    let list = api.get_as("root", "/tokens?owner=ann").await;
    assert!(!list.text().contains(text));
    let tokens = list.json()["tokens"].clone();
    let [only] = tokens.as_array().unwrap().as_slice() else { panic!("{tokens}") };
    let shown = |field: &str| only[field].clone();
    assert_eq!(
        (shown("name"), shown("state"), shown("webhook")),
        (json!("notebook"), json!("active"), json!(false))
    );

    let path = format!("/tokens/{}", new["id"].as_str().unwrap());
    assert_eq!(api.call_as("root", Method::DELETE, &path, None).await.status, 204);
    assert_eq!(api.call_as("root", Method::DELETE, &path, None).await.status, 204);
    api.get_as(text, "/me").await.problem(401, "unauthorized");
    let state = api.get_as("root", "/tokens?owner=ann").await.json()["tokens"][0]["state"].clone();
    assert_eq!(state, "revoked");
    let unknown = format!("/tokens/{}", uuid::Uuid::from_u128(7));
    api.call_as("root", Method::DELETE, &unknown, None).await.problem(404, "token_not_found");
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_token_that_cannot_work_is_refused(pool: PgPool) {
    let api = TestApi::guarded(pool);
    api.token("root", "root", "admin", None).await;
    let past = api.clock.now();
    let wrong: [(Value, &str); 6] = [
        (json!({"owner": " "}), "/owner"),
        (json!({"owner": "a\nb"}), "/owner"),
        (json!({"owner": "ann", "name": ""}), "/name"),
        (json!({"owner": "ann", "scopes": []}), "/scopes"),
        (json!({"owner": "ann", "expires_at": past}), "/expires_at"),
        (json!({"owner": "ann", "webhook": {"url": "http://x", "secret": "hunter2"}}), "/webhook/url"),
    ];
    for (request, pointer) in wrong {
        let answer = api.call_as("root", Method::POST, "/tokens", Some(&request)).await;
        answer.problem(422, "invalid_request");
        let errors = answer.json()["errors"].clone();
        assert!(
            errors.as_array().unwrap().iter().any(|error| error["pointer"] == pointer),
            "{request}: {errors}"
        );
        assert!(!answer.text().contains("hunter2"));
    }
    assert_eq!(api.store.list_tokens(None).await.unwrap().len(), 1);
}

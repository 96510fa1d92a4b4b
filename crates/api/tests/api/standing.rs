//! Streams and long waits of callers whose token is taken away.

use std::{future::Future, pin::pin, sync::Arc, time::Duration};

use api::{AuthMode, Limits};
use axum::http::Method;
use chrono::TimeDelta;
use domain::Clock;
use serde_json::json;
use sqlx::PgPool;
use tokio::time::timeout;

use crate::support::{Answer, Events, Issuer, TestApi, claims};

/// Less than the callers wait for.
const LONG: Duration = Duration::from_secs(50);

/// A service that remembers tokens for a moment only, and a job of Ann's that writes a log.
async fn running(pool: PgPool) -> (TestApi, String) {
    let limits = Limits {
        token_memory: Duration::from_millis(40),
        log_tick: Duration::from_millis(20),
        ..Limits::default()
    };
    let api = TestApi::with(pool, AuthMode::Tokens, limits);
    api.token("lasting", "ann", "read write", None).await;
    let job = api.call_as("lasting", Method::POST, "/jobs", Some(&json!({"command": "true"}))).await;
    let id = job.json()["id"].as_str().unwrap().to_owned();
    api.submit(&id, 4711, "node1").await;
    api.logs.write("main.out", "one\n");
    (api, id)
}

/// Every answer that goes on and on.
fn streams(id: &str) -> [String; 3] {
    ["/events?after=0".to_owned(), format!("/jobs/{id}/events"), format!("/jobs/{id}/logs?follow=true")]
}

async fn begun(api: &TestApi, token: &str, id: &str) -> Vec<Events> {
    let mut all = Vec::new();
    for path in streams(id) {
        let mut events = api.events_as(token, &path, None).await;
        assert!(events.next().await.is_some(), "{path}");
        all.push(events);
    }
    all
}

/// Every answer that is waited for, and what a new request is told, after the waiting ones were.
async fn refused_alike(api: &TestApi, token: &str, id: &str, loss: impl Future<Output = ()>) {
    let paths = [format!("/jobs/{id}?wait=60"), format!("/jobs/{id}/status?wait=60")];
    let mut waiting =
        pin!(async { tokio::join!(api.get_as(token, &paths[0]), api.get_as(token, &paths[1])) });
    assert!(timeout(Duration::from_millis(300), &mut waiting).await.is_err(), "they wait");
    loss.await;
    let told = timeout(LONG, waiting).await.expect("an answer soon after the loss");
    for (path, told) in paths.iter().zip([told.0, told.1]) {
        let anew = api.get_as(token, path).await;
        assert_eq!(told.status, 401, "{path}: {}", told.text());
        let but_its_id = |answer: &Answer| {
            let mut problem = answer.json();
            problem.as_object_mut().unwrap().remove("request_id").expect("each has one");
            problem
        };
        assert_eq!(but_its_id(&told), but_its_id(&anew), "{path}");
        assert_eq!(told.header("www-authenticate"), anew.header("www-authenticate"));
    }
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_waiting_caller_is_refused_soon_after_its_token_was_revoked(pool: PgPool) {
    let (api, id) = running(pool.clone()).await;
    for token in ["taken", "gone"] {
        api.token(token, "ann", "read", None).await;
    }
    api.token("short", "ann", "read", Some(api.clock.now() + TimeDelta::seconds(60))).await;
    let lasting = format!("/jobs/{id}/status?wait=60");
    let mut lasting = pin!(api.get_as("lasting", &lasting));
    assert!(timeout(Duration::from_millis(100), &mut lasting).await.is_err(), "it waits");
    refused_alike(&api, "taken", &id, revoke(&api, "taken")).await;
    refused_alike(&api, "gone", &id, async {
        sqlx::raw_sql("delete from tokens where name = 'gone'").execute(&pool).await.unwrap();
    })
    .await;
    refused_alike(&api, "short", &id, async { api.clock.advance(TimeDelta::seconds(60)) }).await;
    assert!(timeout(Duration::from_millis(100), &mut lasting).await.is_err(), "it waits still");
    api.end(&id).await;
    assert_eq!(timeout(LONG, lasting).await.unwrap().json()["status"], "Done");
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_waiting_caller_is_refused_soon_after_its_signed_token_has_expired(pool: PgPool) {
    let issuer = Arc::new(Issuer::new());
    let limits = Limits { token_memory: Duration::from_millis(40), ..Limits::default() };
    let api = TestApi::trusting(pool, &issuer, limits);
    let token = issuer.sign(&claims("ann", "read write", api.clock.now()));
    let job = api.call_as(&token, Method::POST, "/jobs", Some(&json!({"command": "true"}))).await;
    let id = job.json()["id"].as_str().unwrap().to_owned();
    refused_alike(&api, &token, &id, async { api.clock.advance(TimeDelta::seconds(310)) }).await;
    api.get_as(&token, "/jobs").await.problem(401, "token_expired");
}

async fn revoke(api: &TestApi, name: &str) {
    let tokens = api.store.list_tokens(None).await.unwrap();
    let token = tokens.iter().find(|token| token.name == name).unwrap().id;
    api.store.revoke_token(token, api.clock.now()).await.unwrap();
}

const LAST_WORD: &str = ": the token of this stream is no longer valid\n\n";

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn every_stream_ends_soon_after_its_token_was_revoked_and_no_other(pool: PgPool) {
    let (api, id) = running(pool).await;
    api.token("taken", "ann", "read", None).await;
    let mut lasting = begun(&api, "lasting", &id).await;
    let taken = begun(&api, "taken", &id).await;
    revoke(&api, "taken").await;
    for mut events in taken {
        events.rest().await;
        assert!(events.raw.ends_with(LAST_WORD), "{}", events.raw);
    }
    for path in streams(&id) {
        api.get_as("taken", &path).await.problem(401, "unauthorized");
    }
    api.logs.append("main.out", "two\n");
    api.end(&id).await;
    let ends = async |events: &mut Events| events.named("end").await;
    let transition = lasting[0].named("transition").await;
    assert_eq!(transition.data["job_id"], json!(id));
    ends(&mut lasting[1]).await;
    ends(&mut lasting[2]).await;
}

/// The looks of all streams in need of one are made in turns: one that is stuck would be the end of all.
#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_client_that_does_not_read_does_not_delay_the_token_checks_of_others(pool: PgPool) {
    let (api, id) = running(pool.clone()).await;
    api.token("taken", "ann", "read", None).await;
    let mut idle = begun(&api, "lasting", &id).await;
    #[expect(clippy::disallowed_methods, reason = "nobody stops waiting for it")]
    let mut slow = pool.begin().await.unwrap();
    sqlx::raw_sql("lock table tokens in access exclusive mode").execute(&mut *slow).await.unwrap();
    for events in &mut idle {
        // Until it looks, which takes as long as the database is slow. It is not read any more then.
        while timeout(Duration::from_millis(100), events.frame()).await.is_ok() {}
    }
    slow.commit().await.unwrap();
    let taken = begun(&api, "taken", &id).await;
    revoke(&api, "taken").await;
    for mut events in taken {
        events.rest().await;
        assert!(events.raw.ends_with(LAST_WORD), "{}", events.raw);
    }
    drop(idle);
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn every_stream_ends_soon_after_its_token_has_expired(pool: PgPool) {
    let (api, id) = running(pool).await;
    api.token("short", "ann", "read", Some(api.clock.now() + TimeDelta::seconds(60))).await;
    let streams = begun(&api, "short", &id).await;
    api.clock.advance(TimeDelta::seconds(60));
    for mut events in streams {
        events.rest().await;
        assert!(events.raw.ends_with(LAST_WORD), "{}", events.raw);
    }
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_token_that_was_deleted_from_the_database_ends_its_streams(pool: PgPool) {
    let (api, id) = running(pool.clone()).await;
    api.token("gone", "ann", "read", None).await;
    let streams = begun(&api, "gone", &id).await;
    sqlx::raw_sql("delete from tokens where name = 'gone'").execute(&pool).await.unwrap();
    for mut events in streams {
        events.rest().await;
        assert!(events.raw.ends_with(LAST_WORD), "{}", events.raw);
    }
}

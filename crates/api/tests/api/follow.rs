//! A log followed by events, over a cluster in the test's hands.

use std::time::Duration;

use api::Limits;
use base64::{Engine, engine::general_purpose::STANDARD};
use remote::{LogFrom, LogQuestion};
use serde_json::json;
use sqlx::PgPool;

use crate::support::{TestApi, Told};

fn quick() -> Limits {
    Limits { log_tick: Duration::from_millis(20), ..Limits::default() }
}

async fn running(pool: PgPool, limits: Limits) -> (TestApi, String) {
    let api = TestApi::limited(pool, limits);
    let id = api.job(&json!({"command": "true"})).await;
    api.submit(&id, 4711, "node1").await;
    (api, id)
}

/// The bytes of one log among the events.
fn bytes_of(events: &[Told], file: &str) -> Vec<u8> {
    let pieces = events.iter().filter(|told| told.name == "log" && told.data["file"] == file);
    let bytes = |told: &Told| match told.data["text"].as_str() {
        Some(text) => text.as_bytes().to_vec(),
        None => STANDARD.decode(told.data["bytes"].as_str().unwrap()).unwrap(),
    };
    pieces.flat_map(bytes).collect()
}

fn names(events: &[Told]) -> Vec<&str> {
    events.iter().map(|told| told.name.as_str()).collect()
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_log_is_followed_from_its_beginning_to_the_end_of_the_job(pool: PgPool) {
    let (api, id) = running(pool, quick()).await;
    api.logs.write("main.out", "one\n");
    let mut events = api.events(&format!("/jobs/{id}/logs?follow=true&stream=out"), None).await;
    let first = events.next().await.unwrap();
    assert_eq!((first.name.as_str(), first.id.as_str()), ("log", "1;main.out=4@7"));
    assert_eq!(
        first.data,
        json!({"kind": "log", "attempt": 1, "file": "main.out", "offset": 0, "next_offset": 4, "text": "one\n"})
    );
    api.logs.append("main.out", "two\n");
    assert_eq!(events.next().await.unwrap().data["text"], "two\n");
    // The last words come after the database knows of the end.
    api.end(&id).await;
    api.logs.append("main.out", "three");
    let rest = events.rest().await;
    assert_eq!(bytes_of(&rest, "main.out"), b"three");
    let end = rest.last().unwrap();
    assert_eq!(
        (end.name.as_str(), &end.data["status"], &end.data["attempt"]),
        ("end", &json!("Done"), &json!(1))
    );
    assert_eq!(end.id, "1;main.out=13@7;end");
    let over = api.send(
        axum::http::Request::get(format!("/jobs/{id}/logs?follow=true&stream=out"))
            .header("last-event-id", &end.id)
            .body(axum::body::Body::empty())
            .unwrap(),
    );
    assert_eq!(over.await.status, 204, "a client that comes again after the end is told that it was the end");
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn every_event_is_a_place_to_go_on_from(pool: PgPool) {
    let (api, id) = running(pool, quick()).await;
    // More than one event, text and no text, both logs.
    let out: Vec<u8> = "Größe ✓ ".bytes().cycle().take(150_010).collect();
    let err: Vec<u8> = (0..=255).cycle().take(70_000).collect();
    api.logs.write("main.out", &out);
    api.logs.write("main.err", &err);
    api.end(&id).await;
    let path = format!("/jobs/{id}/logs?follow=true");
    let whole = api.events(&path, None).await.rest().await;
    assert_eq!(names(&whole), ["log", "log", "log", "log", "log", "log", "end"]);
    for stop in 0..whole.len() - 1 {
        let (before, last) = (&whole[..=stop], &whole[stop].id);
        let after = api.events(&path, Some(last)).await.rest().await;
        let all: Vec<_> = before.iter().chain(&after).cloned().collect();
        assert!(bytes_of(&all, "main.out") == out && bytes_of(&all, "main.err") == err, "after {last}");
        assert_eq!(after.last().unwrap().name, "end");
    }
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_tail_and_an_offset_are_places_to_begin(pool: PgPool) {
    let (api, id) = running(pool, quick()).await;
    api.logs.write("main.out", "one\ntwo\nthree\n");
    api.end(&id).await;
    for (query, text) in
        [("tail=1", "three\n"), ("stream=out&offset=5", "wo\nthree\n"), ("stream=err&offset=5", "")]
    {
        let events = api.events(&format!("/jobs/{id}/logs?follow=true&{query}"), None).await.rest().await;
        assert_eq!(bytes_of(&events, "main.out"), text.as_bytes(), "{query}");
    }
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_retried_job_is_followed_into_its_next_attempt(pool: PgPool) {
    let api = TestApi::limited(pool, quick());
    let id = api.job(&json!({"command": "true"})).await;
    let mut events = api.events(&format!("/jobs/{id}/logs?follow=true&stream=out&tail=1"), None).await;
    let waiting = events.named("waiting").await;
    assert!(
        waiting.data["detail"].as_str().unwrap().contains("not been submitted to Slurm yet"),
        "{waiting:?}"
    );
    api.logs.write("-4711/main.out", "first\n");
    api.fail(&id, 4711).await;
    assert_eq!(events.named("log").await.data["text"], "first\n");
    api.logs.write("-r2-4712/main.out", "second\nlast\n");
    api.submit(&id, 4712, "node1").await;
    api.logs.append("-4711/main.out", "late\n");
    let late = events.named("log").await;
    assert_eq!((&late.data["attempt"], &late.data["text"]), (&json!(1), &json!("late\n")));
    let next = events.named("attempt").await;
    assert_eq!(next.data, json!({"kind": "attempt", "attempt": 2, "previous": 1, "slurm_job_id": "4712"}));
    assert_eq!(next.id, "2");
    let second = events.named("log").await;
    assert_eq!((&second.data["attempt"], &second.data["text"]), (&json!(2), &json!("second\nlast\n")));
    api.end(&id).await;
    assert_eq!(events.named("end").await.data["attempt"], 2);

    let both =
        api.events(&format!("/jobs/{id}/logs?follow=true&stream=out&attempt=1"), None).await.rest().await;
    assert_eq!(names(&both), ["log", "attempt", "log", "end"]);
    let mut resumed = api.events(&format!("/jobs/{id}/logs?follow=true&stream=out"), Some(&late.id)).await;
    assert_eq!(names(&resumed.rest().await), ["attempt", "log", "end"]);
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_truncated_or_replaced_log_starts_again(pool: PgPool) {
    let (api, id) = running(pool, quick()).await;
    api.logs.write("main.out", "one two three");
    let mut events = api.events(&format!("/jobs/{id}/logs?follow=true&stream=out"), None).await;
    events.named("log").await;
    api.logs.write("main.out", "short");
    let reset = events.next().await.unwrap();
    assert_eq!(
        (reset.name.as_str(), &reset.data),
        ("reset", &json!({"kind": "reset", "attempt": 1, "file": "main.out", "reason": "truncated"}))
    );
    assert_eq!(events.next().await.unwrap().data["text"], "short");
    api.logs.replace("main.out", 8, "another file, and longer");
    assert_eq!(events.next().await.unwrap().data["reason"], "replaced");
    let again = events.next().await.unwrap();
    assert_eq!((&again.data["text"], &again.data["offset"]), (&json!("another file, and longer"), &json!(0)));
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn an_outage_is_reported_once_and_the_missed_bytes_follow(pool: PgPool) {
    let (api, id) = running(pool, quick()).await;
    api.logs.write("main.out", "one\n");
    let mut events = api.events(&format!("/jobs/{id}/logs?follow=true&stream=out"), None).await;
    events.named("log").await;
    *api.logs.outage.lock().unwrap() = Some("no login host of dgx answers");
    api.logs.append("main.out", "two\n");
    let stale = events.next().await.unwrap();
    assert!(
        stale.name == "stale" && stale.data["detail"].as_str().unwrap().contains("no login host"),
        "{stale:?}"
    );
    // Several vain tries later.
    let tries = api.logs.asked.lock().unwrap().len() + 2;
    while api.logs.asked.lock().unwrap().len() < tries {
        tokio::select! {
            told = events.next() => panic!("{told:?}"),
            () = tokio::time::sleep(Duration::from_millis(5)) => {}
        }
    }
    *api.logs.outage.lock().unwrap() = None;
    assert_eq!(events.next().await.unwrap().name, "live");
    assert_eq!(events.next().await.unwrap().data["text"], "two\n");
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn tasks_of_a_role_are_followed_as_they_appear(pool: PgPool) {
    let (api, id) = running(pool, quick()).await;
    api.logs.write("policy/0.out", "zero\n");
    let mut events = api.events(&format!("/jobs/{id}/logs?follow=true&stream=policy"), None).await;
    assert_eq!(events.named("log").await.data["file"], "policy/0.out");
    api.logs.write("policy/1.err", "one\n");
    let one = events.named("log").await;
    assert_eq!((&one.data["file"], &one.data["text"]), (&json!("policy/1.err"), &json!("one\n")));
    assert_eq!(one.id, "1;policy/0.out=5@7;policy/1.err=4@7");
    drop(events);
    api.logs.append("policy/0.out", "more\n");
    api.end(&id).await;
    let rest =
        api.events(&format!("/jobs/{id}/logs?follow=true&stream=policy"), Some(&one.id)).await.rest().await;
    assert_eq!((names(&rest), bytes_of(&rest, "policy/0.out")), (vec!["log", "end"], b"more\n".to_vec()));
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_job_that_never_ran_ends_the_stream_with_an_explanation(pool: PgPool) {
    let (api, id) = running(pool, quick()).await;
    api.end(&id).await;
    let events = api.events(&format!("/jobs/{id}/logs?follow=true"), None).await.rest().await;
    let end = events.last().unwrap();
    assert_eq!(
        (end.name.as_str(), &end.data["detail"]),
        ("end", &json!("The job has finished without writing this log."))
    );
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn fifty_followers_cost_the_cluster_what_one_does(pool: PgPool) {
    let (api, id) = running(pool, Limits { log_tick: Duration::from_millis(100), ..Limits::default() }).await;
    api.logs.write("main.out", "one\n");
    let path = format!("/jobs/{id}/logs?follow=true&stream=out");
    let mut all = Vec::new();
    for _ in 0..50 {
        all.push(api.events(&path, None).await);
    }
    let firsts = futures_util::future::join_all(all.iter_mut().map(|events| events.named("log"))).await;
    assert_eq!(firsts.len(), 50);
    let before = api.logs.asked.lock().unwrap().len();
    assert!(before <= 3, "{before} commands for the first bytes of all");
    let begun = std::time::Instant::now();
    for line in 0..5 {
        api.logs.append("main.out", format!("line {line}\n"));
        futures_util::future::join_all(all.iter_mut().map(|events| events.named("log"))).await;
    }
    let asked = api.logs.asked.lock().unwrap()[before..].to_vec();
    assert!(asked.iter().all(|command| command.len() == 1), "the same bytes are asked for once: {asked:?}");
    let ticks = begun.elapsed().as_millis() / 100 + 2;
    assert!(asked.len() as u128 <= ticks, "{} commands in {ticks} ticks", asked.len());
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn one_follower_too_many_gets_a_503(pool: PgPool) {
    let (api, id) = running(pool, Limits { log_followers: 1, ..quick() }).await;
    let path = format!("/jobs/{id}/logs?follow=true");
    let first = api.events(&path, None).await;
    let refused = api.get(&path).await;
    refused.problem(503, "logs_busy");
    assert_eq!(refused.header("retry-after"), "5");
    drop(first);
    drop(api.events(&path, None).await);
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_service_that_stops_ends_its_followers_streams(pool: PgPool) {
    let (api, id) = running(pool, quick()).await;
    api.logs.write("main.out", "one\n");
    let mut events = api.events(&format!("/jobs/{id}/logs?follow=true"), None).await;
    events.named("log").await;
    api.stop.cancel();
    assert!(!names(&events.rest().await).contains(&"end"), "the client is to come again");
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_follower_reconnects_after_a_while(pool: PgPool) {
    let (api, id) = running(pool, Limits { follow_for: Duration::from_secs(5), ..quick() }).await;
    api.logs.write("main.out", "one\n");
    let events = api.events(&format!("/jobs/{id}/logs?follow=true"), None).await.rest().await;
    assert_eq!(names(&events), ["log"]);
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn an_id_of_another_stream_is_refused(pool: PgPool) {
    let (api, id) = running(pool, quick()).await;
    let request = |last: &str| {
        axum::http::Request::get(format!("/jobs/{id}/logs?follow=true"))
            .header("last-event-id", last)
            .body(axum::body::Body::empty())
            .unwrap()
    };
    for last in ["42x", "0;main.out=1", "1;../main.out=1"] {
        let problem = api.send(request(last)).await.problem(400, "invalid_parameter");
        assert_eq!(problem["errors"][0]["parameter"], "Last-Event-ID");
    }
    api.send(request("9;main.out=1")).await.problem(404, "attempt_not_found");
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn half_a_character_is_never_shown(pool: PgPool) {
    let (api, id) = running(pool, quick()).await;
    api.logs.write("main.out", b"a\xe2\x9c");
    let mut events = api.events(&format!("/jobs/{id}/logs?follow=true&stream=out"), None).await;
    assert_eq!(events.named("log").await.data["text"], "a");
    api.logs.append("main.out", b"\x93b\xff");
    let rest = events.named("log").await;
    assert_eq!(rest.data["bytes"], STANDARD.encode(b"\xe2\x9c\x93b\xff"));
    let asked = api.logs.asked.lock().unwrap();
    let from_one =
        |question: &LogQuestion| matches!(question, LogQuestion::Part { from: LogFrom::Offset(1), .. });
    assert!(asked.iter().flatten().any(from_one), "the half is read once more");
}

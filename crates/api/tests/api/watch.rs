//! Events as streams and as pages, over a real database.

use api::{AuthMode, Limits};
use axum::{body::Body, http::Request};
use serde_json::{Value, json};
use sqlx::PgPool;
use std::time::Duration;

use crate::support::{Events, TestApi, Told};

fn seqs(events: &[Told]) -> Vec<u64> {
    events.iter().filter_map(|told| told.data["seq"].as_u64()).collect()
}

fn names(events: &[Told]) -> Vec<&str> {
    events.iter().map(|told| told.name.as_str()).collect()
}

/// The phases that the next events of a stream tell.
async fn phases(events: &mut Events, count: usize) -> Vec<String> {
    let mut phases = Vec::new();
    for _ in 0..count {
        let told = events.next().await.expect("the stream goes on");
        phases.push(told.data["data"]["phase"].as_str().unwrap().to_owned());
    }
    phases
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_job_is_watched_from_its_first_event_to_its_end(pool: PgPool) {
    let api = TestApi::new(pool);
    let id = api.job(&json!({"command": "true"})).await;
    let path = format!("/jobs/{id}/events");
    let mut events = api.events(&path, None).await;
    assert_eq!(phases(&mut events, 1).await, ["queued"]);
    api.submit(&id, 4711, "").await;
    let second = events.next().await.unwrap();
    assert_eq!((second.name.as_str(), &second.data["data"]["phase"]), ("transition", &json!("in_queue")));
    assert_eq!((&second.data["id"], &second.data["job_id"]), (&json!(second.id), &json!(id)));
    api.end(&id).await;
    let rest = events.rest().await;
    assert_eq!(names(&rest), ["transition", "end"]);
    assert_eq!(rest[1].data, json!({"kind": "end", "job_id": id, "status": "Done"}));
    assert_eq!(rest[0].id, rest[1].id);
    assert!(events.raw.starts_with("retry: 2000\n: following\n\n"), "{}", events.raw);

    // The same as pages, and again as a stream of a job that has ended.
    let listed = api.get(&path).await.json();
    assert_eq!(listed["events"][1], second.data);
    let whole = api.events(&path, None).await.rest().await;
    assert_eq!(seqs(&whole), [1, 2, 3]);
    assert_eq!(names(&whole).last(), Some(&"end"));
    assert_eq!(seqs(&api.events(&format!("{path}?after=2"), None).await.rest().await), [3]);
    assert_eq!(seqs(&api.events(&path, Some(&second.id)).await.rest().await), [3]);
    assert_eq!(names(&api.events(&format!("{path}?kind=status"), None).await.rest().await), ["end"]);
    let request =
        Request::get(&path).header("accept", "text/event-stream").header("last-event-id", &rest[1].id);
    assert_eq!(api.send(request.body(Body::empty()).unwrap()).await.status, 204);
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_retried_job_is_watched_again(pool: PgPool) {
    let api = TestApi::new(pool.clone());
    let id = api.job(&json!({"command": "true"})).await;
    api.end(&id).await;
    let path = format!("/jobs/{id}/events");
    let last = api.events(&path, None).await.rest().await.pop().unwrap().id;
    sqlx::raw_sql("update jobs set status = 'Error', version = version + 1").execute(&pool).await.unwrap();
    assert_eq!(api.post(&format!("/jobs/{id}/retry"), &json!({})).await.status, 202);
    let mut events = api.events(&path, Some(&last)).await;
    assert_eq!(phases(&mut events, 2).await, ["ended", "queued"]);
    api.end(&id).await;
    assert_eq!(names(&events.rest().await), ["transition", "end"]);
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn all_jobs_are_watched_from_now_on_and_on_from_the_last_event(pool: PgPool) {
    let api = TestApi::new(pool.clone());
    let one = api.job(&json!({"command": "true"})).await;
    let events = api.events("/events", None).await.begun().await;
    let begun = events.last_id.clone();
    drop(events);
    // Another process, which has seen nothing of all this.
    let other = TestApi::new(pool);
    let two = api.job(&json!({"command": "true"})).await;
    let mut events = other.events("/events", Some(&begun)).await;
    let told = events.next().await.unwrap();
    assert_eq!((&told.data["job_id"], &told.data["seq"]), (&json!(two), &json!(1)), "nothing of before");
    other.submit(&one, 4711, "").await;
    assert_eq!(events.next().await.unwrap().data["job_id"], json!(one));
    assert!(told.id > begun);

    let page = api.get("/events?limit=2").await;
    let json = page.json();
    assert_eq!(json["events"][1], told.data);
    let next = json["next_after"].as_str().unwrap();
    assert_eq!(next, told.id);
    assert_eq!(page.header("link"), format!("</events?limit=2&after={next}>; rel=\"next\""));
    let last = api.get(&format!("/events?limit=2&after={next}")).await;
    assert_eq!(last.json()["events"][0]["job_id"], json!(one));
    assert!(!last.headers.contains_key("link") && last.header("vary") == "accept");
    let of_one = api.get(&format!("/events?job={one}&kind=transition&cluster=dgx")).await.json();
    assert_eq!(of_one["events"].as_array().unwrap().len(), 2);
    assert_eq!(api.get("/events?cluster=elsewhere").await.json()["events"], json!([]));
    let all = api.events("/events?after=0", None).await;
    drop(all);
    for wrong in ["kind=colour", "limit=0", "after=7", "job=x", "cluster=%20", "before=3"] {
        assert_eq!(api.get(&format!("/events?{wrong}")).await.status, 400, "{wrong}");
    }
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_watcher_gets_no_events_of_other_owners_jobs(pool: PgPool) {
    let api = TestApi::guarded(pool);
    for (token, owner, scopes) in
        [("a", "alice", "read write"), ("b", "bob", "read write"), ("c", "carol", "admin")]
    {
        api.token(token, owner, scopes, None).await;
    }
    let mut streams = Vec::new();
    for token in ["a", "b", "c"] {
        streams.push(api.events_as(token, "/events", None).await.begun().await);
    }
    let job = async |token: &str| {
        let answer =
            api.call_as(token, "POST".parse().unwrap(), "/jobs", Some(&json!({"command": "true"}))).await;
        answer.json()["id"].clone()
    };
    // What a stream finds in the database when it begins, then what the feed tells it.
    let (mut of_alice, mut of_bob) = (Value::Null, Value::Null);
    for round in ["from the database", "from the feed"] {
        (of_alice, of_bob) = (job("a").await, job("b").await);
        let mut seen = Vec::new();
        for (stream, count) in streams.iter_mut().zip([1, 1, 2]) {
            for _ in 0..count {
                seen.push(stream.next().await.unwrap().data["job_id"].clone());
            }
        }
        assert_eq!(seen, [&of_alice, &of_bob, &of_alice, &of_bob].map(Value::clone), "{round}");
    }
    let listed = api.get_as("b", "/events").await.json();
    assert_eq!((listed["events"].as_array().unwrap().len(), &listed["events"][1]["job_id"]), (2, &of_bob));
    let mut again = api.events_as("b", "/events?after=0", None).await;
    again.next().await;
    assert_eq!(again.next().await.unwrap().data["job_id"], of_bob);
    let foreign = format!("/jobs/{}/events", of_alice.as_str().unwrap());
    api.get_as("b", &foreign).await.problem(404, "job_not_found");
    let filtered = format!("/events?job={}", of_alice.as_str().unwrap());
    assert_eq!(api.get_as("b", &filtered).await.json()["events"], json!([]));
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_slow_watcher_reads_the_rest_from_the_database(pool: PgPool) {
    const CHANGES: u64 = 300;
    let api = TestApi::new(pool.clone());
    let id = api.job(&json!({"command": "true"})).await;
    let mut events = api.events(&format!("/jobs/{id}/events"), None).await;
    assert_eq!(phases(&mut events, 1).await, ["queued"]);
    // More than the feed holds for a watcher of one job, each an event of its own.
    let mut all = api.events("/events", None).await.begun().await;
    for attempt in 1..=CHANGES {
        let change = format!("update jobs set attempt = {attempt}, version = version + 1");
        sqlx::raw_sql(sqlx::AssertSqlSafe(change)).execute(&pool).await.unwrap();
    }
    for watcher in [&mut all, &mut events] {
        for seq in 2..=CHANGES + 1 {
            assert_eq!(watcher.next().await.unwrap().data["seq"], seq);
        }
    }
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_stream_that_is_not_read_holds_a_small_page_and_loses_no_event(pool: PgPool) {
    const EVENTS: u64 = 40;
    const PAGE_BYTES: usize = 64 * 1024;
    let api = TestApi::new(pool.clone());
    let id = api.job(&json!({"command": "true"})).await;
    let run = async |statement: String| {
        sqlx::raw_sql(sqlx::AssertSqlSafe(statement)).execute(&pool).await.unwrap();
    };
    run(format!(
        "insert into job_events (job_id, seq, at, kind, attempt, file, data)
         select '{id}'::uuid, n, now(), 'status', 1, 'status.json', '{{}}'::jsonb
         from generate_series(2, {EVENTS}) n"
    ))
    .await;
    // An event that is larger than a page is a page of its own.
    for line in [16_000, 100_000] {
        for path in [format!("/jobs/{id}/events"), "/events?after=0".to_owned()] {
            run(format!(
                "update job_events set data = jsonb_build_object('text', repeat('x', {line})) where seq > 1"
            ))
            .await;
            let mut events = api.events(&path, None).await;
            let mut told = vec![events.next().await.expect("the first event")];
            // From now on only the events that the stream has in memory are large.
            run("update job_events set data = '{}' where seq > 1".to_owned()).await;
            for _ in 1..EVENTS {
                told.push(events.next().await.expect("the stream goes on"));
            }
            assert_eq!(seqs(&told), (1..=EVENTS).collect::<Vec<_>>(), "{path}");
            let held = told.iter().filter(|told| told.data["data"]["text"].is_string()).count();
            assert!((1..=PAGE_BYTES / line + 1).contains(&held), "{path}: {held} events of {line} bytes");
        }
    }
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn an_id_that_was_never_given_is_answered_with_reset(pool: PgPool) {
    let api = TestApi::new(pool);
    let id = api.job(&json!({"command": "true"})).await;
    let late = "0000000000ffffff";
    let mut events = api.events(&format!("/jobs/{id}/events"), Some(late)).await;
    assert_eq!(events.next().await.unwrap().name, "reset");
    assert_eq!(phases(&mut events, 1).await, ["queued"]);
    let mut events = api.events("/events", Some(late)).await;
    let reset = events.next().await.unwrap();
    assert!(reset.name == "reset" && reset.id.as_str() < late && reset.id.as_str() > "0");
    api.submit(&id, 4711, "").await;
    assert_eq!(phases(&mut events, 1).await, ["in_queue"]);
    for path in [format!("/jobs/{id}/events"), "/events".to_owned()] {
        let request =
            Request::get(path).header("accept", "text/event-stream").header("last-event-id", "seven");
        api.send(request.body(Body::empty()).unwrap()).await.problem(400, "invalid_parameter");
    }
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn the_deletion_of_a_job_is_its_last_and_only_remaining_event(pool: PgPool) {
    let api = TestApi::new(pool);
    let id = api.job(&json!({"command": "true"})).await;
    api.end(&id).await;
    let mut events = api.events("/events", None).await.begun().await;
    let delete = Request::delete(format!("/jobs/{id}")).body(Body::empty()).unwrap();
    assert_eq!(api.send(delete).await.status, 204);
    let told = events.next().await.unwrap();
    assert_eq!(
        (told.name.as_str(), &told.data["job_id"], &told.data["seq"]),
        ("deleted", &json!(id), &json!(3))
    );
    let listed = api.get("/events").await.json();
    assert_eq!(listed["events"].as_array().unwrap().len(), 1);
    assert_eq!(listed["events"][0], told.data);
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_stream_is_kept_alive_and_ends_in_order_when_the_service_stops(pool: PgPool) {
    let limits = Limits { heartbeat: Duration::from_millis(30), ..Limits::default() };
    let api = TestApi::limited(pool, limits);
    let id = api.job(&json!({"command": "true"})).await;
    for path in ["/events".to_owned(), format!("/jobs/{id}/events")] {
        let mut events = api.events(&path, None).await;
        while !events.raw.contains(": keep-alive\n") {
            events.frame().await;
        }
    }
    let mut all = api.events("/events", None).await.begun().await;
    let mut one = api.events(&format!("/jobs/{id}/events"), None).await;
    assert_eq!(phases(&mut one, 1).await, ["queued"]);
    api.stop.cancel();
    for events in [&mut all, &mut one] {
        assert!(events.rest().await.is_empty());
        assert!(
            events.raw.ends_with("retry: 1000\n: the service stops; reconnect with Last-Event-ID\n\n"),
            "{}",
            events.raw
        );
    }
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn the_number_of_watchers_is_limited(pool: PgPool) {
    let api = TestApi::limited(pool, Limits { watchers: 1, ..Limits::default() });
    let id = api.job(&json!({"command": "true"})).await;
    let first = api.events("/events", None).await.begun().await;
    let busy = async |path: String| {
        let request = Request::get(path).header("accept", "text/event-stream");
        let answer = api.send(request.body(Body::empty()).unwrap());
        tokio::time::timeout(Duration::from_mins(3), answer).await.expect("an answer and no stream")
    };
    for path in ["/events".to_owned(), format!("/jobs/{id}/events"), format!("/jobs/{id}/status?wait=1")] {
        busy(path).await.problem(503, "watchers_busy");
    }
    drop(first);
    api.events("/events", None).await.begun().await;
}

#[tokio::test]
async fn without_a_database_a_watcher_gets_an_explanation() {
    let api = TestApi::offline(AuthMode::Disabled);
    let request = Request::get("/jobs/0f8fad5b-d9cb-469f-a165-70867728950e/events")
        .header("accept", "text/event-stream");
    api.send(request.body(Body::empty()).unwrap()).await.problem(503, "database_unavailable");
}

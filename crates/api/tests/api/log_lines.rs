//! What the service writes about a job: a search for its id has to find all of it.

use std::{
    cell::RefCell,
    io::{self, Write},
    sync::Once,
};

use api::AuthMode;
use serde_json::{Value, json};
use sqlx::PgPool;

use crate::support::TestApi;

thread_local! {
    /// What a test has written so far, on the one thread that each test has.
    static WRITTEN: RefCell<Option<Vec<u8>>> = const { RefCell::new(None) };
}

struct ToThisTest;

impl Write for ToThisTest {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        WRITTEN.with_borrow_mut(|written| written.iter_mut().for_each(|text| text.extend(bytes)));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The lines of this crate that are written while something happens, in the form that is shipped to a log store.
///
/// One subscriber for all tests: `tracing` remembers for the whole process whether anybody listens, and a test on
/// another thread, without one of its own, would settle that for this one.
pub(crate) async fn lines_of<T>(happening: impl Future<Output = T>) -> (T, Vec<Value>) {
    static LISTENING: Once = Once::new();
    LISTENING
        .call_once(|| tracing_subscriber::fmt().json().flatten_event(true).with_writer(|| ToThisTest).init());
    WRITTEN.set(Some(Vec::new()));
    let result = happening.await;
    let text = String::from_utf8(WRITTEN.take().unwrap()).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let ours = lines.filter(|line| line["target"].as_str().unwrap().starts_with("api"));
    (result, ours.collect())
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn an_accepted_job_is_a_line_with_its_id_and_attempt_zero(pool: PgPool) {
    let api = TestApi::new(pool);
    let (id, lines) = lines_of(api.job(&json!({"command": "true"}))).await;
    let accepted = lines.iter().find(|line| line["message"] == "job accepted").unwrap();
    assert_eq!((&accepted["job.id"], &accepted["attempt"]), (&json!(id), &json!(0)), "{accepted}");
    for line in &lines {
        assert_eq!(line["span"]["job.id"], id, "{line}");
    }
}

#[tokio::test]
async fn every_line_of_a_request_about_a_job_has_its_id() {
    let api = TestApi::offline(AuthMode::Disabled);
    let id = "0f8fad5b-d9cb-469f-a165-70867728950e";
    for path in ["", "/status", "/logs"] {
        let (answer, lines) = lines_of(api.get(&format!("/jobs/{id}{path}"))).await;
        answer.problem(503, "database_unavailable");
        let messages: Vec<_> = lines.iter().map(|line| line["message"].as_str().unwrap()).collect();
        assert_eq!(messages, ["the database cannot be reached", "answered"]);
        for line in &lines {
            assert_eq!(line["span"]["job.id"], id, "{line}");
        }
    }
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_successful_probe_is_no_line_and_a_failed_one_is(pool: PgPool) {
    let api = TestApi::new(pool);
    for path in ["/livez", "/readyz", "/metrics", "/api/v1/health/liveness", "/api/v1/health/readiness"] {
        let (answer, lines) = lines_of(api.get(path)).await;
        assert_eq!((answer.status.as_u16(), lines), (200, Vec::new()), "{path}");
    }
    api.loops.0.lock().unwrap().push("poller of dgx".to_owned());
    let (_, lines) = lines_of(api.get("/readyz")).await;
    assert_eq!(lines[0]["problem"], "not_ready", "{lines:?}");
}

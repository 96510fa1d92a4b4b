use std::time::Duration;

use api::{Limits, LogBytes};
use serde_json::json;
use slurm::LogFrom;
use sqlx::PgPool;

use crate::support::TestApi;

async fn running(pool: PgPool) -> (TestApi, String) {
    running_on(TestApi::new(pool)).await
}

async fn running_on(api: TestApi) -> (TestApi, String) {
    let id = api.job(&json!({"command": "true"})).await;
    api.submit(&id, 4711, "node1").await;
    (api, id)
}

fn file(text: &[u8], start: u64, size: u64) -> LogBytes {
    LogBytes { size, start, bytes: text.to_vec() }
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn bytes_come_back_as_they_are(pool: PgPool) {
    let (api, id) = running(pool).await;
    api.logs.files.lock().unwrap().insert("main.out", file(b"a\xff\0\x1b[1m\n", 92, 99));
    let answer = api.get(&format!("/jobs/{id}/logs?stream=out")).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(answer.bytes, b"a\xff\0\x1b[1m\n");
    assert!(answer.header("content-type").starts_with("text/plain"));
    assert_eq!((answer.header("x-log-size"), answer.header("x-log-offset")), ("99", "92"));
    let asked = api.logs.asked.lock().unwrap();
    assert_eq!(asked[0].from, LogFrom::TailLines(500));
    assert_eq!(
        asked[0].paths[0].as_str(),
        format!("/lustre/users/tao/slurm-logs/tao-job-{id}-4711/main.out"),
        "the documented path is tried first"
    );
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn all_is_out_and_then_err_even_when_one_is_missing(pool: PgPool) {
    let (api, id) = running(pool).await;
    api.logs.files.lock().unwrap().insert("main.err", file(b"traceback\n", 0, 10));
    assert_eq!(api.get(&format!("/jobs/{id}/logs")).await.text(), "traceback\n");
    api.logs.files.lock().unwrap().insert("main.out", file(b"epoch 1", 0, 7));
    let both = api.get(&format!("/jobs/{id}/logs?tail=10")).await;
    assert_eq!(both.text(), "epoch 1\ntraceback\n");
    assert_eq!(both.header("x-log-size"), "17");
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn an_offset_is_passed_on_with_its_limit(pool: PgPool) {
    let (api, id) = running(pool).await;
    api.logs.files.lock().unwrap().insert("main.err", file(b"xyz", 7, 10));
    let answer = api.get(&format!("/jobs/{id}/logs?stream=err&offset=7&limit=3")).await;
    assert_eq!(answer.status, 200);
    assert_eq!(api.logs.asked.lock().unwrap()[0].from, LogFrom::Offset { offset: 7, limit: 3 });
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_job_without_a_log_says_why(pool: PgPool) {
    let (api, id) = running(pool).await;
    let waiting = api.get(&format!("/jobs/{id}/logs")).await.problem(404, "no_log_yet");
    assert!(waiting["detail"].as_str().unwrap().contains("has not written a log yet"));
    let unsent = api.job(&json!({"command": "true"})).await;
    let unsent = api.get(&format!("/jobs/{unsent}/logs")).await.problem(404, "no_log_yet");
    assert!(unsent["detail"].as_str().unwrap().contains("not been sent to Slurm yet"));
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_cluster_that_does_not_answer_is_a_503_with_a_time_to_ask_again(pool: PgPool) {
    let (api, id) = running(pool).await;
    *api.logs.outage.lock().unwrap() = Some("no login host of dgx answers.");
    let answer = api.get(&format!("/jobs/{id}/logs")).await;
    let problem = answer.problem(503, "cluster_unavailable");
    assert!(problem["detail"].as_str().unwrap().contains("no login host of dgx answers"));
    assert_eq!(answer.header("retry-after"), "5");
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn parameters_that_contradict_each_other_are_named(pool: PgPool) {
    let (api, id) = running(pool).await;
    for (query, parameter) in [
        ("stream=both", "stream"),
        ("tail=0", "tail"),
        ("tail=10001", "tail"),
        ("tail=5&offset=0", "tail"),
        ("limit=5", "limit"),
        ("stream=all&offset=0", "offset"),
        ("offset=-1", "offset"),
        ("attempt=1", "attempt"),
    ] {
        let problem = api.get(&format!("/jobs/{id}/logs?{query}")).await.problem(400, "invalid_parameter");
        assert_eq!(problem["errors"][0]["parameter"], parameter, "{query}");
    }
}

/// Waits until so many reads have reached the cluster.
async fn reads(api: &TestApi, wanted: usize) {
    while api.logs.asked.lock().unwrap().len() < wanted {
        tokio::task::yield_now().await;
    }
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_crowd_of_readers_is_told_to_come_back_and_never_reaches_the_cluster(pool: PgPool) {
    let limits = Limits { log_reads: 2, log_patience: Duration::from_millis(50), ..Limits::default() };
    let (api, id) = running_on(TestApi::limited(pool, limits)).await;
    api.logs.files.lock().unwrap().insert("main.out", file(b"epoch 1\n", 0, 8));
    let path = format!("/jobs/{id}/logs?stream=out");
    let held = api.logs.hold.lock().await;
    let crowd = async {
        reads(&api, 2).await;
        let refused = api.get(&path).await;
        refused.problem(503, "logs_busy");
        assert_eq!(refused.header("retry-after"), "5");
        assert_eq!(api.logs.asked.lock().unwrap().len(), 2);
        // What reads no log is not held up.
        assert_eq!(api.get(&format!("/jobs/{id}/status")).await.status, 200);
        drop(held);
    };
    let (first, second, ()) = tokio::join!(api.get(&path), api.get(&path), crowd);
    assert_eq!((first.text(), second.text()), ("epoch 1\n".to_owned(), "epoch 1\n".to_owned()));
    assert_eq!(api.get(&path).await.status, 200, "a turn is given back");
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_reader_that_comes_a_moment_too_early_gets_its_turn(pool: PgPool) {
    let limits = Limits { log_reads: 1, ..Limits::default() };
    let (api, id) = running_on(TestApi::limited(pool, limits)).await;
    api.logs.files.lock().unwrap().insert("main.out", file(b"epoch 1\n", 0, 8));
    let path = format!("/jobs/{id}/logs?stream=out");
    let held = api.logs.hold.lock().await;
    let release = async {
        reads(&api, 1).await;
        drop(held);
    };
    let (first, second, ()) = tokio::join!(api.get(&path), api.get(&path), release);
    assert_eq!((first.status.as_u16(), second.status.as_u16()), (200, 200));
}

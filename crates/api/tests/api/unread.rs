//! Answers that nobody reads.

use api::Limits;
use axum::{
    body::Body,
    http::{Request, StatusCode},
};
use serde_json::json;
use sqlx::PgPool;

use crate::support::TestApi;

const BUFFER: usize = 2 * 1024 * 1024;

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn large_answers_that_nobody_reads_take_a_bounded_memory(pool: PgPool) {
    let api = TestApi::limited(pool, Limits { buffer_bytes: BUFFER, ..Limits::default() });
    let job = json!({"image": "a:1", "network_arch": "a", "action": "train", "specs": {"text": "x".repeat(300_000)}});
    let path = format!("/jobs/{}", api.job(&job).await);
    let get = async |path: &str| api.answer(Request::get(path).body(Body::empty()).unwrap()).await;
    let mut unread = Vec::new();
    let refused = loop {
        let answer = get(&path).await;
        if answer.status() != StatusCode::OK {
            break answer;
        }
        unread.push(answer);
        assert!(unread.len() * 300_000 <= BUFFER, "{} answers in memory", unread.len());
    };
    assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert!(refused.headers().contains_key("retry-after"));
    // Small answers do not wait for large ones, nor do files that take no memory.
    assert_eq!(get("/jobs").await.status(), StatusCode::OK);
    assert_eq!(get("/docs/swagger-ui-bundle.js").await.status(), StatusCode::OK);
    // A call that reads takes no room for a body, whatever the size of the body may be.
    let chunks = futures_util::stream::pending::<Result<&[u8], std::io::Error>>();
    let sized_by_no_one = Request::get("/jobs").body(Body::from_stream(chunks)).unwrap();
    assert_eq!(api.answer(sized_by_no_one).await.status(), StatusCode::OK);
    assert_eq!(api.post("/jobs", &json!({"command": "true"})).await.status, 201);
    // A large request is refused before it is read.
    api.post("/jobs", &job).await.problem(503, "buffers_busy");
    drop(unread);
    assert_eq!(get(&path).await.status(), StatusCode::OK);
    assert_eq!(api.post("/jobs", &job).await.status, 201);
}

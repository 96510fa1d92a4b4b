use api::{AuthMode, Limits, RateLimit};
use sqlx::PgPool;

use crate::support::TestApi;

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_token_that_floods_gets_429_with_retry_after_and_others_are_served(pool: PgPool) {
    let limits = Limits { rate: RateLimit::new(1, 3), ..Limits::default() };
    let api = TestApi::with(pool, AuthMode::Tokens, limits);
    api.token("ann", "ann", "read", None).await;
    api.token("bob", "bob", "read", None).await;
    for left in [2, 1, 0] {
        let answer = api.get_as("ann", "/jobs").await;
        assert_eq!(answer.status, 200);
        assert_eq!(answer.header("ratelimit-policy"), r#""token";q=3;w=3"#);
        assert_eq!(answer.header("ratelimit"), format!("\"token\";r={left};t={}", 3 - left));
    }
    let flood = api.get_as("ann", "/jobs").await;
    flood.problem(429, "too_many_requests");
    assert_eq!(flood.header("retry-after"), "1");
    assert_eq!(flood.header("ratelimit"), r#""token";r=0;t=3"#);
    assert_eq!(api.get_as("bob", "/jobs").await.status, 200);
    // Who is nobody has no bucket, and health is always told.
    let nobody = api.get_as("nobody", "/jobs").await;
    nobody.problem(401, "unauthorized");
    assert!(!nobody.headers.contains_key("ratelimit"));
    assert_eq!(api.get_as("ann", "/livez").await.status, 200);
}

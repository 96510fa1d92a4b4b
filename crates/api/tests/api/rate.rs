use api::{AuthMode, Limits, RateLimit};
use futures_util::future::join_all;
use sqlx::PgPool;

use crate::support::TestApi;

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_token_that_floods_gets_429_with_retry_after_and_others_are_served(pool: PgPool) {
    let limits = Limits { rate: RateLimit::new(1, 3), ..Limits::default() };
    let api = TestApi::with(pool, AuthMode::Tokens, limits);
    api.token("ann", "ann", "read", None).await;
    api.token("bob", "bob", "read", None).await;
    // Many at the same time: a slow machine takes seconds for one after another, and each second allows one more.
    let answers = join_all((0..60).map(|_| api.get_as("ann", "/jobs"))).await;
    let (served, floods): (Vec<_>, Vec<_>) = answers.iter().partition(|answer| answer.status == 200);
    assert!(served.len() >= 3, "{}", served.len());
    for answer in served {
        assert_eq!(answer.header("ratelimit-policy"), r#""token";q=3;w=3"#);
    }
    let flood = floods[0];
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

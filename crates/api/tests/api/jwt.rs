//! Callers with tokens that somebody else has signed.

use std::{sync::Arc, time::Duration};

use api::Limits;
use axum::http::Method;
use base64::{Engine, prelude::BASE64_STANDARD};
use chrono::TimeDelta;
use domain::Clock;
use futures_util::future::join_all;
use serde_json::{Value, json};
use sqlx::PgPool;

use crate::{
    log_lines::lines_of,
    support::{Issuer, TestApi, claims},
};

struct Bench {
    api: TestApi,
    issuer: Arc<Issuer>,
}

impl Bench {
    fn new(pool: PgPool) -> Self {
        let issuer = Arc::new(Issuer::new());
        Self { api: TestApi::trusting(pool, &issuer, Limits::default()), issuer }
    }

    /// A good token but for the change.
    fn token(&self, owner: &str, change: impl FnOnce(&mut Value)) -> String {
        let mut claims = claims(owner, "read write", self.api.clock.now());
        change(&mut claims);
        self.issuer.sign(&claims)
    }

    /// Why the token is refused, or `ok`.
    async fn verdict(&self, token: &str) -> String {
        let answer = self.api.get_as(token, "/jobs").await;
        if answer.status == 200 {
            return "ok".to_owned();
        }
        let code = answer.json()["code"].as_str().unwrap().to_owned();
        let told = answer.headers.get("www-authenticate").map_or("", |value| value.to_str().unwrap());
        match answer.status.as_u16() {
            401 => assert!(told.contains(r#"error="invalid_token", error_description=""#), "{code}: {told}"),
            403 => assert!(told.contains("insufficient_scope"), "{told}"),
            503 => assert_eq!(answer.header("retry-after"), "5"),
            other => panic!("{other}: {}", answer.text()),
        }
        assert!(!answer.text().contains(token), "the answer repeats the token");
        code
    }
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_signed_token_is_refused_with_the_reason(pool: PgPool) {
    let bench = Bench::new(pool);
    let now = bench.api.clock.now().timestamp();
    let verdict = async |change: &dyn Fn(&mut Value)| bench.verdict(&bench.token("ann", change)).await;
    assert_eq!(verdict(&|_| ()).await, "ok");
    assert_eq!(verdict(&|claims| claims["exp"] = (now - 10).into()).await, "token_expired");
    assert_eq!(verdict(&|claims| claims["exp"] = (now - 9).into()).await, "ok", "within the leeway");
    assert_eq!(verdict(&|claims| claims["nbf"] = (now + 11).into()).await, "token_not_yet_valid");
    assert_eq!(verdict(&|claims| claims["nbf"] = (now + 10).into()).await, "ok");
    assert_eq!(verdict(&|claims| claims["aud"] = "account".into()).await, "token_wrong_audience");
    assert_eq!(verdict(&|claims| claims["aud"] = json!([])).await, "token_wrong_audience");
    assert_eq!(verdict(&|claims| claims["aud"] = "tao-slurm".into()).await, "ok");
    assert_eq!(
        verdict(&|claims| claims["iss"] = "https://issuer.example/".into()).await,
        "token_wrong_issuer"
    );
    assert_eq!(verdict(&|claims| claims["scope"] = "openid".into()).await, "forbidden");
    for claim in ["exp", "aud", "iss", "sub"] {
        let lacks = |claims: &mut Value| drop(claims.as_object_mut().unwrap().remove(claim));
        assert_eq!(verdict(&lacks).await, "token_claims", "{claim}");
    }
    let without_scopes = |claims: &mut Value| drop(claims.as_object_mut().unwrap().remove("scope"));
    assert_eq!(verdict(&without_scopes).await, "forbidden");
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_token_that_was_changed_forged_or_blown_up_is_refused(pool: PgPool) {
    let bench = Bench::new(pool);
    let good = bench.token("ann", |_| ());
    let other = bench.token("bob", |_| ());
    let (message, _) = good.rsplit_once('.').unwrap();
    let (_, signature) = other.rsplit_once('.').unwrap();
    assert_eq!(bench.verdict(&format!("{message}.{signature}")).await, "token_signature");
    let forger = Issuer::new();
    assert_eq!(
        bench.verdict(&forger.sign(&claims("ann", "admin", bench.api.clock.now()))).await,
        "token_signature"
    );
    assert_eq!(bench.verdict(&good.replacen('.', "..", 1)).await, "token_malformed");
    assert_eq!(bench.verdict("a.b").await, "token_malformed");
    let head = base64::prelude::BASE64_URL_SAFE_NO_PAD.encode(r#"{"alg":"none"}"#);
    let claims = message.split_once('.').unwrap().1;
    assert_eq!(bench.verdict(&format!("{head}.{claims}.")).await, "token_algorithm");
    let large = bench.token("ann", |claims| claims["groups"] = "x".repeat(13_000).into());
    assert_eq!(bench.verdict(&large).await, "token_malformed");
    // What has no dot is a token of the service's own, and none that is known.
    assert_eq!(bench.api.get_as("abc", "/jobs").await.json()["code"], "unauthorized");
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_new_key_works_at_once_and_known_keys_work_while_the_issuer_is_unreachable(pool: PgPool) {
    let bench = Bench::new(pool);
    let old = bench.token("ann", |_| ());
    assert_eq!(bench.verdict(&old).await, "ok");
    bench.issuer.rotate("second");
    let new = bench.token("ann", |_| ());
    assert_eq!(bench.verdict(&new).await, "token_unknown_key");
    bench.issuer.go_away();
    assert_eq!(bench.verdict(&old).await, "ok");
    assert_eq!(bench.verdict(&new).await, "keys_unavailable");
    bench.issuer.publish();
    assert_eq!(bench.verdict(&new).await, "ok");
    assert_eq!(bench.verdict(&old).await, "token_unknown_key");
    let asked = bench.issuer.asked();
    assert_eq!(bench.verdict(&new).await, "ok");
    assert_eq!(bench.issuer.asked(), asked, "what is known is not asked for");
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn the_same_name_in_a_signed_token_and_in_one_of_our_own_is_not_the_same_owner(pool: PgPool) {
    let bench = Bench::new(pool);
    bench.api.token("own", "ann", "read write", None).await;
    bench.api.token("twin", "jwt:ann", "read", None).await;
    let signed = bench.token("ann", |_| ());
    let post = async |token: &str| {
        let answer = bench.api.call_as(token, Method::POST, "/jobs", Some(&json!({"command": "true"}))).await;
        assert_eq!(answer.status, 201, "{}", answer.text());
        answer.header("location").to_owned()
    };
    let (of_own, of_signed) = (post("own").await, post(&signed).await);
    bench.api.get_as(&signed, &of_own).await.problem(404, "job_not_found");
    bench.api.get_as("own", &of_signed).await.problem(404, "job_not_found");
    bench.api.get_as(&bench.token("bob", |_| ()), &of_signed).await.problem(404, "job_not_found");
    // Another token of the same person, and one that was made for him on purpose.
    assert_eq!(bench.api.get_as(&bench.token("ann", |_| ()), &of_signed).await.status, 200);
    assert_eq!(bench.api.get_as("twin", &of_signed).await.status, 200);
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_signed_token_counts_for_its_owner_s_rate_and_is_taken_as_tao_s_password(pool: PgPool) {
    let issuer = Arc::new(Issuer::new());
    let limits = Limits { rate: api::RateLimit::new(1, 2), ..Limits::default() };
    let bench = Bench { api: TestApi::trusting(pool, &issuer, limits), issuer };
    let (one, two) = (bench.token("ann", |_| ()), bench.token("ann", |claims| claims["jti"] = 2.into()));
    // The keys are read once. The three then come at the same time, because each second allows one more.
    assert_eq!(bench.verdict(&bench.token("eve", |_| ())).await, "ok");
    let answers = join_all([&one, &two, &one].map(|token| bench.api.get_as(token, "/jobs"))).await;
    assert_eq!(answers[0].header("ratelimit"), r#""token";r=1;t=1"#);
    assert_eq!(answers[1].header("ratelimit"), r#""token";r=0;t=2"#);
    answers[2].problem(429, "too_many_requests");
    let basic = BASE64_STANDARD.encode(format!("tao:{}", bench.token("bob", |_| ())));
    let request = axum::http::Request::get("/api/v1/internal/container_job:status?results_dir=/results/x")
        .header("authorization", format!("Basic {basic}"));
    bench.api.send(request.body(axum::body::Body::empty()).unwrap()).await.problem(404, "job_not_found");
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn no_line_of_the_log_has_a_signed_token_or_a_part_of_it(pool: PgPool) {
    let bench = Bench::new(pool);
    let good = bench.token("ann", |_| ());
    let expired = bench.token("ann", |claims| claims["exp"] = 1.into());
    bench.issuer.go_away();
    for token in [&good, &expired] {
        let (_, lines) = lines_of(bench.api.get_as(token, "/jobs")).await;
        assert!(lines.iter().any(|line| line["message"] == "answered"), "{lines:?}");
        let text = serde_json::to_string(&lines).unwrap();
        for part in token.split('.') {
            assert!(!text.contains(part), "{text}");
        }
        bench.issuer.publish();
    }
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_stream_ends_soon_after_its_signed_token_has_expired(pool: PgPool) {
    let issuer = Arc::new(Issuer::new());
    let limits = Limits { token_memory: Duration::from_millis(40), ..Limits::default() };
    let bench = Bench { api: TestApi::trusting(pool, &issuer, limits), issuer };
    let token = bench.token("ann", |_| ());
    let mut events = bench.api.events_as(&token, "/events", None).await.begun().await;
    bench.api.clock.advance(TimeDelta::seconds(309));
    let lasting = bench.token("ann", |_| ());
    let job = bench.api.call_as(&lasting, Method::POST, "/jobs", Some(&json!({"command": "true"}))).await;
    assert_eq!(events.next().await.unwrap().data["job_id"], job.json()["id"], "within the leeway");
    bench.api.clock.advance(TimeDelta::seconds(1));
    assert!(events.rest().await.is_empty());
    assert!(events.raw.ends_with(": the token of this stream is no longer valid\n\n"), "{}", events.raw);
    assert_eq!(bench.verdict(&token).await, "token_expired");
}

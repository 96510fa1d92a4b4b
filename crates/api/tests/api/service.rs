use api::AuthMode;
use axum::{body::Body, http::Request};
use serde_json::json;
use sqlx::PgPool;

use crate::support::TestApi;

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_service_with_a_current_database_and_living_loops_is_ready(pool: PgPool) {
    let api = TestApi::guarded(pool);
    let answer = api.get("/readyz").await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    api.loops.0.lock().unwrap().push("poller of dgx".to_owned());
    let problem = api.get("/readyz").await.problem(503, "not_ready");
    assert_eq!(problem["detail"], "Not ready: poller of dgx.");
}

#[sqlx::test(migrations = false)]
async fn a_database_without_its_migrations_is_named(pool: PgPool) {
    let problem = TestApi::new(pool).get("/readyz").await.problem(503, "not_ready");
    assert!(problem["detail"].as_str().unwrap().contains("tao-slurm migrate"), "{problem}");
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_newer_schema_is_no_reason_to_stop_unless_it_needs_newer_programs(pool: PgPool) {
    let api = TestApi::guarded(pool.clone());
    for (version, name) in [(9001, "more min 1"), (9002, "another table")] {
        assert_eq!(api.get("/readyz").await.status, 200);
        let row = format!("insert into _sqlx_migrations values ({version}, '{name}', now(), true, '', 0)");
        sqlx::raw_sql(sqlx::AssertSqlSafe(row)).execute(&pool).await.unwrap();
    }
    let problem = api.get("/readyz").await.problem(503, "not_ready");
    let detail = problem["detail"].as_str().unwrap();
    for words in ["at version 9002", "run a newer program", "`tao-slurm migrate --to "] {
        assert!(detail.contains(words), "{detail}");
    }
}

#[tokio::test]
async fn a_service_without_database_lives_and_is_not_ready() {
    let api = TestApi::offline(AuthMode::Tokens);
    assert_eq!(api.get("/livez").await.status, 200);
    let problem = api.get("/readyz").await.problem(503, "not_ready");
    assert!(problem["detail"].as_str().unwrap().contains("database"), "{problem}");
}

#[tokio::test]
async fn metrics_are_text_for_prometheus() {
    let answer = TestApi::offline(AuthMode::Tokens).get("/metrics").await;
    assert_eq!(answer.status, 200);
    assert!(answer.header("content-type").starts_with("text/plain; version=0.0.4"));
}

#[tokio::test]
async fn the_documentation_page_is_served_without_the_network() {
    let api = TestApi::offline(AuthMode::Tokens);
    assert_eq!(api.get("/docs").await.status, 303);
    let page = api.get("/docs/").await;
    assert_eq!(page.status, 200);
    assert!(page.text().contains("swagger-ui"));
    assert!(page.text().contains("<title>tao-slurm API</title>"), "{}", page.text());
    let settings = api.get("/docs/swagger-initializer.js").await;
    assert!(settings.text().contains("/openapi.json"), "{}", settings.text());
    // A token stays after a reload of the page.
    assert!(settings.text().contains("\"persistAuthorization\": true"), "{}", settings.text());
    assert_eq!(api.get("/docs/swagger-ui.css").await.status, 200);
}

#[tokio::test]
async fn the_bare_address_says_where_everything_is() {
    let api = TestApi::offline(AuthMode::Tokens);
    let start = api.get("/").await;
    assert_eq!(start.status, 200);
    for key in ["documentation", "openapi", "metrics"] {
        let path = start.json()[key].as_str().unwrap().to_owned();
        assert_eq!(api.get(&path).await.status, 200, "{path}");
    }
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_process_without_an_api_serves_health_and_metrics(pool: PgPool) {
    let api = TestApi::health_only(pool);
    for path in ["/livez", "/readyz", "/metrics"] {
        assert_eq!(api.get(path).await.status, 200, "{path}");
    }
    api.loops.0.lock().unwrap().push("poller of dgx".to_owned());
    api.get("/readyz").await.problem(503, "not_ready");
    for path in ["/jobs", "/docs", "/openapi.json"] {
        let problem = api.get(path).await.problem(404, "not_found");
        assert!(problem["detail"].as_str().unwrap().contains("/readyz"), "{problem}");
    }
    let wrong = Request::post("/livez").body(Body::empty()).unwrap();
    api.send(wrong).await.problem(405, "method_not_allowed");
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_connection_beyond_the_limits_is_for_probes_only(pool: PgPool) {
    let api = TestApi::crowded(pool);
    for path in ["/livez", "/readyz", "/metrics", "/api/v1/health/liveness", "/api/v1/health/readiness"] {
        assert_eq!(api.get(path).await.status, 200, "{path}");
    }
    for path in ["/jobs", "/events", "/docs/", "/openapi.json", "/nothing"] {
        let answer = api.get(path).await;
        answer.problem(503, "connections_busy");
        assert_eq!(answer.header("retry-after"), "5", "{path}");
    }
    api.post("/jobs", &json!({"command": "true"})).await.problem(503, "connections_busy");
}

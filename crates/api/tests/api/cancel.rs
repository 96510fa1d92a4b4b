use serde_json::json;
use sqlx::PgPool;

use crate::support::TestApi;

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_cancel_can_be_repeated(pool: PgPool) {
    let api = TestApi::new(pool);
    let id = api.job(&json!({"command": "true"})).await;
    for _ in 0..2 {
        let answer = api.post(&format!("/jobs/{id}/cancel"), &json!({})).await;
        assert_eq!(answer.status, 202, "{}", answer.text());
        assert_eq!(answer.json()["status"], "Canceling");
        assert_eq!(answer.json()["version"], 2);
    }
    assert_eq!(api.get(&format!("/jobs/{id}/status")).await.json()["status"], "Canceling");
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_finished_job_is_not_changed(pool: PgPool) {
    let api = TestApi::new(pool);
    let id = api.job(&json!({"command": "true"})).await;
    api.end(&id).await;
    let before = api.get(&format!("/jobs/{id}/status")).await.json();
    let answer = api.post(&format!("/jobs/{id}/cancel"), &json!({})).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.json(), before);
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_job_that_does_not_exist_cannot_be_canceled(pool: PgPool) {
    let api = TestApi::new(pool);
    let path = "/jobs/0f8fad5b-d9cb-469f-a165-70867728950e/cancel";
    api.post(path, &json!({})).await.problem(404, "job_not_found");
}

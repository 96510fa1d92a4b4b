//! What happened to a job: its events, its attempts, its scripts.

use serde_json::json;
use sqlx::PgPool;

use crate::support::TestApi;

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn events_are_listed_in_order_by_pages_and_kinds(pool: PgPool) {
    let api = TestApi::new(pool.clone());
    let id = api.job(&json!({"command": "true"})).await;
    api.submit(&id, 4711, "").await;
    api.post(&format!("/jobs/{id}/cancel"), &json!({})).await;
    let path = format!("/jobs/{id}/events");
    let all = api.get(&path).await.json();
    assert_eq!(all["job_id"], id.as_str());
    let events = all["events"].as_array().unwrap();
    let numbers: Vec<_> = events.iter().map(|event| event["seq"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
    assert_eq!(events[0]["kind"], "transition");
    assert_eq!((&events[0]["data"]["phase"], &events[0]["attempt"]), (&json!("queued"), &json!(0)));
    let last = events.last().unwrap();
    assert_eq!(
        (&last["data"]["status"], &last["data"]["slurm_job_id"]),
        (&json!("Canceling"), &json!("4711"))
    );
    assert_eq!(all["next_after"], last["seq"]);

    let first = api.get(&format!("{path}?limit=1")).await.json();
    assert_eq!((first["events"].as_array().unwrap().len(), &first["next_after"]), (1, &json!(1)));
    let rest = api.get(&format!("{path}?after=1&kind=transition&kind=status")).await.json();
    assert_eq!(rest["events"].as_array().unwrap().len(), events.len() - 1);
    let none = api.get(&format!("{path}?kind=status&after=7")).await.json();
    assert_eq!((&none["events"], &none["next_after"]), (&json!([]), &json!(7)));
    let link = api.get(&format!("{path}?limit=1&kind=transition")).await;
    assert_eq!(link.header("link"), format!("<{path}?limit=1&kind=transition&after=1>; rel=\"next\""));
    assert!(!api.get(&path).await.headers.contains_key("link"));
    for wrong in ["kind=colour", "limit=0", "limit=1001", "after=-1", "before=3"] {
        assert_eq!(api.get(&format!("{path}?{wrong}")).await.status, 400, "{wrong}");
    }
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn attempts_have_outcomes_and_their_scripts_are_stored(pool: PgPool) {
    let api = TestApi::new(pool.clone());
    let id = api.job(&json!({"command": "true"})).await;
    assert_eq!(api.get(&format!("/jobs/{id}/attempts")).await.json()["attempts"], json!([]));
    let script = format!("/jobs/{id}/script");
    let none = api.get(&script).await;
    assert_eq!((none.status.as_u16(), &none.json()["code"]), (404, &json!("no_script_yet")));

    api.submit(&id, 4711, "node[01-02]").await;
    sqlx::raw_sql(
        "update slurm_metadata set script = '#!/bin/bash', outcome = 'retried', why = 'A node died.',
         concluded_at = now(), rule = 'node_fail', excluded_nodes = '{node03}'",
    )
    .execute(&pool)
    .await
    .unwrap();
    let attempts = api.get(&format!("/jobs/{id}/attempts")).await.json();
    let one = &attempts["attempts"][0];
    assert_eq!((&one["number"], &one["slurm_job_id"]), (&json!(1), &json!("4711")));
    assert_eq!(one["slurm_job_name"], format!("tao-job-{id}"));
    assert_eq!((&one["outcome"], &one["outcome_reason"]), (&json!("retried"), &json!("A node died.")));
    assert_eq!((&one["nodes"], &one["excluded_nodes"]), (&json!(["node01", "node02"]), &json!(["node03"])));
    let answer = api.get(&format!("{script}?attempt=1")).await;
    assert_eq!(
        (answer.text().as_str(), answer.header("content-type")),
        ("#!/bin/bash", "text/plain; charset=utf-8")
    );
    let wrong = api.get(&format!("{script}?attempt=2")).await;
    assert_eq!((wrong.status.as_u16(), &wrong.json()["code"]), (404, &json!("attempt_not_found")));
}

use axum::{
    body::Body,
    http::{Method, Request},
};
use chrono::TimeDelta;
use domain::Clock;
use serde_json::{Value, json};
use sqlx::PgPool;

use crate::{clusters::learn, support::TestApi};

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_status_has_exactly_its_fields(pool: PgPool) {
    let api = TestApi::new(pool);
    let id = api.job(&json!({"command": "true", "name": "clip"})).await;
    api.submit(&id, 4711, "node[01-03]").await;
    let status = api.get(&format!("/jobs/{id}/status")).await.json();
    let fields: Vec<_> = status.as_object().unwrap().keys().map(String::as_str).collect();
    let documented = "id name status phase message pending_reason pending queue_wait_seconds slurm_job_id slurm_state cluster partition nodes \
        attempt retry_count failure progress tasks created_on submitted_on started_on finished_on last_modified observed_at source \
        stale version";
    assert_eq!(fields, documented.split_whitespace().collect::<Vec<_>>());
    let progress: Vec<_> = status["progress"].as_object().unwrap().keys().map(String::as_str).collect();
    let documented = "epoch max_epoch percent done total eta eta_seconds time_per_epoch time_per_iter cur_iter key_metric message metrics";
    assert_eq!(progress, documented.split_whitespace().collect::<Vec<_>>());
    assert_eq!(status["slurm_job_id"], "4711");
    assert_eq!(status["nodes"], json!(["node01", "node02", "node03"]));
    assert_eq!((&status["attempt"], &status["phase"]), (&json!(1), &json!("in_queue")));
    let job = api.get(&format!("/jobs/{id}")).await.json();
    assert_eq!(job["attempt_details"]["slurm_job_name"], format!("tao-job-{id}"));
    assert_eq!(job["backend_details"]["slurm_metadata"]["slurm_job_id"], "4711");
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn an_unchanged_status_is_answered_with_304_and_a_changed_one_is_not(pool: PgPool) {
    let api = TestApi::new(pool);
    let id = api.job(&json!({"command": "true"})).await;
    let path = format!("/jobs/{id}/status");
    let first = api.get(&path).await;
    let etag = first.header("etag").to_owned();
    let ask = async || {
        let request = Request::get(&path).header("if-none-match", &etag).body(Body::empty()).unwrap();
        api.send(request).await
    };
    let same = ask().await;
    assert_eq!((same.status.as_u16(), same.bytes.len()), (304, 0));
    assert_eq!(same.header("etag"), etag);
    api.post(&format!("/jobs/{id}/cancel"), &json!({})).await;
    let changed = ask().await;
    assert_eq!(changed.status, 200);
    assert_ne!(changed.header("etag"), etag);
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_cluster_that_does_not_answer_makes_a_status_stale_and_changes_only_its_etag(pool: PgPool) {
    let api = TestApi::new(pool);
    let id = api.job(&json!({"command": "true"})).await;
    api.submit(&id, 4711, "").await;
    let path = format!("/jobs/{id}/status");
    let fresh = api.get(&path).await;
    api.clock.advance(TimeDelta::seconds(3600));
    let stale = api.get(&path).await;
    assert_ne!(fresh.header("etag"), stale.header("etag"));
    let (mut before, after) = (fresh.json(), stale.json());
    assert_eq!((&before["stale"], &after["stale"]), (&json!(false), &json!(true)));
    before["stale"] = json!(true);
    assert_eq!(before, after);
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn the_ids_of_earlier_attempts_are_kept(pool: PgPool) {
    let api = TestApi::new(pool);
    let id = api.job(&json!({"command": "true"})).await;
    api.fail(&id, 4710).await;
    api.submit(&id, 4711, "").await;
    let job = api.get(&format!("/jobs/{id}")).await.json();
    let metadata = &job["backend_details"]["slurm_metadata"];
    assert_eq!(metadata["slurm_job_id"], "4711");
    assert_eq!(metadata["failed_slurm_job_ids"], json!(["4710"]));
    assert_eq!(metadata["retry_count"], 1);
    assert_eq!((&job["attempt"], &job["attempt_details"]["number"]), (&json!(2), &json!(2)));
    let other = api.job(&json!({"command": "true"})).await;
    api.fail(&other, 4712).await;
    api.submit(&other, 4713, "").await;
    api.job(&json!({"command": "true"})).await;
    let list = api.get("/jobs").await.json();
    assert_eq!(list["jobs"][2]["backend_details"], job["backend_details"]);
    let earlier =
        |number: usize| &list["jobs"][number]["backend_details"]["slurm_metadata"]["failed_slurm_job_ids"];
    assert_eq!((earlier(0), earlier(1)), (&json!([]), &json!(["4712"])), "each job has its own");
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_status_explains_why_a_job_waits_and_until_when(pool: PgPool) {
    let api = TestApi::new(pool);
    let id = api.job(&json!({"command": "true"})).await;
    let status = async || api.get(&format!("/jobs/{id}/status")).await.json();
    let queued = status().await;
    assert_eq!((&queued["pending"], &queued["queue_wait_seconds"]), (&json!(null), &json!(null)));

    api.submit(&id, 4711, "").await;
    // Whole seconds, which the database keeps as they are.
    let start = chrono::DateTime::from_timestamp(api.clock.now().timestamp() + 7200, 0).unwrap();
    api.see_waiting(&id, "QOSMaxGRESPerUser", Some(start)).await;
    let waits = status().await;
    assert_eq!(waits["queue_wait_seconds"], 3600);
    let pending = &waits["pending"];
    let fields: Vec<_> = pending.as_object().unwrap().keys().map(String::as_str).collect();
    let documented = "reason meaning held_by limit advice needs_action queued_on estimated_start_on";
    assert_eq!(fields, documented.split_whitespace().collect::<Vec<_>>());
    assert_eq!((&pending["held_by"], &pending["limit"]), (&json!("qos"), &json!("MaxTRESPerUser=gres")));
    assert_eq!(pending["estimated_start_on"], json!(start));
    assert_eq!(pending["needs_action"], false);
    assert_eq!(api.get(&format!("/jobs/{id}")).await.json()["pending"], *pending);

    api.see_waiting(&id, "JobHeldUser", Some(start)).await;
    let held = status().await["pending"].clone();
    assert_eq!((&held["held_by"], &held["needs_action"]), (&json!("hold"), &json!(true)));
    assert_eq!(held["estimated_start_on"], json!(null), "nothing starts a held job");

    api.see_waiting(&id, "PlanetsNotAligned", None).await;
    let unknown = status().await["pending"].clone();
    assert_eq!(unknown["reason"], "PlanetsNotAligned");
    assert_eq!((&unknown["meaning"], &unknown["held_by"]), (&json!(null), &json!(null)));
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn busy_nodes_are_no_alarm_and_down_ones_are(pool: PgPool) {
    let api = TestApi::new(pool.clone());
    let id = api.job(&json!({"command": "true"})).await;
    api.submit(&id, 4711, "").await;
    let reason =
        "Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions";
    api.see_waiting(&id, reason, None).await;
    let stored = format!(
        "Waiting in Slurm's queue: nodes that it needs are in use, reserved for jobs that come first, down or drained ({reason})."
    );
    api.see(&id, |job| job.message.clone_from(&stored)).await;
    let seen = async || {
        // Another process, which has nothing in its cache.
        let api = TestApi::new(pool.clone());
        let answer = api.get(&format!("/jobs/{id}/status")).await;
        let status = answer.json();
        let (whole, list) = (api.get(&format!("/jobs/{id}")).await.json(), api.get("/jobs").await.json());
        for field in ["pending", "pending_reason", "message"] {
            assert_eq!((&whole[field], &list["jobs"][0][field]), (&status[field], &status[field]));
        }
        let of_tao =
            api.get(&format!("/api/v1/internal/container_job:status?results_dir=/results/{id}")).await;
        assert_eq!(of_tao.json()["message"], status["message"]);
        assert_eq!(status["pending_reason"], reason);
        (status, answer.header("etag").to_owned())
    };
    let said = |status: &Value| {
        let pending = &status["pending"];
        (pending["held_by"].clone(), pending["needs_action"].clone(), status["message"].clone())
    };
    let alarm = (json!("nodes"), json!(true), json!(stored));
    let (status, unknown) = seen().await;
    assert_eq!(said(&status), alarm, "no partition was reported");

    let rows = |state: &str| format!("polar*|up|4:00:00|n/a|4|{state}|64|1|gpu:8");
    learn(&api, &rows("allocated")).await;
    let (status, busy) = seen().await;
    let meaning = status["pending"]["meaning"].as_str().unwrap();
    let message = format!("Waiting in Slurm's queue: {meaning}.");
    assert_eq!(said(&status), (json!("resources"), json!(false), json!(message)));
    let message = message.to_lowercase();
    assert!(!message.contains("down") && !message.contains("drained"), "{message}");
    assert_ne!(unknown, busy, "another document has another ETag");

    learn(&api, &rows("drained")).await;
    let (status, down) = seen().await;
    assert_eq!((said(&status), down), (alarm, unknown));
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_job_is_read_again_only_after_a_change_and_a_deleted_one_is_not_shown(pool: PgPool) {
    let api = TestApi::guarded(pool.clone());
    for owner in ["ada", "bob"] {
        api.token(owner, owner, "read write", None).await;
    }
    let sent = api.call_as("ada", Method::POST, "/jobs", Some(&json!({"command": "true"}))).await.json();
    let path = format!("/jobs/{}/status", sent["id"].as_str().unwrap());
    let shown = async || api.get_as("ada", &path).await.json()["message"].as_str().map(str::to_owned);
    let change = async |what: &'static str| {
        sqlx::raw_sql(what).execute(&pool).await.unwrap();
    };
    let first = shown().await;
    assert_eq!(api.get_as("bob", &path).await.status, 404, "that it is known is nobody else's business");

    change("update jobs set message = 'not said'").await;
    assert_eq!(shown().await, first, "it was not read again");
    change("update jobs set message = 'changed', version = version + 1").await;
    assert_eq!(shown().await.as_deref(), Some("changed"));
    change("update jobs set message = 'as restored', last_modified = last_modified - interval '1 s'").await;
    assert_eq!(shown().await.as_deref(), Some("as restored"));

    change("update jobs set desired_state = 'delete'").await;
    assert_eq!(api.get_as("ada", &path).await.status, 404, "its remains are being removed");
    change("update jobs set desired_state = 'run'").await;
    assert_eq!(shown().await.as_deref(), Some("as restored"));
    change("delete from jobs").await;
    assert_eq!(api.get_as("ada", &path).await.status, 404);
    assert_eq!(api.get_as("bob", &path).await.status, 404);
}

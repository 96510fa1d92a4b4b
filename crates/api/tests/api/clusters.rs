use std::time::Duration;

use api::{AuthMode, ClusterUnavailable, HostReport, HostState, LinkReport, LinkUse};
use axum::http::Method;
use chrono::TimeDelta;
use domain::{
    Clock, Orphan, OrphanKind,
    preflight::{Check, Outcome},
};
use persistence::{OrphanRecords as _, PartitionTurns as _, PollResult, PollTurns as _};
use remote::{PartitionsAnswer, RawOutput, RemoteCommand};
use serde_json::json;
use sqlx::PgPool;
use uuid::Uuid;

use crate::support::TestApi;

const EVERY: Duration = Duration::from_mins(5);

fn host(name: &str, state: HostState) -> HostReport {
    let failed = state != HostState::Up;
    HostReport {
        host: name.to_owned(),
        state,
        for_the_last: failed.then_some(Duration::from_secs(30)),
        last_error: failed.then(|| "connection refused".to_owned()),
        retry_in: failed.then_some(Duration::from_secs(10)),
    }
}

fn link(used_for: LinkUse, hosts: Vec<HostReport>) -> LinkReport {
    LinkReport { used_for, hosts, sessions_open: 1, connects_total: 2, commands_total: 30, failures_total: 4 }
}

fn said(rows: &str) -> PartitionsAnswer {
    let mut lines = vec!["ENFORCE NO".to_owned()];
    lines.extend(rows.lines().map(|row| format!("ROW {row}")));
    lines.push(format!("END {}\n", lines.len()));
    let stdout = lines.join("\n").into_bytes();
    remote::Partitions.parse(&RawOutput { stdout, ..RawOutput::default() }).unwrap()
}

pub(crate) async fn learn(api: &TestApi, rows: &str) {
    let dgx = "dgx".parse().unwrap();
    api.store.take_partitions_turn(&dgx, EVERY).await.unwrap();
    api.store.record_partitions(&dgx, &said(rows), EVERY, api.clock.now()).await.unwrap();
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_cluster_that_was_not_contacted_yet_is_unknown(pool: PgPool) {
    let api = TestApi::new(pool);
    let list = api.get("/clusters").await.json();
    let dgx = &list["clusters"][0];
    assert_eq!(
        (&dgx["name"], &dgx["state"], &dgx["is_default"]),
        (&json!("dgx"), &json!("unknown"), &json!(true))
    );
    assert_eq!((&dgx["user"], &dgx["partition"]), (&json!("tao"), &json!("polar,grizzly")));
    assert_eq!((&dgx["poll"], &dgx["partitions_fetched_on"]), (&json!(null), &json!(null)));
    assert_eq!(dgx["defaults"]["max_num_gpus_per_node"], 8);
    assert_eq!(api.get("/clusters/dgx").await.json(), *dgx);
    let partitions = api.get("/clusters/dgx/partitions").await.json();
    assert_eq!((&partitions["partitions"], &partitions["stale"]), (&json!([]), &json!(true)));
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn login_hosts_breaker_and_costs_are_those_of_this_process(pool: PgPool) {
    let api = TestApi::new(pool);
    *api.links.0.lock().unwrap() = vec![
        link(LinkUse::Worker, vec![host("login1", HostState::Down), host("login2:2222", HostState::Up)]),
        link(
            LinkUse::Logs,
            vec![host("login1", HostState::Untried), host("login2:2222", HostState::Untried)],
        ),
    ];
    let dgx = api.get("/clusters/dgx").await.json();
    let first = &dgx["login_hosts"][0];
    assert_eq!((&first["host"], &first["state"]), (&json!("login1"), &json!("down")));
    assert_eq!(
        (&first["last_error"], &dgx["login_hosts"][1]["state"]),
        (&json!("connection refused"), &json!("up"))
    );
    let at = |field: &str| first[field].as_str().unwrap().parse::<chrono::DateTime<chrono::Utc>>().unwrap();
    assert_eq!(at("since"), api.clock.now() - TimeDelta::seconds(30));
    assert_eq!(at("next_attempt_on"), api.clock.now() + TimeDelta::seconds(10));
    assert_eq!((&dgx["state"], &dgx["breaker"]), (&json!("ok"), &json!("closed")));
    let ssh = &dgx["ssh"];
    assert_eq!((&ssh["scope"], &ssh["commands_total"]), (&json!("this_process"), &json!(60)));
    assert_eq!(
        (&ssh["by_use"][1]["used_for"], &ssh["by_use"][1]["connects_total"]),
        (&json!("logs"), &json!(2))
    );

    api.links.0.lock().unwrap()[0].hosts[1] = host("login2:2222", HostState::AuthRefused);
    let dgx = api.get("/clusters/dgx").await.json();
    assert_eq!((&dgx["state"], &dgx["breaker"]), (&json!("failing"), &json!("open")));
    api.links.0.lock().unwrap()[0].hosts[0] = host("login1", HostState::AuthRefused);
    let dgx = api.get("/clusters/dgx").await.json();
    assert_eq!(dgx["state"], "auth_required", "no host accepts a key of ours");
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn polls_are_shown_whichever_process_makes_them(pool: PgPool) {
    let api = TestApi::new(pool);
    let dgx = "dgx".parse().unwrap();
    let poll = async |token, result: PollResult<'_>| {
        let lease = api.store.acquire_poll(&dgx, Uuid::from_u128(token), EVERY).await.unwrap().unwrap();
        api.store.record_poll(&lease, result, Duration::from_millis(1), api.clock.now()).await.unwrap();
        // The next one is due a millisecond of the database's clock later.
        api.store.poll_soon(&dgx, Duration::ZERO).await.unwrap();
    };
    poll(1, PollResult::Answered).await;
    api.clock.advance(TimeDelta::seconds(7));
    let seen = api.get("/clusters/dgx").await.json();
    assert_eq!((&seen["poll"]["age_seconds"], &seen["poll"]["failures"]), (&json!(7.0), &json!(0)));
    assert_eq!(
        (&seen["state"], &seen["poll"]["stale"]),
        (&json!("ok"), &json!(false)),
        "an idle cluster is not stale"
    );
    tokio::time::sleep(Duration::from_millis(5)).await;
    poll(2, PollResult::Unanswered { error: "no route", auth_required: false }).await;
    let seen = api.get("/clusters/dgx").await.json();
    assert_eq!((&seen["poll"]["failures"], &seen["poll"]["error"]), (&json!(1), &json!("no route")));
    assert_eq!(seen["state"], "failing");
    tokio::time::sleep(Duration::from_millis(5)).await;
    poll(3, PollResult::Unanswered { error: "no key", auth_required: true }).await;
    let seen = api.get("/clusters/dgx").await.json();
    assert_eq!((&seen["state"], &seen["poll"]["error"]), (&json!("auth_required"), &json!("no key")));
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn partitions_are_those_that_the_cluster_last_reported(pool: PgPool) {
    let api = TestApi::new(pool);
    learn(
        &api,
        "polar*|up|4:00:00|1:00:00|3|idle|64|512000|gpu:a100:8\npolar*|up|4:00:00|1:00:00|1|down*|64|256000|gpu:a100:4\n\
         endless|drain|infinite|n/a|0|n/a|0|0|(null)",
    )
    .await;
    let list = api.get("/clusters/dgx/partitions").await.json();
    assert_eq!(
        (&list["stale"], &list["error"], &list["enforce_all_limits"]),
        (&json!(false), &json!(null), &json!(false))
    );
    assert_eq!(
        list["partitions"][0],
        json!({
            "name": "polar", "is_default": true, "availability": "up", "time_limit": "04:00:00",
            "time_limit_hours": 4.0, "default_time_hours": 1.0, "max_nodes": null, "allow_accounts": null, "nodes": 4,
            "nodes_by_state": {"down*": 1, "idle": 3}, "gpus_per_node": 8, "gpu_types": ["a100"],
            "gres": {"gpu:a100": 8}, "features": null, "accounts": {}, "cpus_per_node": 64, "memory_mib_per_node": 512_000
        })
    );
    let endless = &list["partitions"][1];
    assert_eq!((&endless["time_limit"], &endless["time_limit_hours"]), (&json!("UNLIMITED"), &json!(null)));
    assert_eq!((&endless["nodes_by_state"], &endless["gpus_per_node"]), (&json!({}), &json!(null)));
    assert!(api.get("/clusters/dgx").await.json()["partitions_fetched_on"].is_string());
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_job_beyond_what_its_partitions_allow_is_refused_with_where_the_limit_comes_from(pool: PgPool) {
    let api = TestApi::new(pool);
    learn(
        &api,
        "polar*|up|4:00:00|n/a|4|idle|64|1|gpu:8\ngrizzly|up|4:00:00|n/a|4|idle|64|1|gpu:4\n\
         long|up|7-00:00:00|n/a|4|idle|64|1|gpu:8",
    )
    .await;
    let refused = async |resources: serde_json::Value, partition: &str| {
        let body =
            json!({"command": "true", "resources": resources, "backend_details": {"partition": partition}});
        let problem = api.post("/jobs", &body).await.problem(422, "invalid_request");
        (problem["errors"][0]["pointer"].clone(), problem["errors"][0]["detail"].to_string())
    };
    let (pointer, detail) = refused(json!({"time_hours": 12}), "polar,grizzly").await;
    assert_eq!(pointer, "/resources/time_hours");
    assert!(detail.contains("partition polar allows 4") && detail.contains("sinfo"), "{detail}");
    let (pointer, detail) = refused(json!({"gpus_per_node": 8}), "grizzly").await;
    assert_eq!(pointer, "/resources/gpus_per_node");
    assert!(detail.contains("no node of grizzly has more than 4"), "{detail}");
    let (pointer, detail) = refused(json!({}), "nosuch").await;
    assert_eq!(pointer, "/backend_details/partition");
    assert!(detail.contains("polar, grizzly, long"), "{detail}");
    assert_eq!(api.get("/jobs").await.json()["jobs"], json!([]));

    let long =
        json!({"command": "true", "resources": {"time_hours": 12}, "backend_details": {"partition": "long"}});
    assert_eq!(
        api.post("/jobs", &long).await.status,
        201,
        "above max_time_hours, which says nothing of `long`"
    );
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn an_accepted_request_gets_the_same_answer_after_the_limits_have_changed(pool: PgPool) {
    let api = TestApi::new(pool);
    let id = "0f8fad5b-d9cb-469f-a165-70867728950e";
    let body = json!({"id": id, "command": "true", "resources": {"time_hours": 4}});
    assert_eq!(api.post("/jobs", &body).await.status, 201);
    learn(&api, "polar*|up|1:00:00|n/a|4|idle|64|1|gpu:8\ngrizzly|up|1:00:00|n/a|4|idle|64|1|gpu:8").await;
    // What is remembered is looked up again after a second.
    tokio::time::sleep(Duration::from_millis(1100)).await;
    assert_eq!(api.post("/jobs", &body).await.status, 200);
    let other = json!({"command": "true", "resources": {"time_hours": 4}});
    api.post("/jobs", &other).await.problem(422, "invalid_request");
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn an_unknown_cluster_is_a_404_that_lists_the_known_ones(pool: PgPool) {
    let api = TestApi::new(pool);
    for path in ["/clusters/nosuch", "/clusters/%00", "/clusters/nosuch/partitions"] {
        let problem = api.get(path).await.problem(404, "cluster_not_found");
        assert!(problem["detail"].as_str().unwrap().ends_with("clusters: dgx."), "{problem}");
    }
    api.get("/clusters?colour=red").await.problem(400, "invalid_parameter");
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn reading_clusters_needs_the_scope_read(pool: PgPool) {
    let api = TestApi::guarded(pool);
    api.token("reader", "ann", "read", None).await;
    api.token("writer", "ann", "write", None).await;
    for path in ["/clusters", "/clusters/dgx", "/clusters/dgx/partitions"] {
        api.get(path).await.problem(401, "unauthorized");
        api.get_as("writer", path).await.problem(403, "forbidden");
        assert_eq!(api.get_as("reader", path).await.status, 200, "{path}");
    }
}

#[tokio::test]
async fn without_the_database_clusters_are_a_503() {
    let api = TestApi::offline(AuthMode::Disabled);
    api.get("/clusters").await.problem(503, "database_unavailable");
}

fn check(id: &'static str, outcome: Outcome) -> Check {
    let mend = (outcome == Outcome::Fail).then(|| "Run: chmod 600 key".to_owned());
    Check { id, subject: None, outcome, seen: "mode 0644".to_owned(), mend }
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_preflight_is_a_list_of_checks_and_their_worst(pool: PgPool) {
    let api = TestApi::new(pool);
    *api.ops.checks.lock().unwrap() = vec![
        check("login", Outcome::Pass),
        check("private_key", Outcome::Fail),
        check("quota", Outcome::Skipped),
    ];
    let answer = api.post_text("/clusters/dgx/preflight", "").await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let found = answer.json();
    assert_eq!((&found["cluster"], &found["outcome"]), (&json!("dgx"), &json!("fail")));
    assert_eq!(
        found["checks"][1],
        json!({"id": "private_key", "subject": null, "outcome": "fail", "observed": "mode 0644", "fix": "Run: chmod 600 key"})
    );
    *api.ops.outage.lock().unwrap() = Some(ClusterUnavailable::Busy);
    let busy = api.post_text("/clusters/dgx/preflight", "").await;
    busy.problem(503, "cluster_busy");
    assert_eq!(busy.header("retry-after"), "5");
    api.post_text("/clusters/nosuch/preflight", "").await.problem(404, "cluster_not_found");
}

fn credentials(password: &str) -> serde_json::Value {
    json!({"machine": "nvcr.io", "login": "$oauthtoken", "password": password})
}

const CREDENTIALS: &str = "/clusters/dgx/enroot-credentials";

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn credentials_go_to_the_cluster_and_come_back_in_no_answer(pool: PgPool) {
    let api = TestApi::guarded(pool);
    api.token("root", "root", "admin", None).await;
    let put =
        async |body: &serde_json::Value| api.call_as("root", Method::PUT, CREDENTIALS, Some(body)).await;
    let answer = put(&credentials("hunter2")).await;
    assert_eq!((answer.status.as_u16(), answer.text().as_str()), (204, ""));
    assert_eq!(*api.ops.asked.lock().unwrap(), ["nvcr.io\t$oauthtoken\thunter2\n"]);

    for (field, value) in [
        ("password", json!("hunter2 hunter2")),
        ("password", json!("$(hunter2)")),
        ("password", json!("hunter2\nmachine x login y password z")),
        ("password", json!("hunter2\"")),
        ("password", json!("hunter2".repeat(1000))),
        ("password", json!(["hunter2"])),
        ("password", json!(77_665_544)),
        ("password", json!("")),
        ("machine", json!("nvcr.io/hunter2")),
        ("machine", json!("-o hunter2")),
        ("login", json!("hunter2\thunter2")),
        ("hunter", json!("hunter2")),
    ] {
        let mut body = credentials("good");
        body[field] = value;
        let answer = put(&body).await;
        let problem = answer.problem(422, "invalid_request");
        assert_eq!(problem["errors"][0]["pointer"], format!("/{field}"));
        assert!(
            !answer.text().contains("hunter2") && !answer.text().contains("77665544"),
            "{}",
            answer.text()
        );
    }
    put(&json!(["nvcr.io", "u", "hunter2"])).await.problem(422, "invalid_request");
    assert_eq!(api.ops.asked.lock().unwrap().len(), 1, "nothing of it was sent");

    let detail = "no login host answers".to_owned();
    *api.ops.outage.lock().unwrap() = Some(ClusterUnavailable::Unanswered { detail });
    let answer = put(&credentials("hunter2")).await;
    answer.problem(503, "cluster_unavailable");
    assert!(answer.text().contains("no login host answers") && !answer.text().contains("hunter2"));
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_preflight_needs_write_and_credentials_need_admin(pool: PgPool) {
    let api = TestApi::guarded(pool);
    api.token("reader", "ann", "read", None).await;
    api.token("writer", "ann", "read write", None).await;
    let preflight =
        async |token: &str| api.call_as(token, Method::POST, "/clusters/dgx/preflight", None).await;
    preflight("reader").await.problem(403, "forbidden");
    assert_eq!(preflight("writer").await.status, 200);
    let body = credentials("hunter2");
    for token in ["reader", "writer"] {
        api.call_as(token, Method::PUT, CREDENTIALS, Some(&body)).await.problem(403, "forbidden");
    }
    let refused = api.call_as("writer", Method::PUT, CREDENTIALS, Some(&body)).await;
    assert!(refused.header("www-authenticate").contains(r#"scope="admin""#));
    assert!(api.ops.asked.lock().unwrap().is_empty());
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn orphans_are_counted_and_the_oldest_are_shown(pool: PgPool) {
    let api = TestApi::new(pool);
    let dgx = "dgx".parse().unwrap();
    let none = api.get("/clusters/dgx").await.json();
    assert_eq!(none["orphans"], json!({"count": 0, "jobs": []}));
    let lease = api.store.acquire_poll(&dgx, Uuid::from_u128(1), EVERY).await.unwrap().unwrap();
    let job = "00000000-0000-0000-0000-0000000000ff";
    let orphan = |number| Orphan {
        slurm_id: slurm::SlurmJobId::new(number).unwrap(),
        name: format!("tao-job-{job}").parse().unwrap(),
        kind: OrphanKind::Unknown,
        state: "RUNNING".to_owned(),
        first_seen_at: api.clock.now(),
        cancel_sent_at: None,
    };
    let many: Vec<_> = (1..=60).map(orphan).collect();
    api.store.record_orphans(&lease, &many, &[], api.clock.now()).await.unwrap();
    let orphans = api.get("/clusters/dgx").await.json()["orphans"].clone();
    assert_eq!((&orphans["count"], orphans["jobs"].as_array().unwrap().len()), (&json!(60), 50));
    let first = &orphans["jobs"][0];
    assert_eq!(
        (&first["slurm_job_id"], &first["kind"], &first["job_id"]),
        (&json!("1"), &json!("unknown"), &json!(job))
    );
    assert_eq!(first["message"], format!("Slurm job 1 (tao-job-{job}) is not in the database."));
}

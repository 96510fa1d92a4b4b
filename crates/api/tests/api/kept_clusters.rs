//! Clusters that come by the API.

use api::AuthMode;
use axum::{body::Body, http::Request};
use serde_json::{Value, json};
use sqlx::PgPool;

use crate::support::{Answer, TestApi};

fn kept(name: &str) -> Value {
    let mut cluster = nameless("login9");
    cluster["name"] = json!(name);
    cluster
}

fn nameless(host: &str) -> Value {
    json!({"user": "ann", "hosts": [host], "ssh_key": "the-key", "host_keys": ["login9 ssh-ed25519 AAAA"], "num_gpus": 2})
}

async fn put(api: &TestApi, name: &str, tag: Option<&str>, body: &Value) -> Answer {
    let mut request = Request::put(format!("/clusters/{name}")).header("content-type", "application/json");
    if let Some(tag) = tag {
        request = request.header("if-match", tag);
    }
    api.send(request.body(Body::from(body.to_string())).unwrap()).await
}

async fn delete(api: &TestApi, name: &str, tag: Option<&str>) -> Answer {
    let mut request = Request::delete(format!("/clusters/{name}"));
    if let Some(tag) = tag {
        request = request.header("if-match", tag);
    }
    api.send(request.body(Body::empty()).unwrap()).await
}

fn on(name: &str) -> Value {
    json!({"command": "true", "backend_details": {"cluster_name": name}})
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn an_added_cluster_has_the_settings_that_were_sent_and_accepts_jobs(pool: PgPool) {
    let api = TestApi::new(pool);
    let added = api.post("/clusters", &kept("new")).await;
    assert_eq!((added.status.as_u16(), added.header("location")), (201, "/clusters/new"), "{}", added.text());
    let seen = api.get("/clusters/new").await;
    assert_eq!(seen.header("etag"), added.header("etag"));
    assert_eq!(seen.json(), added.json());
    let seen = seen.json();
    assert_eq!((&seen["source"], &seen["is_default"]), (&json!("api"), &json!(false)));
    assert_eq!(seen["settings"], kept("new"), "to be changed and sent again");
    let file = api.get("/clusters/dgx").await;
    assert_eq!((&file.json()["source"], &file.json()["settings"]), (&json!("file"), &json!(null)));
    assert!(file.headers.get("etag").is_none());
    let list = api.get("/clusters").await.json();
    let names: Vec<_> = list["clusters"].as_array().unwrap().iter().map(|one| &one["name"]).collect();
    assert_eq!(names, ["dgx", "new"]);

    let job = api.job(&on("new")).await;
    assert_eq!(api.get(&format!("/jobs/{job}")).await.json()["cluster"], "new");
    assert_eq!(api.post("/jobs/validate", &on("new")).await.status, 200);
    // TAO's workspaces say it by user and login host.
    let by_workspace =
        json!({"command": "true", "cloud_metadata": {"slurm_user": "ann", "slurm_hostname": "login9"}});
    let job = api.job(&by_workspace).await;
    assert_eq!(api.get(&format!("/jobs/{job}")).await.json()["cluster"], "new");
    for (method, path) in [("GET", "/clusters/new/partitions"), ("POST", "/clusters/new/preflight")] {
        let request = Request::builder().method(method).uri(path).body(Body::empty()).unwrap();
        assert_eq!(api.send(request).await.status, 200, "{path}");
    }
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_name_is_given_once_and_what_is_in_the_file_is_not_touched(pool: PgPool) {
    let api = TestApi::new(pool);
    assert_eq!(api.post("/clusters", &kept("new")).await.status, 201);
    api.post("/clusters", &kept("new")).await.problem(409, "cluster_exists");
    api.post("/clusters", &kept("dgx")).await.problem(409, "cluster_in_file");
    put(&api, "dgx", Some("*"), &nameless("login9")).await.problem(409, "cluster_in_file");
    delete(&api, "dgx", None).await.problem(409, "cluster_in_file");
    put(&api, "none", Some("*"), &nameless("login9")).await.problem(404, "cluster_not_found");
    delete(&api, "none", None).await.problem(404, "cluster_not_found");
    delete(&api, "No%20name", None).await.problem(404, "cluster_not_found");
    assert_eq!(api.get("/clusters/dgx").await.json()["user"], "tao");
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn every_fault_of_a_cluster_has_its_pointer(pool: PgPool) {
    let api = TestApi::new(pool);
    let refused = async |body: Value| {
        let problem = api.post("/clusters", &body).await.problem(422, "invalid_request");
        let errors = problem["errors"].as_array().unwrap().iter();
        errors
            .map(|error| {
                format!("{} {}", error["pointer"].as_str().unwrap(), error["code"].as_str().unwrap())
            })
            .collect::<Vec<_>>()
    };
    let mut body = kept("new");
    (body["user"], body["num_gpus"], body["key_path"]) = (json!(7), json!("many"), json!("/etc/key"));
    let mut found = refused(body).await;
    found.sort();
    assert_eq!(found, ["/key_path unknown_field", "/num_gpus wrong_type", "/user wrong_type"]);
    assert_eq!(refused(nameless("login9")).await, ["/name required"]);
    assert_eq!(refused(kept("No Name")).await, ["/name invalid"]);
    assert_eq!(refused(json!([])).await.len(), 1);
    let mut body = kept("new");
    body["user"] = json!("no user");
    assert_eq!(refused(body).await, ["/user invalid"], "by whoever knows what makes a cluster");
    let other = put(&api, "new", Some("*"), &kept("other")).await.problem(422, "invalid_request");
    assert_eq!(other["errors"][0]["pointer"], "/name");
    assert_eq!(
        api.get("/clusters").await.json()["clusters"].as_array().unwrap().len(),
        1,
        "nothing was stored"
    );
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_change_applies_to_the_revision_that_the_caller_read(pool: PgPool) {
    let api = TestApi::new(pool);
    let first = api.post("/clusters", &kept("new")).await.header("etag").to_owned();
    put(&api, "new", None, &nameless("login9")).await.problem(428, "if_match_required");
    put(&api, "new", Some("7"), &nameless("login9")).await.problem(400, "invalid_header");
    let mut body = nameless("login9");
    body["account"] = json!("vision");
    let changed = put(&api, "new", Some(&first), &body).await;
    assert_eq!((changed.status.as_u16(), &changed.json()["settings"]["account"]), (200, &json!("vision")));
    let second = changed.header("etag").to_owned();
    assert_ne!(first, second);
    let late = put(&api, "new", Some(&first), &nameless("login9")).await.problem(412, "cluster_changed");
    assert!(late["detail"].as_str().unwrap().contains(&second), "{late}");
    delete(&api, "new", Some(&first)).await.problem(412, "cluster_changed");
    assert_eq!(api.get("/clusters/new").await.json()["settings"]["account"], "vision");
    let whole = put(&api, "new", Some("*"), &nameless("login9")).await.json();
    assert_eq!(whole["settings"]["account"], json!(null), "what is left out is gone");
    assert_eq!(delete(&api, "new", None).await.status, 204);
    api.get("/clusters/new").await.problem(404, "cluster_not_found");
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_cluster_with_active_jobs_keeps_its_user_hosts_and_directory(pool: PgPool) {
    let api = TestApi::new(pool);
    api.post("/clusters", &kept("new")).await;
    let job = api.job(&on("new")).await;
    let refused = delete(&api, "new", None).await.problem(409, "cluster_in_use");
    assert!(refused["detail"].as_str().unwrap().contains("1 active job"), "{refused}");
    let mut moved = nameless("login8");
    moved["user"] = json!("bob");
    let refused = put(&api, "new", Some("*"), &moved).await.problem(409, "cluster_in_use");
    assert!(refused["detail"].as_str().unwrap().contains("user and hosts"), "{refused}");
    let mut more = nameless("login8");
    more["hosts"] = json!(["login8", "login9"]);
    assert_eq!(put(&api, "new", Some("*"), &more).await.status, 200, "a host more is the same cluster");

    sqlx::raw_sql("update jobs set phase = 'ended', status = 'Error', due_at = null, finished_at = now()")
        .execute(&api.pool)
        .await
        .unwrap();
    assert_eq!(delete(&api, "new", None).await.status, 204);
    assert_eq!(api.get(&format!("/jobs/{job}")).await.json()["status"], "Error", "what ended can be read");
    assert_eq!(api.get(&format!("/jobs/{job}/events")).await.status, 200);
    api.get(&format!("/jobs/{job}/logs")).await.problem(409, "cluster_gone");
    api.post(&format!("/jobs/{job}/retry"), &json!({})).await.problem(409, "cluster_gone");
    let with_files = Request::delete(format!("/jobs/{job}?artifacts=true")).body(Body::empty()).unwrap();
    api.send(with_files).await.problem(409, "cluster_gone");
    let without = Request::delete(format!("/jobs/{job}")).body(Body::empty()).unwrap();
    assert_eq!(api.send(without).await.status, 204);
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_job_for_a_cluster_that_is_deleted_concurrently_is_refused(pool: PgPool) {
    let api = TestApi::new(pool);
    api.post("/clusters", &kept("new")).await;
    // By another process, of which this one has not heard yet.
    sqlx::raw_sql("delete from clusters").execute(&api.pool).await.unwrap();
    api.post("/jobs", &on("new")).await.problem(409, "cluster_gone");
    assert_eq!(api.get("/jobs").await.json()["jobs"], json!([]));
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_removal_of_files_is_not_accepted_for_a_cluster_that_is_deleted_concurrently(pool: PgPool) {
    let api = TestApi::new(pool);
    api.post("/clusters", &kept("new")).await;
    let job = api.job(&on("new")).await;
    let end_and_forget =
        "update jobs set phase = 'ended', status = 'Done', due_at = null, finished_at = now();
        delete from clusters";
    sqlx::raw_sql(end_and_forget).execute(&api.pool).await.unwrap();
    let delete = async |path: String| api.send(Request::delete(path).body(Body::empty()).unwrap()).await;
    delete(format!("/jobs/{job}?artifacts=true")).await.problem(409, "cluster_gone");
    assert_eq!(api.get(&format!("/jobs/{job}")).await.status, 200, "nobody waits for what will never be");
    assert_eq!(delete(format!("/jobs/{job}")).await.status, 204);
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn an_invalid_row_is_shown_with_the_reason_and_can_be_corrected(pool: PgPool) {
    let api = TestApi::new(pool);
    api.post("/clusters", &kept("new")).await;
    sqlx::raw_sql("update clusters set settings = settings || '{\"user\": 7}'")
        .execute(&api.pool)
        .await
        .unwrap();
    api::ClusterKeeper::refresh(&*api.keeper).await;
    let list = api.get("/clusters").await.json();
    assert_eq!(list["clusters"].as_array().unwrap().len(), 1);
    let shown = &list["unusable"][0];
    assert_eq!((&shown["name"], &shown["reason"]), (&json!("new"), &json!("/user: is no user")));
    let seen = api.get("/clusters/new").await;
    let problem = seen.problem(409, "cluster_unusable");
    assert!(problem["detail"].as_str().unwrap().contains("/user: is no user"), "{problem}");
    let refused = api.post("/jobs", &on("new")).await.problem(422, "invalid_request");
    assert_eq!(refused["errors"][0]["code"], "unusable_cluster");
    assert_eq!(api.post("/jobs", &on("dgx")).await.status, 201, "the others go on");
    assert_eq!(shown["etag"], seen.header("etag"));
    assert_eq!(put(&api, "new", Some(seen.header("etag")), &nameless("login9")).await.status, 200);
    assert_eq!(api.post("/jobs", &on("new")).await.status, 201);

    let mut keyless = nameless("login9");
    keyless["ssh_key"] = json!("absent");
    let seen = put(&api, "new", Some("*"), &keyless).await.json();
    assert_eq!((&seen["state"], &seen["unavailable"]), (&json!("unavailable"), &json!("no key")));
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn the_number_of_stored_clusters_is_limited(pool: PgPool) {
    let api = TestApi::with(pool, AuthMode::Disabled, api::Limits { clusters: 1, ..api::Limits::default() });
    assert_eq!(api.post("/clusters", &kept("one")).await.status, 201);
    let problem = api.post("/clusters", &kept("two")).await.problem(409, "too_many_clusters");
    assert!(problem["detail"].as_str().unwrap().contains("already holds 1"), "{problem}");
}

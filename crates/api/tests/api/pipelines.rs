//! Jobs that need each other, alone and in pipelines.

use axum::{
    body::Body,
    http::{Method, Request, StatusCode},
};
use serde_json::{Value, json};
use sqlx::{PgPool, Row as _};

use crate::support::TestApi;

fn command(needs: &[(&str, &str)]) -> Value {
    let needs: Vec<_> = needs.iter().map(|(job, when)| json!({"job": job, "when": when})).collect();
    json!({"command": "true", "needs": needs})
}

fn training() -> Value {
    json!({
        "name": "nightly",
        "labels": {"team": "vision"},
        "jobs": {
            "prep": command(&[]),
            "train": command(&[("prep", "succeeded")]),
            "evaluate": command(&[("train", "succeeded")]),
            "alarm": command(&[("train", "failed")]),
            "clean-up": command(&[("evaluate", "finished"), ("alarm", "finished")]),
        }
    })
}

async fn pipeline(api: &TestApi) -> Value {
    let answer = api.post("/pipelines", &training()).await;
    assert_eq!(answer.status, 201, "{}", answer.text());
    answer.json()
}

/// A job of a pipeline by its name.
fn member<'a>(pipeline: &'a Value, name: &str) -> &'a Value {
    pipeline["jobs"].as_array().unwrap().iter().find(|job| job["name"] == name).unwrap()
}

fn id_of(pipeline: &Value, name: &str) -> String {
    member(pipeline, name)["id"].as_str().unwrap().to_owned()
}

/// A worker looks at what each job waits for.
async fn look(api: &TestApi) {
    for _ in 0..3 {
        api.await_needs().await;
    }
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_job_that_needs_another_waits_and_says_for_what(pool: PgPool) {
    let api = TestApi::new(pool);
    let first = api.job(&json!({"command": "true"})).await;
    let need = json!({"job": first, "name": "prep"});
    let second = api.job(&json!({"command": "true", "needs": [need]})).await;
    look(&api).await;
    let job = api.get(&format!("/jobs/{second}")).await.json();
    assert_eq!((&job["phase"], &job["status"]), (&json!("waiting"), &json!("Pending")));
    assert_eq!(job["needs"], json!([{"name": "prep", "job": first, "when": "succeeded"}]));
    assert_eq!(job["message"], "Waits for prep to succeed, which is Pending.");
    assert_eq!(job["pending"]["held_by"], "dependency");
    assert_eq!(job["pending"]["meaning"], job["message"]);
    assert_eq!(job["pending"]["needs_action"], false);
    api.end(&first).await;
    let refused = api.call_as("", Method::DELETE, &format!("/jobs/{first}"), None).await;
    let problem = refused.problem(409, "wrong_state");
    assert!(problem["detail"].as_str().unwrap().contains(&second), "{problem}");
    look(&api).await;
    assert_eq!(api.get(&format!("/jobs/{second}/status")).await.json()["phase"], "queued");
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn needs_that_name_no_job_of_the_caller_are_refused(pool: PgPool) {
    let api = TestApi::guarded(pool);
    api.token("mine", "me", "read write", None).await;
    api.token("other", "them", "read write", None).await;
    let theirs = api.call_as("other", Method::POST, "/jobs", Some(&json!({"command": "true"}))).await.json();
    for path in ["/jobs", "/jobs/validate"] {
        let body = json!({"command": "true", "needs": [{"job": theirs["id"]}]});
        let problem =
            api.call_as("mine", Method::POST, path, Some(&body)).await.problem(422, "invalid_request");
        assert_eq!(problem["errors"][0]["pointer"], "/needs/0/job", "{problem}");
        assert_eq!(problem["errors"][0]["code"], "unknown_job");
    }
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_pipeline_runs_in_the_order_of_its_needs(pool: PgPool) {
    let api = TestApi::new(pool);
    let accepted = pipeline(&api).await;
    let names: Vec<_> = accepted["jobs"].as_array().unwrap().iter().map(|job| job["name"].clone()).collect();
    assert_eq!(names, ["prep", "train", "alarm", "evaluate", "clean-up"]);
    assert_eq!((&accepted["status"], &accepted["jobs_by_status"]["pending"]), (&json!("Pending"), &json!(5)));
    let path = format!("/pipelines/{}", accepted["id"].as_str().unwrap());
    let read = async || {
        look(&api).await;
        api.get(&path).await.json()
    };
    api.end(&id_of(&accepted, "prep")).await;
    let running = read().await;
    assert_eq!(
        (&running["status"], &member(&running, "train")["phase"]),
        (&json!("Running"), &json!("queued"))
    );
    api.end(&id_of(&accepted, "train")).await;
    let after = read().await;
    assert_eq!(member(&after, "evaluate")["phase"], "queued");
    let alarm = member(&after, "alarm");
    assert_eq!((&alarm["status"], &alarm["skipped"]), (&json!("Canceled"), &json!(true)));
    assert_eq!(alarm["message"], "Canceled: it needs train to fail, which ended with Done.");
    assert_eq!(member(&after, "clean-up")["phase"], "waiting");
    api.end(&id_of(&accepted, "evaluate")).await;
    assert_eq!(member(&read().await, "clean-up")["phase"], "queued");
    api.end(&id_of(&accepted, "clean-up")).await;
    let done = read().await;
    assert_eq!((&done["status"], &done["jobs_by_status"]["skipped"]), (&json!("Done"), &json!(1)));
    let list = api.get("/pipelines").await.json();
    assert_eq!(list["pipelines"][0]["status"], "Done");
    assert_eq!(list["pipelines"][0]["labels"], json!({"team": "vision"}));
    let labelled = api.get("/jobs?label=team:vision").await.json();
    assert_eq!(labelled["jobs"].as_array().unwrap().len(), 5);
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_retry_goes_on_where_the_pipeline_failed(pool: PgPool) {
    let api = TestApi::new(pool);
    let accepted = pipeline(&api).await;
    let path = format!("/pipelines/{}", accepted["id"].as_str().unwrap());
    let nothing = api.post(&format!("{path}/retry"), &json!({})).await;
    nothing.problem(409, "wrong_state");
    api.end(&id_of(&accepted, "prep")).await;
    look(&api).await;
    api.error(&id_of(&accepted, "train")).await;
    look(&api).await;
    api.end(&id_of(&accepted, "alarm")).await;
    look(&api).await;
    api.end(&id_of(&accepted, "clean-up")).await;
    let failed = api.get(&path).await.json();
    assert_eq!((&failed["status"], &member(&failed, "evaluate")["skipped"]), (&json!("Error"), &json!(true)));
    let retried = api.post(&format!("{path}/retry"), &json!({})).await;
    assert_eq!(retried.status, 202, "{}", retried.text());
    let retried = retried.json();
    assert_eq!(member(&retried, "train")["phase"], "queued");
    assert_eq!(member(&retried, "evaluate")["phase"], "waiting");
    assert_eq!(member(&retried, "alarm")["status"], "Done", "what is done stays");
}

/// The retry of `train` alone would open `evaluate` with the task that it skipped, and leave out the one that failed by itself.
#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_retry_sends_the_tasks_that_failed_and_those_that_were_skipped(pool: PgPool) {
    let api = TestApi::new(pool);
    let mut evaluate = command(&[("train", "each")]);
    evaluate["array"] = json!({"indices": "0-1"});
    let body = json!({"jobs": {"train": command(&[]), "evaluate": evaluate}});
    let accepted = api.post("/pipelines", &body).await.json();
    sqlx::raw_sql(
        "update jobs set phase = 'ended', status = 'Error', started_at = now(), finished_at = now(), due_at = null, secrets = null;
         update needs set met = true;
         update jobs set array_state = array_state || '{\"held\": \"\", \"skipped\": \"1\"}' where array_state is not null;",
    )
    .execute(&api.pool)
    .await
    .unwrap();
    let path = format!("/pipelines/{}/retry", accepted["id"].as_str().unwrap());
    let retried = api.post(&path, &json!({})).await;
    assert_eq!(retried.status, 202, "{}", retried.text());
    let state = "select array_state ->> 'unsubmitted', array_state ->> 'held' from jobs where array_state is not null";
    let state = sqlx::raw_sql(state).fetch_one(&api.pool).await.unwrap();
    assert_eq!((state.get::<&str, _>(0), state.get::<&str, _>(1)), ("0", "1"));
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_retry_asks_for_the_secrets_of_what_goes_again(pool: PgPool) {
    let api = TestApi::new(pool);
    let secret = |mut job: Value| {
        job["secret_env_vars"] = json!({"HF_TOKEN": "hunter2"});
        job
    };
    let jobs = json!({"jobs": {
        "a": secret(command(&[])), "b": secret(command(&[("a", "succeeded")])), "c": command(&[("b", "succeeded")])
    }});
    let accepted = api.post("/pipelines", &jobs).await.json();
    let path = format!("/pipelines/{}", accepted["id"].as_str().unwrap());
    api.error(&id_of(&accepted, "a")).await;
    look(&api).await;
    let problem = api.post(&format!("{path}/retry"), &json!({})).await.problem(422, "invalid_request");
    let pointers: Vec<_> =
        problem["errors"].as_array().unwrap().iter().map(|one| one["pointer"].clone()).collect();
    assert_eq!(pointers, ["/jobs/a/secret_env_vars/HF_TOKEN", "/jobs/b/secret_env_vars/HF_TOKEN"]);
    let given = json!({"secret_env_vars": {"HF_TOKEN": "again"}});
    let unknown = json!({"jobs": {"a": given, "b": given, "c": given}});
    api.post(&format!("{path}/retry"), &unknown).await.problem(422, "invalid_request");
    let retried = api.post(&format!("{path}/retry"), &json!({"jobs": {"a": given, "b": given}})).await.json();
    let phases = ["a", "b", "c"].map(|name| member(&retried, name)["phase"].clone());
    assert_eq!(phases, ["queued", "waiting", "waiting"]);
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_cancel_takes_all_jobs_of_the_pipeline(pool: PgPool) {
    let api = TestApi::new(pool);
    let accepted = pipeline(&api).await;
    api.end(&id_of(&accepted, "prep")).await;
    let path = format!("/pipelines/{}/cancel", accepted["id"].as_str().unwrap());
    let canceled = api.post(&path, &json!({})).await;
    assert_eq!(canceled.status, 202);
    let statuses: Vec<_> =
        canceled.json()["jobs"].as_array().unwrap().iter().map(|job| job["status"].clone()).collect();
    assert_eq!(statuses, ["Done", "Canceling", "Canceling", "Canceling", "Canceling"]);
    for name in ["train", "alarm", "evaluate", "clean-up"] {
        let id = id_of(&accepted, name);
        api.step(&id, None, |job| *job = job.canceled_locally(job.created_at)).await;
    }
    let again = api.post(&path, &json!({})).await;
    assert_eq!((again.status, &again.json()["status"]), (StatusCode::OK, &json!("Canceled")));
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_repeated_request_stores_nothing_and_gets_the_pipeline(pool: PgPool) {
    let api = TestApi::new(pool);
    let mut named = training();
    named["id"] = json!("01a21687-3d58-727b-af43-d5f40bfcf423");
    let first = api.post("/pipelines", &named).await;
    assert_eq!(
        (first.status.as_u16(), first.header("location")),
        (201, "/pipelines/01a21687-3d58-727b-af43-d5f40bfcf423")
    );
    let again = api.post("/pipelines", &named).await;
    assert_eq!((again.status.as_u16(), again.json()), (200, first.json()));
    named["name"] = json!("another");
    api.post("/pipelines", &named).await.problem(422, "id_conflict");
    assert_eq!(api.get("/jobs").await.json()["jobs"].as_array().unwrap().len(), 5);
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn the_faults_of_all_jobs_are_told_together(pool: PgPool) {
    let api = TestApi::new(pool);
    let pointers = async |jobs: Value| -> Vec<Value> {
        let problem = api.post("/pipelines", &json!({"jobs": jobs})).await.problem(422, "invalid_request");
        problem["errors"].as_array().unwrap().iter().map(|one| one["pointer"].clone()).collect()
    };
    let bad = json!({"command": "true", "resources": {"num_nodes": 0}});
    let found = pointers(json!({"a": bad, "b": command(&[("a", "succeeded")]), "c": bad})).await;
    assert_eq!(found, ["/jobs/a/resources/num_nodes", "/jobs/c/resources/num_nodes"]);
    let circle = json!({"a": command(&[("b", "finished")]), "b": command(&[("a", "finished")])});
    assert_eq!(pointers(circle).await, ["/jobs/a/needs/0/job"]);
    let nobody = "01a21687-3d58-727b-af43-d5f40bfcf423";
    let outside =
        pointers(json!({"a": command(&[]), "b": command(&[("a", "finished"), (nobody, "finished")])})).await;
    assert_eq!(outside, ["/jobs/b/needs/1/job"]);
    assert_eq!(api.get("/jobs").await.json()["jobs"], json!([]));
    assert_eq!(api.get("/pipelines").await.json()["pipelines"], json!([]));
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn other_owners_do_not_see_a_pipeline(pool: PgPool) {
    let api = TestApi::guarded(pool);
    api.token("mine", "me", "read write", None).await;
    api.token("other", "them", "read write", None).await;
    let mine = api.call_as("mine", Method::POST, "/pipelines", Some(&training())).await.json();
    let path = format!("/pipelines/{}", mine["id"].as_str().unwrap());
    api.get_as("other", &path).await.problem(404, "pipeline_not_found");
    api.call_as("other", Method::POST, &format!("{path}/cancel"), None)
        .await
        .problem(404, "pipeline_not_found");
    api.get_as("other", &format!("/events?pipeline={}", mine["id"].as_str().unwrap()))
        .await
        .problem(404, "pipeline_not_found");
    assert_eq!(api.get_as("other", "/pipelines").await.json()["pipelines"], json!([]));
    api.get_as("mine", "/pipelines/x").await.problem(404, "pipeline_not_found");
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_reader_of_a_pipeline_waits_for_any_of_its_jobs(pool: PgPool) {
    let api = TestApi::new(pool);
    let accepted = pipeline(&api).await;
    let path = format!("/pipelines/{}", accepted["id"].as_str().unwrap());
    let now = api.get(&path).await;
    // It says what it knows: the end may come before the request.
    let request = Request::get(format!("{path}?wait=60")).header("if-none-match", now.header("etag"));
    let waits = api.send(request.body(Body::empty()).unwrap());
    let ends = async {
        api.end(&id_of(&accepted, "prep")).await;
    };
    let (changed, ()) = tokio::join!(waits, ends);
    assert_ne!(changed.header("etag"), now.header("etag"));
    assert_eq!(member(&changed.json(), "prep")["status"], "Done");
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn the_events_of_a_pipeline_are_those_of_its_jobs(pool: PgPool) {
    let api = TestApi::new(pool);
    let other = api.job(&json!({"command": "true"})).await;
    let accepted = pipeline(&api).await;
    let id = accepted["id"].as_str().unwrap();
    let events = api.get(&format!("/events?pipeline={id}")).await.json();
    let jobs: Vec<_> =
        events["events"].as_array().unwrap().iter().map(|event| event["job_id"].clone()).collect();
    assert_eq!(jobs.len(), 5);
    assert!(!jobs.contains(&json!(other)));
    let both = api.get(&format!("/events?pipeline={id}&job={other}")).await.json();
    assert_eq!(both["events"], json!([]), "no event is of both");
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_webhook_of_a_pipeline_is_that_of_each_job(pool: PgPool) {
    let api = TestApi::new(pool);
    let mut hooked = training();
    hooked["webhook"] =
        json!({"url": "https://example.org/hook", "secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"});
    let accepted = api.post("/pipelines", &hooked).await;
    assert_eq!(accepted.status, 201, "{}", accepted.text());
    let id = id_of(&accepted.json(), "clean-up");
    let hook = api.get(&format!("/jobs/{id}/webhook")).await;
    assert_eq!(hook.status, 200, "{}", hook.text());
}

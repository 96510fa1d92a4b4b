use std::time::Duration;

use api::Limits;
use axum::{body::Body, http::Request};
use futures_util::future::join_all;
use serde_json::{Value, json};
use sqlx::PgPool;

use crate::support::{Answer, TestApi};

async fn send(api: &TestApi, key: &str, body: &Value) -> Answer {
    let request =
        Request::post("/jobs").header("content-type", "application/json").header("idempotency-key", key);
    api.send(request.body(Body::from(body.to_string())).unwrap()).await
}

fn is_replayed(answer: &Answer) -> bool {
    answer.headers.contains_key("idempotency-replayed")
}

async fn jobs(api: &TestApi) -> usize {
    api.get("/jobs").await.json()["jobs"].as_array().unwrap().len()
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn the_same_key_and_body_get_the_same_answer_whatever_the_state_of_the_job(pool: PgPool) {
    let api = TestApi::new(pool);
    let body = json!({"command": "true", "num_gpu": 1, "secret_env_vars": {"HF_TOKEN": "hunter2"}});
    let first = send(&api, "k-1", &body).await;
    assert_eq!((first.status.as_u16(), is_replayed(&first)), (201, false), "{}", first.text());
    api.submit(first.json()["id"].as_str().unwrap(), 17, "node01").await;
    // In another order, which means the same.
    let again = json!({"secret_env_vars": {"HF_TOKEN": "hunter2"}, "num_gpu": 1, "command": "true"});
    let again = send(&api, "k-1", &again).await;
    assert_eq!((again.status.as_u16(), again.header("idempotency-replayed")), (201, "true"));
    assert_eq!(again.header("location"), first.header("location"));
    assert_eq!(again.json(), first.json());
    assert_eq!(jobs(&api).await, 1);
    assert_eq!(send(&api, "k-2", &body).await.status, 201);
    assert_eq!(jobs(&api).await, 2);
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn the_same_key_and_another_body_is_refused_and_stores_nothing(pool: PgPool) {
    let api = TestApi::new(pool);
    assert_eq!(send(&api, "k", &json!({"command": "true"})).await.status, 201);
    send(&api, "k", &json!({"command": "false"})).await.problem(422, "idempotency_key_reused");
    assert_eq!(jobs(&api).await, 1);
    for wrong in ["", "ä", &"x".repeat(256)] {
        send(&api, wrong, &json!({"command": "true"})).await.problem(400, "invalid_header");
    }
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_request_that_was_refused_leaves_its_key_free(pool: PgPool) {
    let api = TestApi::new(pool);
    send(&api, "k", &json!({"comand": "true"})).await.problem(422, "invalid_request");
    assert_eq!(send(&api, "k", &json!({"command": "true"})).await.status, 201);
    // The id belongs to another request.
    let id = "0f8fad5b-d9cb-469f-a165-70867728950e";
    assert_eq!(send(&api, "k-1", &json!({"command": "true", "id": id})).await.status, 201);
    send(&api, "k-2", &json!({"command": "false", "id": id})).await.problem(422, "id_conflict");
    assert_eq!(send(&api, "k-2", &json!({"command": "false"})).await.status, 201);
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_key_and_an_id_of_the_callers_own_go_together(pool: PgPool) {
    let api = TestApi::new(pool);
    let body = json!({"command": "true", "id": "0f8fad5b-d9cb-469f-a165-70867728950e"});
    assert_eq!(send(&api, "k-1", &body).await.status, 201);
    assert_eq!(send(&api, "k-1", &body).await.status, 201);
    let known = send(&api, "k-2", &body).await;
    assert_eq!((known.status.as_u16(), is_replayed(&known)), (200, false));
    let again = send(&api, "k-2", &body).await;
    assert_eq!((again.status.as_u16(), is_replayed(&again)), (200, true));
    assert_eq!(jobs(&api).await, 1);
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_key_belongs_to_its_owner(pool: PgPool) {
    let api = TestApi::guarded(pool);
    for owner in ["ann", "bob"] {
        api.token(owner, owner, "read write", None).await;
        let request = Request::post("/jobs")
            .header("authorization", format!("Bearer {owner}"))
            .header("content-type", "application/json")
            .header("idempotency-key", "k");
        let body = Body::from(json!({"command": "true", "name": owner}).to_string());
        let answer = api.send(request.body(body).unwrap()).await;
        assert_eq!((answer.status.as_u16(), is_replayed(&answer)), (201, false), "{}", answer.text());
        assert_eq!(answer.json()["owner"], owner);
    }
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_key_expires(pool: PgPool) {
    let limits = Limits { idempotency_keep: Duration::from_millis(1), ..Limits::default() };
    let api = TestApi::limited(pool, limits);
    assert_eq!(send(&api, "k", &json!({"command": "true"})).await.status, 201);
    tokio::time::sleep(Duration::from_millis(5)).await;
    let other = send(&api, "k", &json!({"command": "false"})).await;
    assert_eq!((other.status.as_u16(), is_replayed(&other)), (201, false), "{}", other.text());
    assert_eq!(jobs(&api).await, 2);
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn the_key_of_a_job_that_is_deleted_makes_no_other_job(pool: PgPool) {
    let api = TestApi::new(pool);
    let body = json!({"command": "true"});
    let id = send(&api, "k", &body).await.json()["id"].as_str().unwrap().to_owned();
    api.end(&id).await;
    assert_eq!(
        api.send(Request::delete(format!("/jobs/{id}")).body(Body::empty()).unwrap()).await.status,
        204
    );
    send(&api, "k", &body).await.problem(404, "job_not_found");
    assert_eq!(jobs(&api).await, 0);
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn fifty_at_once_with_one_key_through_two_processes_are_one_job(pool: PgPool) {
    let (one, other) = (TestApi::new(pool.clone()), TestApi::new(pool));
    // The ids of the two would be the same, and hide what is looked for.
    for _ in 0..100 {
        assert_eq!(other.post("/jobs/validate", &json!({"command": "true"})).await.status, 200);
    }
    let body = json!({"command": "true"});
    let apis = [&one, &other];
    let answers = join_all((0..50).map(|number| send(apis[number % 2], "k", &body))).await;
    for answer in &answers {
        assert_eq!(answer.status, 201, "{}", answer.text());
        assert_eq!(answer.json(), answers[0].json());
    }
    assert_eq!(answers.iter().filter(|answer| !is_replayed(answer)).count(), 1);
    assert_eq!(jobs(&one).await, 1);
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_job_is_retried_once_for_one_key_even_if_it_finished_in_between(pool: PgPool) {
    let api = TestApi::new(pool);
    let id = api.job(&json!({"command": "true"})).await;
    let ask = async |action: &str, key: &str| {
        let request = Request::post(format!("/jobs/{id}/{action}")).header("idempotency-key", key);
        api.send(request.body(Body::empty()).unwrap()).await
    };
    api.error(&id).await;
    let asked = join_all((0..10).map(|_| ask("retry", "k"))).await;
    for answer in &asked {
        assert_eq!(answer.status, 202, "{}", answer.text());
    }
    assert_eq!(asked.iter().filter(|answer| !is_replayed(answer)).count(), 1);
    // Without a key, or with another, it has to be in a state for it.
    ask("retry", "k-2").await.problem(409, "wrong_state");
    api.error(&id).await;
    let late = ask("retry", "k").await;
    assert_eq!((late.status.as_u16(), late.header("idempotency-replayed")), (202, "true"));
    assert_eq!(late.json()["status"], "Error");
    ask("resume", "k").await.problem(422, "idempotency_key_reused");
    // What was refused has not used its key up.
    assert_eq!(ask("retry", "k-2").await.status, 202);
}

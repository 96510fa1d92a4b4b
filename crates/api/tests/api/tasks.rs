//! The tasks of a job's array: listed, read, canceled and retried.

use std::time::Duration;

use axum::{body::Body, http::Request};
use chrono::{DateTime, TimeDelta};
use domain::{Job, JobId, Phase, Run, TaskEnding, TaskOutcome, Transition};
use persistence::{
    ConcludedTask, DueJobs as _, Lane, LeaseTerms, ObservedTask, PollTurns as _, TaskPolls as _,
    TaskRecords as _, Viewer,
};
use serde_json::{Value, json};
use slurm::{SlurmJobId, SlurmState};
use sqlx::PgPool;
use uuid::Uuid;

use crate::support::{TestApi, cluster};

/// A job of four tasks, which Slurm has accepted as array 7.
async fn submitted(api: &TestApi) -> String {
    let sweep = json!({"command": "true", "array": {"matrix": {"LR": [0.1, 0.2], "SEED": [1, 2]}}});
    let id = api.job(&sweep).await;
    piece(api, &id, 7).await;
    id
}

async fn piece(api: &TestApi, id: &str, array: u32) {
    let now = domain::Clock::now(&*api.clock);
    api.step(id, Some(DateTime::UNIX_EPOCH), |job| {
        let mut attempt = job.new_attempt(cluster().base_dir, now).unwrap();
        job.assign_tasks(&mut attempt, 1001);
        attempt.slurm_id = SlurmJobId::new(array);
        attempt.submitted_at = Some(now);
        job.begin_attempt(attempt);
        job.phase = Phase::InQueue;
    })
    .await;
}

async fn stored(api: &TestApi, id: &str) -> Job {
    api.store.find_job(JobId::new(id.parse().unwrap()), &Viewer::All).await.unwrap().unwrap()
}

/// A poll sees these tasks begin, and end in the states.
async fn see(api: &TestApi, id: &str, tasks: &[(u32, SlurmState)]) {
    let (now, dgx) = (domain::Clock::now(&*api.clock), "dgx".parse().unwrap());
    let job = stored(api, id).await;
    let attempt = job.attempt.as_ref().unwrap().no;
    let runs = tasks.iter().map(|(task, state)| {
        let run = Run {
            task: *task,
            state: Some(state.clone()),
            nodes: Some(format!("node0{task}")),
            started_at: Some(now - TimeDelta::minutes(1)),
            is_over: *state != SlurmState::Running,
            ..Run::default()
        };
        ObservedTask { job: job.id, attempt, run }
    });
    let (runs, minute): (Vec<_>, _) = (runs.collect(), Duration::from_mins(1));
    let lease = api.store.acquire_poll(&dgx, Uuid::from_u128(8), minute).await.unwrap().unwrap();
    api.store.record_observed_tasks(&lease, &runs, now).await.unwrap();
    api.store.record_poll(&lease, persistence::PollResult::Idle, Duration::ZERO, now).await.unwrap();
}

/// A step concludes the runs that are over: those that completed are done, those that were canceled are canceled, the others failed.
async fn tend(api: &TestApi, id: &str) {
    let (now, dgx) = (domain::Clock::now(&*api.clock), "dgx".parse().unwrap());
    let terms = LeaseTerms { duration: Duration::from_mins(1), limit: 10, only_stopped: false };
    let lease = api.store.acquire_due(&dgx, Lane::Follow, Uuid::from_u128(9), terms).await.unwrap();
    let job = lease.jobs.iter().find(|job| job.id.to_string() == id).unwrap().clone();
    let ended = api.store.ended_tasks(std::slice::from_ref(&job), 100).await.unwrap();
    let mut tallies = api.store.task_tallies(&[job.id]).await.unwrap().remove(&job.id).unwrap_or_default();
    let runs: Vec<ConcludedTask> = ended
        .into_iter()
        .map(|task| {
            let outcome = match task.ended.run.state {
                Some(SlurmState::Completed) => TaskOutcome::Done,
                Some(SlurmState::Cancelled) => TaskOutcome::Canceled,
                _ => TaskOutcome::Error,
            };
            let tally = tallies.iter_mut().find(|(no, _)| *no == task.attempt).unwrap();
            tally.1.conclude(outcome, true);
            let message = format!("It is {outcome}.");
            let (run, outcome) = (task.ended.run, Some(outcome));
            let ending = TaskEnding { run, outcome, message, failure: None, until: None };
            ConcludedTask { job: job.id, attempt: task.attempt, ending }
        })
        .collect();
    let Transition { job, .. } = job.tally(&tallies, now);
    let step = Transition { job, due_at: Some(DateTime::UNIX_EPOCH) };
    let runs: Vec<&ConcludedTask> = runs.iter().collect();
    assert_eq!(api.store.record_tended(&lease, &[step], &runs, now).await.unwrap().len(), 1);
}

/// The states of the tasks, by number.
async fn states(api: &TestApi, id: &str) -> Vec<String> {
    let list = api.get(&format!("/jobs/{id}/tasks")).await.json();
    let tasks = list["tasks"].as_array().unwrap().iter();
    tasks.map(|task| task["status"].as_str().unwrap().to_owned()).collect()
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn each_task_tells_its_state_parameters_and_place(pool: PgPool) {
    let api = TestApi::new(pool);
    let id = submitted(&api).await;
    assert_eq!(states(&api, &id).await, ["pending"; 4]);
    see(&api, &id, &[(0, SlurmState::Completed), (1, SlurmState::Failed), (2, SlurmState::Running)]).await;
    tend(&api, &id).await;
    assert_eq!(states(&api, &id).await, ["done", "error", "running", "pending"]);
    let task = api.get(&format!("/jobs/{id}/tasks/1")).await.json();
    assert_eq!(task["parameters"], json!({"LR": 0.1, "SEED": 2}));
    assert_eq!((&task["slurm_job_id"], &task["nodes"]), (&json!("7_1"), &json!(["node01"])));
    assert_eq!((&task["attempt"], &task["message"]), (&json!(1), &json!("It is error.")));
    let waiting = api.get(&format!("/jobs/{id}/tasks/3")).await.json();
    assert_eq!((&waiting["status"], &waiting["attempt"]), (&json!("pending"), &Value::Null));
    let counts = &api.get(&format!("/jobs/{id}/status")).await.json()["tasks"];
    assert_eq!(
        *counts,
        json!({"total": 4, "pending": 1, "running": 1, "done": 1, "error": 1, "canceled": 0})
    );
    for beyond in ["4", "-1", "x"] {
        api.get(&format!("/jobs/{id}/tasks/{beyond}")).await.problem(404, "task_not_found");
    }
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn tasks_are_listed_by_state_and_page(pool: PgPool) {
    let api = TestApi::new(pool);
    let id = submitted(&api).await;
    see(&api, &id, &[(1, SlurmState::Running)]).await;
    let path = format!("/jobs/{id}/tasks?status=pending&limit=2");
    let first = api.get(&path).await;
    let numbers = |list: &Value| -> Vec<u64> {
        list["tasks"].as_array().unwrap().iter().filter_map(|task| task["task"].as_u64()).collect()
    };
    assert_eq!(numbers(&first.json()), [0, 2]);
    assert!(first.header("link").contains("page_token=2"), "{}", first.header("link"));
    let second = api.get(&format!("{path}&page_token=2")).await.json();
    assert_eq!((numbers(&second), &second["next_page_token"]), (vec![3], &Value::Null));
    api.get(&format!("/jobs/{id}/tasks?status=Pending")).await.problem(400, "invalid_parameter");
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_job_without_an_array_has_one_task(pool: PgPool) {
    let api = TestApi::new(pool);
    let id = api.job(&json!({"command": "true"})).await;
    assert_eq!(states(&api, &id).await, ["pending"]);
    assert_eq!(api.get(&format!("/jobs/{id}/status")).await.json()["tasks"], Value::Null);
    let some = api.post(&format!("/jobs/{id}/cancel"), &json!({"tasks": "0"})).await;
    some.problem(409, "wrong_state");
    api.submit(&id, 4711, "node01").await;
    let task = api.get(&format!("/jobs/{id}/tasks/0")).await.json();
    assert_eq!((&task["slurm_job_id"], &task["attempt"]), (&json!("4711"), &json!(1)), "it has no index");
    api.end(&id).await;
    assert_eq!(states(&api, &id).await, ["done"]);
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn canceled_tasks_are_kept_until_they_have_ended(pool: PgPool) {
    let api = TestApi::new(pool);
    let id = submitted(&api).await;
    let path = format!("/jobs/{id}/cancel");
    let answer = api.post(&path, &json!({"tasks": "3"})).await;
    assert_eq!((answer.status.as_u16(), &answer.json()["status"]), (202, &json!("Pending")));
    assert_eq!(api.post(&path, &json!({"tasks": "1"})).await.status, 202);
    assert_eq!(stored(&api, &id).await.array.unwrap().withdrawn.to_string(), "1,3");
    let beyond = api.post(&path, &json!({"tasks": "2-9"})).await;
    assert_eq!(
        beyond.problem(422, "invalid_request")["errors"][0]["detail"],
        "has 4-9; the job's tasks are 0-3"
    );
    api.post(&path, &json!({"tasks": "some"})).await.problem(422, "invalid_request");
    // A body in chunks, of which there is none, is no body: the whole job is canceled.
    let chunks = Body::from_stream(futures_util::stream::empty::<Result<Vec<u8>, std::io::Error>>());
    let answer = api.send(Request::post(&path).body(chunks).unwrap()).await;
    assert_eq!((answer.status.as_u16(), &answer.json()["status"]), (202, &json!("Canceling")));
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_retry_carries_the_selected_tasks_and_never_one_that_is_done(pool: PgPool) {
    let api = TestApi::new(pool);
    let id = submitted(&api).await;
    let ends = [SlurmState::Completed, SlurmState::Failed, SlurmState::Cancelled, SlurmState::Failed];
    let ends: Vec<_> = (0..).zip(ends).collect();
    see(&api, &id, &ends).await;
    tend(&api, &id).await;
    assert_eq!(states(&api, &id).await, ["done", "error", "canceled", "error"]);
    let path = format!("/jobs/{id}/retry");
    api.post(&path, &json!({"tasks": "0-1"})).await.problem(409, "wrong_state");
    api.post(&path, &json!({"tasks": "running"})).await.problem(409, "wrong_state");
    let answer = api.post(&path, &json!({"tasks": "1-2"})).await;
    let counts = json!({"total": 4, "pending": 2, "running": 0, "done": 1, "error": 1, "canceled": 0});
    assert_eq!((answer.status.as_u16(), &answer.json()["tasks"]), (202, &counts));
    assert_eq!(states(&api, &id).await, ["done", "pending", "pending", "error"]);
    piece(&api, &id, 8).await;
    see(&api, &id, &[(1, SlurmState::Completed), (2, SlurmState::Completed)]).await;
    tend(&api, &id).await;
    let ended = api.get(&format!("/jobs/{id}/status")).await.json();
    assert_eq!(
        (&ended["status"], &ended["message"]),
        (&json!("Error"), &json!("3 of 4 tasks done, 1 failed."))
    );
    assert_eq!(api.get(&format!("/jobs/{id}/tasks/1")).await.json()["slurm_job_id"], "8_1");
    // Without a selection all go again that are not done.
    assert_eq!(api.post(&path, &json!({})).await.status, 202);
    assert_eq!(stored(&api, &id).await.array.unwrap().unsubmitted.to_string(), "3");
}

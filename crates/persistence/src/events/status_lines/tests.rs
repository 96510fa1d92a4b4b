use domain::Secrets;
use sqlx::PgPool;
use testkit::command_job;

use super::*;
use crate::{NewJob, Sealer};

async fn run(pool: &PgPool, statement: String) {
    sqlx::raw_sql(sqlx::AssertSqlSafe(statement)).execute(pool).await.unwrap();
}

/// A job with these lines: attempt, file, content.
async fn with_lines(pool: &PgPool, number: u128, lines: &[(i32, &str, &str)]) -> (Store, JobId) {
    let store = Store::from_pool(pool.clone(), Sealer::from_key([7; 32]));
    let new = NewJob { job: command_job(number), secrets: Secrets::default(), request_hash: [0; 32] };
    store.insert_job(&new).await.unwrap();
    for (seq, (attempt, file, data)) in (10_i64..).zip(lines) {
        let id = new.job.id;
        run(pool, format!("insert into job_events (job_id, seq, at, kind, attempt, file, data) values ('{id}', {seq}, now(), 'status', {attempt}, '{file}', '{data}')")).await;
    }
    (store, new.job.id)
}

fn seqs(lines: Vec<MetricLine>) -> Vec<u64> {
    lines.into_iter().map(|line| line.seq).collect()
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn only_lines_with_metrics_of_the_task_and_the_attempt_are_read(pool: PgPool) {
    let lines = [
        (1, "3/status.json", r#"{"kpi": {"loss": 1}}"#),
        (1, "3/status.json", r#"{"status": "RUNNING"}"#),
        (1, "31/status.json", r#"{"graphical": {"loss": 1}}"#),
        (2, "3/train/status.json", r#"{"key_metric": 1}"#),
        (2, "status.json", r#"{"kpi": null}"#),
    ];
    with_lines(&pool, 2, &lines).await;
    let (store, job) = with_lines(&pool, 1, &lines).await;
    let read = async |task, attempt, seq, limit| {
        seqs(store.metric_lines(job, task, attempt, seq, limit).await.unwrap())
    };
    assert_eq!(read(None, None, 0, 100).await, [10, 12, 13, 14]);
    assert_eq!(read(Some(3), None, 0, 100).await, [10, 13]);
    assert_eq!(read(Some(3), Some(2), 0, 100).await, [13]);
    assert_eq!(read(None, None, 10, 2).await, [12, 13]);
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn lines_that_were_not_stored_are_known(pool: PgPool) {
    let (store, job) = with_lines(&pool, 1, &[(1, "status.json", "{}")]).await;
    assert!(!store.lacks_status_lines(job).await.unwrap());
    run(&pool, "update job_events set kind = 'events_truncated' where seq = 10".to_owned()).await;
    assert!(store.lacks_status_lines(job).await.unwrap());
}

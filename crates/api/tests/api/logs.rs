use std::time::Duration;

use api::Limits;
use remote::{LogFrom, LogQuestion};
use serde_json::json;
use sqlx::PgPool;

use crate::support::TestApi;

async fn running(pool: PgPool) -> (TestApi, String) {
    running_on(TestApi::new(pool)).await
}

async fn running_on(api: TestApi) -> (TestApi, String) {
    let id = api.job(&json!({"command": "true"})).await;
    api.submit(&id, 4711, "node1").await;
    (api, id)
}

/// Where each part was looked for, and from where on.
fn parts(api: &TestApi) -> Vec<(String, LogFrom)> {
    let asked = api.logs.asked.lock().unwrap();
    let part = |question: &LogQuestion| match question {
        LogQuestion::Part { paths, from, .. } => Some((paths[0].to_string(), *from)),
        LogQuestion::Files { .. } | LogQuestion::Search { .. } => None,
    };
    asked.iter().flatten().filter_map(part).collect()
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn bytes_come_back_as_they_are(pool: PgPool) {
    let (api, id) = running(pool).await;
    api.logs.write("main.out", b"12345\na\xff\0\x1b[1m\n");
    let answer = api.get(&format!("/jobs/{id}/logs?stream=out&tail=1")).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(answer.bytes, b"a\xff\0\x1b[1m\n");
    assert!(answer.header("content-type").starts_with("text/plain"));
    assert_eq!((answer.header("x-log-size"), answer.header("x-log-attempt")), ("14", "1"));
    assert_eq!((answer.header("x-log-offset"), answer.header("x-log-next-offset")), ("6", "14"));
    let documented = format!("/lustre/users/tao/slurm-logs/tao-job-{id}-4711/main.out");
    assert_eq!(parts(&api), [(documented, LogFrom::TailLines(1))], "the documented path is tried first");
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn the_end_of_a_log_has_at_most_so_many_bytes(pool: PgPool) {
    let (api, id) = running(pool).await;
    api.logs.write("main.out", b"begin\n 1%\r 2%\r 3%\nend\n");
    for (limit, end) in [(7, "3%\nend\n"), (100, " 1%\r 2%\r 3%\nend\n")] {
        let answer = api.get(&format!("/jobs/{id}/logs?stream=out&tail=2&limit={limit}")).await;
        assert_eq!((answer.status.as_u16(), answer.text().as_str()), (200, end), "{limit}");
        assert_eq!(answer.header("x-log-offset"), (22 - end.len()).to_string());
    }
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn an_empty_log_is_an_empty_answer(pool: PgPool) {
    let (api, id) = running(pool).await;
    api.logs.write("main.out", b"");
    let answer = api.get(&format!("/jobs/{id}/logs")).await;
    assert_eq!((answer.status.as_u16(), answer.bytes.len()), (200, 0));
    assert_eq!(parts(&api)[0].1, LogFrom::TailLines(500));
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn all_is_out_and_then_err_even_when_one_is_missing(pool: PgPool) {
    let (api, id) = running(pool).await;
    api.logs.write("main.err", b"traceback\n");
    assert_eq!(api.get(&format!("/jobs/{id}/logs")).await.text(), "traceback\n");
    api.logs.write("main.out", b"epoch 1");
    let both = api.get(&format!("/jobs/{id}/logs?tail=10")).await;
    assert_eq!(both.text(), "epoch 1\ntraceback\n");
    assert_eq!(both.header("x-log-size"), "17");
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn parts_by_bytes_put_end_to_end_are_the_log(pool: PgPool) {
    let (api, id) = running(pool).await;
    let whole: Vec<u8> = (0..=255).collect();
    api.logs.write("main.err", &whole);
    let (mut read, mut next) = (Vec::new(), "0".to_owned());
    loop {
        let part = api.get(&format!("/jobs/{id}/logs?stream=err&offset={next}&limit=100")).await;
        assert_eq!((part.status.as_u16(), part.header("x-log-offset")), (200, next.as_str()));
        next = part.header("x-log-next-offset").to_owned();
        if part.bytes.is_empty() {
            break;
        }
        read.extend(part.bytes);
    }
    assert_eq!((read, next.as_str()), (whole, "256"));
    assert_eq!(parts(&api)[1].1, LogFrom::Offset(100));
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_bar_is_one_line_on_request_and_parts_still_make_the_whole_log(pool: PgPool) {
    let (api, id) = running(pool).await;
    api.logs.write("main.out", b"start\n  0%|  |\r 50%|# |\r100%|##|\nend\n");
    let get = async |query: &str| api.get(&format!("/jobs/{id}/logs?stream=out&{query}")).await;
    assert_eq!(get("rewrites=last").await.text(), "start\n100%|##|\nend\n");
    assert_eq!(get("rewrites=all").await.bytes.len(), 37);
    let first = get("rewrites=last&offset=0&limit=20").await;
    assert_eq!((first.text().as_str(), first.header("x-log-next-offset")), ("start\n", "6"));
    let rest = get("rewrites=last&offset=6").await;
    assert_eq!((rest.text().as_str(), rest.header("x-log-next-offset")), ("100%|##|\nend\n", "37"));
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_role_is_the_logs_of_its_tasks_in_their_order(pool: PgPool) {
    let (api, id) = running(pool).await;
    for (name, text) in [("10.out", "ten"), ("2.out", "two"), ("2.err", "oops\n"), ("x.out", "no task")] {
        api.logs.write(&format!("policy/{name}"), text);
    }
    let text = async |query: &str| api.get(&format!("/jobs/{id}/logs?{query}")).await.text();
    let all = "==> policy/2.out <==\ntwo\n==> policy/2.err <==\noops\n==> policy/10.out <==\nten";
    assert_eq!(text("stream=policy").await, all);
    assert_eq!(text("role=policy&tail=5").await, all);
    assert_eq!(text("role=policy&stream=err").await, "oops\n");
    assert_eq!(text("role=policy&task=10").await, "ten");
    assert_eq!(text("role=policy&task=2&stream=out&offset=1&limit=1").await, "w");
    let documented = format!("/lustre/users/tao/slurm-logs/tao-job-{id}-4711/policy/2.out");
    assert_eq!(parts(&api).last().unwrap().0, documented);
    let none = api.get(&format!("/jobs/{id}/logs?stream=rollout")).await.problem(404, "no_log_yet");
    assert!(none["detail"].as_str().unwrap().contains("`rollout`"), "{none}");
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn the_log_of_an_earlier_attempt_is_read_where_that_attempt_wrote_it(pool: PgPool) {
    let api = TestApi::new(pool);
    let id = api.job(&json!({"command": "true"})).await;
    api.fail(&id, 4711).await;
    api.submit(&id, 4712, "node1").await;
    api.logs.write("-4711/main.out", "first\n");
    api.logs.write("-r2-4712/main.out", "second\n");
    for (query, text, attempt) in
        [("", "second\n", "2"), ("?attempt=1", "first\n", "1"), ("?attempt=2", "second\n", "2")]
    {
        let answer = api.get(&format!("/jobs/{id}/logs{query}")).await;
        assert_eq!((answer.text().as_str(), answer.header("x-log-attempt")), (text, attempt));
    }
    let none = api.get(&format!("/jobs/{id}/logs?attempt=3")).await.problem(404, "attempt_not_found");
    assert!(none["detail"].as_str().unwrap().contains("the newest is 2"), "{none}");
    let gone = api.get(&format!("/jobs/{id}/logs?attempt=1&role=policy")).await.problem(404, "no_log_yet");
    assert!(gone["detail"].as_str().unwrap().contains("Attempt 1 is over"), "{gone}");
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_job_without_a_log_says_why(pool: PgPool) {
    let (api, id) = running(pool).await;
    let waiting = api.get(&format!("/jobs/{id}/logs")).await.problem(404, "no_log_yet");
    assert!(waiting["detail"].as_str().unwrap().contains("has not written a log yet"));
    let unsent = api.job(&json!({"command": "true"})).await;
    for query in ["", "?attempt=1"] {
        let unsent = api.get(&format!("/jobs/{unsent}/logs{query}")).await.problem(404, "no_log_yet");
        assert!(unsent["detail"].as_str().unwrap().contains("not been submitted to Slurm yet"));
    }
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_cluster_that_does_not_answer_is_a_503_with_retry_after(pool: PgPool) {
    let (api, id) = running(pool).await;
    *api.logs.outage.lock().unwrap() = Some("no login host of dgx answers.");
    let answer = api.get(&format!("/jobs/{id}/logs")).await;
    let problem = answer.problem(503, "cluster_unavailable");
    assert!(problem["detail"].as_str().unwrap().contains("no login host of dgx answers"));
    assert_eq!(answer.header("retry-after"), "5");
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn parameters_that_contradict_each_other_are_named(pool: PgPool) {
    let (api, id) = running(pool).await;
    for (query, parameter) in [
        ("stream=both", "stream"),
        ("tail=0", "tail"),
        ("tail=10001", "tail"),
        ("tail=5&offset=0", "tail"),
        ("limit=5", "limit"),
        ("stream=all&offset=0", "offset"),
        ("offset=-1", "offset"),
        ("attempt=0", "attempt"),
        ("attempt=2147483648", "attempt"),
        ("follow=yes", "follow"),
        ("follow=true&offset=1&limit=5", "limit"),
        ("follow=true&offset=1&stream=all", "offset"),
        ("stream=policy&offset=0", "offset"),
        ("stream=policy&role=policy", "role"),
        ("role=../x", "role"),
        ("task=1", "task"),
        ("rewrites=first", "rewrites"),
        ("rewrites=last&follow=true", "rewrites"),
    ] {
        let problem = api.get(&format!("/jobs/{id}/logs?{query}")).await.problem(400, "invalid_parameter");
        assert_eq!(problem["errors"][0]["parameter"], parameter, "{query}");
    }
}

/// Waits until so many reads have reached the cluster.
async fn reads(api: &TestApi, wanted: usize) {
    while api.logs.asked.lock().unwrap().len() < wanted {
        tokio::task::yield_now().await;
    }
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn too_many_readers_get_a_503_and_do_not_reach_the_cluster(pool: PgPool) {
    let limits = Limits { log_reads: 2, log_patience: Duration::from_millis(50), ..Limits::default() };
    let (api, id) = running_on(TestApi::limited(pool, limits)).await;
    api.logs.write("main.out", b"epoch 1\n");
    let path = format!("/jobs/{id}/logs?stream=out");
    let held = api.logs.hold.lock().await;
    let crowd = async {
        reads(&api, 2).await;
        let refused = api.get(&path).await;
        refused.problem(503, "logs_busy");
        assert_eq!(refused.header("retry-after"), "5");
        assert_eq!(api.logs.asked.lock().unwrap().len(), 2);
        // What reads no log is not held up.
        assert_eq!(api.get(&format!("/jobs/{id}/status")).await.status, 200);
        drop(held);
    };
    let (first, second, ()) = tokio::join!(api.get(&path), api.get(&path), crowd);
    assert_eq!((first.text(), second.text()), ("epoch 1\n".to_owned(), "epoch 1\n".to_owned()));
    assert_eq!(api.get(&path).await.status, 200, "a turn is given back");
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_reader_that_comes_a_moment_too_early_gets_its_turn(pool: PgPool) {
    let limits = Limits { log_reads: 1, log_patience: Duration::from_mins(1), ..Limits::default() };
    let (api, id) = running_on(TestApi::limited(pool, limits)).await;
    api.logs.write("main.out", b"epoch 1\n");
    let path = format!("/jobs/{id}/logs?stream=out");
    let held = api.logs.hold.lock().await;
    let release = async {
        reads(&api, 1).await;
        drop(held);
    };
    let (first, second, ()) = tokio::join!(api.get(&path), api.get(&path), release);
    assert_eq!((first.status.as_u16(), second.status.as_u16()), (200, 200));
}

use remote::LogQuestion;
use serde_json::{Value, json};
use sqlx::PgPool;

use crate::support::TestApi;

async fn running(pool: PgPool) -> (TestApi, String) {
    let api = TestApi::new(pool);
    let id = api.job(&json!({"command": "true"})).await;
    api.submit(&id, 4711, "node1").await;
    (api, id)
}

async fn search(api: &TestApi, id: &str, query: &str) -> Value {
    let answer = api.get(&format!("/jobs/{id}/logs/search?{query}")).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_hit_has_its_place_and_the_line_around_it(pool: PgPool) {
    let (api, id) = running(pool).await;
    api.logs.write("main.out", "epoch 1\n");
    api.logs.write("main.err", "one\n\x1b[31mRuntimeError\x1b[0m: CUDA\n");
    let found = search(&api, &id, "q=Error").await;
    let hit = json!({"log": "main.err", "offset": 16, "excerpt": "RuntimeError: CUDA", "match_start": 7, "match_length": 5});
    assert_eq!(found["hits"], json!([hit]));
    assert_eq!((&found["attempt"], &found["complete"]), (&json!(1), &json!(true)));
    let log =
        |log: &str, size: u64| json!({"log": log, "size": size, "from": 0, "to": size, "complete": true});
    assert_eq!(found["logs"], json!([log("main.out", 8), log("main.err", 32)]));
    let there = api.get(&format!("/jobs/{id}/logs?stream=err&offset=16&limit=5")).await;
    assert_eq!(there.text(), "Error");
    assert_eq!(search(&api, &id, "q=nothing").await["hits"], json!([]));
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_search_goes_on_where_it_stopped(pool: PgPool) {
    let (api, id) = running(pool).await;
    api.logs.write("main.out", "x\n".repeat(5));
    let (mut from, mut seen) = (0, Vec::new());
    loop {
        let found = search(&api, &id, &format!("q=x&stream=out&limit=2&from={from}")).await;
        seen.extend(found["hits"].as_array().unwrap().iter().map(|hit| hit["offset"].as_u64().unwrap()));
        from = found["logs"][0]["to"].as_u64().unwrap();
        if found["complete"] == true {
            break;
        }
    }
    assert_eq!((seen, from), (vec![0, 2, 4, 6, 8], 10));
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn the_pattern_reaches_the_cluster_as_it_was_sent(pool: PgPool) {
    let (api, id) = running(pool).await;
    api.logs.write("policy/0.out", "x\n");
    search(&api, &id, "q=-e%20%24(x)%27&role=policy&regex=true&ignore_case=true&limit=7").await;
    let asked = api.logs.asked.lock().unwrap().iter().flatten().last().cloned().unwrap();
    let LogQuestion::Search { pattern, logs, from, most, .. } = asked else { panic!("{asked:?}") };
    assert_eq!(
        (pattern.text.as_str(), pattern.is_expression, pattern.ignores_case),
        ("-e $(x)'", true, true)
    );
    assert_eq!((logs.len(), from, most), (1, 0, 7));
    assert!(logs[0][0].as_str().ends_with("/policy/0.out"));
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn an_invalid_expression_is_the_callers_fault(pool: PgPool) {
    let (api, id) = running(pool).await;
    api.logs.write("main.out", "x\n");
    let problem =
        api.get(&format!("/jobs/{id}/logs/search?q=(&regex=true")).await.problem(400, "invalid_parameter");
    assert_eq!(
        (&problem["errors"][0]["parameter"], &problem["errors"][0]["code"]),
        (&json!("q"), &json!("invalid_pattern"))
    );
    assert!(problem["detail"].as_str().unwrap().contains("Unmatched ( or"), "{problem}");
    search(&api, &id, "q=(").await;
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_search_without_a_log_or_a_cluster_says_why(pool: PgPool) {
    let (api, id) = running(pool).await;
    let path = format!("/jobs/{id}/logs/search?q=x");
    api.get(&path).await.problem(404, "no_log_yet");
    api.get(&format!("{path}&attempt=2")).await.problem(404, "attempt_not_found");
    *api.logs.outage.lock().unwrap() = Some("no login host of dgx answers.");
    let answer = api.get(&path).await;
    answer.problem(503, "cluster_unavailable");
    assert_eq!(answer.header("retry-after"), "5");
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn parameters_of_a_search_are_checked(pool: PgPool) {
    let (api, id) = running(pool).await;
    let long = "x".repeat(501);
    for (query, parameter) in [
        ("", "q"),
        ("q=", "q"),
        ("q=a%0Ab", "q"),
        ("q=a%0Db", "q"),
        ("q=a%00b", "q"),
        (&format!("q={long}"), "q"),
        ("q=x&regex=yes", "regex"),
        ("q=x&limit=0", "limit"),
        ("q=x&limit=201", "limit"),
        ("q=x&from=-1", "from"),
        ("q=x&from=0&stream=all", "from"),
        ("q=x&role=../x", "role"),
        ("q=x&task=1", "task"),
        ("q=x&tail=5", "tail"),
    ] {
        let problem =
            api.get(&format!("/jobs/{id}/logs/search?{query}")).await.problem(400, "invalid_parameter");
        assert_eq!(problem["errors"][0]["parameter"], parameter, "{query}");
    }
}

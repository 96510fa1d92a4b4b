use serde_json::{Value, json};
use sqlx::PgPool;

use crate::support::TestApi;

async fn run(api: &TestApi, statement: String) {
    sqlx::raw_sql(sqlx::AssertSqlSafe(statement)).execute(&api.pool).await.unwrap();
}

/// A job with these status lines: attempt, file, content.
async fn with_lines(api: &TestApi, job: Value, lines: &[(i32, &str, Value)]) -> String {
    let id = api.job(&job).await;
    api.submit(&id, 4711, "node1").await;
    add(api, &id, lines).await;
    id
}

async fn add(api: &TestApi, id: &str, lines: &[(i32, &str, Value)]) {
    for (seq, (attempt, file, data)) in (100_i64..).zip(lines) {
        let values = format!("'{id}', {seq}, now(), 'status', {attempt}, '{file}', $json${data}$json$");
        run(
            api,
            format!("insert into job_events (job_id, seq, at, kind, attempt, file, data) values ({values})"),
        )
        .await;
    }
}

async fn metrics(api: &TestApi, id: &str, query: &str) -> Value {
    let answer = api.get(&format!("/jobs/{id}/metrics?{query}")).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()
}

/// Name, attempt, x and values.
fn shown(answer: &Value) -> Vec<Value> {
    let series = answer["series"].as_array().unwrap();
    series.iter().map(|one| json!([one["name"], one["attempt"], one["x"], one["values"]])).collect()
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn each_metric_of_each_attempt_is_a_series(pool: PgPool) {
    let api = TestApi::new(pool);
    let lines = [
        (1, "status.json", json!({"step": 1, "epoch": 0.5, "kpi": {"loss": 0.5, "acc": "0.25"}})),
        (1, "status.json", json!({"step": 2, "epoch": 1.0, "kpi": {"loss": null}})),
        (2, "status.json", json!({"epoch": 1.0, "kpi": {"loss": 0.75}})),
    ];
    let id = with_lines(&api, json!({"command": "true"}), &lines).await;
    let all = metrics(&api, &id, "").await;
    let expected = [
        json!(["acc", 1, [1.0], [0.25]]),
        json!(["loss", 1, [1.0], [0.5]]),
        json!(["loss", 2, [1.0], [0.75]]),
    ];
    assert_eq!(shown(&all), expected);
    let first = &all["series"][1];
    assert_eq!(
        (&first["axis"], &first["count"], &first["not_finite"]),
        (&json!("step"), &json!(1), &json!(1))
    );
    assert_eq!(
        (&all["series"][2]["axis"], &all["truncated"], &all["task"]),
        (&json!("epoch"), &json!(false), &json!(0))
    );
    assert_eq!(first["times"].as_array().unwrap().len(), 1);
    assert_eq!(shown(&metrics(&api, &id, "key=loss&attempt=1").await), expected[1..2]);
    assert_eq!(shown(&metrics(&api, &id, "key=acc&key=none").await), expected[..1]);
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn of_many_values_some_are_returned_and_their_number_is(pool: PgPool) {
    let api = TestApi::new(pool);
    let line = |step: u32| {
        (1, "status.json", json!({"step": step, "kpi": {"loss": if step == 600 { 9 } else { 1 }}}))
    };
    let id = with_lines(&api, json!({"command": "true"}), &(0..1200).map(line).collect::<Vec<_>>()).await;
    let few = metrics(&api, &id, "max_points=10").await;
    let x = few["series"][0]["x"].as_array().unwrap();
    assert_eq!(few["series"][0]["count"], 1200);
    assert!((7..=10).contains(&x.len()), "{x:?}");
    assert!([0.0, 600.0, 1199.0].iter().all(|place| x.contains(&json!(place))), "{x:?}");
    let default = metrics(&api, &id, "").await["series"][0]["x"].as_array().unwrap().len();
    assert!((490..=500).contains(&default), "{default}");
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn hostile_names_are_returned_as_json_or_left_out(pool: PgPool) {
    let api = TestApi::new(pool);
    let name = "\"><script>alert(1)</script>\u{202e}";
    let kpi = json!({name: 1, "nul\u{1}": 1, "x".repeat(101): 1, "__proto__": 2});
    let id = with_lines(&api, json!({"command": "true"}), &[(1, "s", json!({"kpi": kpi}))]).await;
    let names: Vec<_> = shown(&metrics(&api, &id, "").await).iter().map(|one| one[0].clone()).collect();
    assert_eq!(names, [json!(name), json!("__proto__")]);
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn lines_that_were_not_stored_make_it_truncated(pool: PgPool) {
    let api = TestApi::new(pool);
    let id = with_lines(&api, json!({"command": "true"}), &[(1, "s", json!({"kpi": {"loss": 1}}))]).await;
    run(&api, "update job_events set kind = 'events_truncated' where kind = 'status'".to_owned()).await;
    let answer = metrics(&api, &id, "").await;
    assert_eq!((&answer["truncated"], &answer["series"]), (&json!(true), &json!([])));
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_task_of_an_array_has_its_own(pool: PgPool) {
    let api = TestApi::new(pool);
    let id = api.job(&json!({"command": "true", "array": {"indices": "0-20"}})).await;
    let line = |task: u32| (1, format!("{task}/status.json"), json!({"epoch": 1, "kpi": {"loss": task}}));
    let lines = [line(1), line(11)];
    let lines: Vec<_> = lines.iter().map(|(no, file, data)| (*no, file.as_str(), data.clone())).collect();
    add(&api, &id, &lines).await;
    assert_eq!(shown(&metrics(&api, &id, "task=1").await), [json!(["loss", 1, [1.0], [1.0]])]);
    let needed = api.get(&format!("/jobs/{id}/metrics")).await.problem(400, "invalid_parameter");
    assert_eq!(needed["errors"][0]["code"], "required");
    api.get(&format!("/jobs/{id}/metrics?task=21")).await.problem(404, "task_not_found");
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn parameters_of_metrics_are_checked(pool: PgPool) {
    let api = TestApi::new(pool);
    let id = with_lines(&api, json!({"command": "true"}), &[]).await;
    let many = (0..201).map(|name| format!("key={name}")).collect::<Vec<_>>().join("&");
    for (query, parameter) in [
        ("max_points=9", "max_points"),
        ("max_points=5001", "max_points"),
        ("attempt=0", "attempt"),
        ("keys=a", "keys"),
        (&many, "key"),
    ] {
        let problem = api.get(&format!("/jobs/{id}/metrics?{query}")).await.problem(400, "invalid_parameter");
        assert_eq!(problem["errors"][0]["parameter"], parameter, "{query}");
    }
    api.get(&format!("/jobs/{id}/metrics?attempt=2")).await.problem(404, "attempt_not_found");
}

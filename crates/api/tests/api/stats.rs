//! Figures about jobs, with jobs whose times are known.

use std::fmt::Write;

use axum::http::Method;
use chrono::{DateTime, TimeDelta};
use domain::{Clock, Phase, Status};
use serde_json::{Value, json};
use sqlx::PgPool;

use crate::support::TestApi;

/// The days that most of these jobs are of. The clock of the tests is in the morning of the day after.
pub(crate) const DAYS: &str = "since=2026-09-18T00:00:00Z&until=2026-09-21T00:00:00Z";

/// What a job went through, as the service stores it.
#[derive(Clone, Copy, Default)]
struct Life<'a> {
    created: &'a str,
    /// Its attempts: when Slurm accepted each.
    attempts: &'a [&'a str],
    /// Its runs: attempt, task, since when it was in the queue if that is known, when it started, and where.
    runs: &'a [(u32, u32, Option<&'a str>, &'a str, &'a str)],
    ended: Option<(&'a str, &'a str)>,
    rule: Option<&'a str>,
}

async fn lived(api: &TestApi, request: &Value, life: Life<'_>) -> String {
    let id = api.job(request).await;
    let mut sql = format!(
        "update jobs set created_at = '{}', attempt = {} where id = '{id}';",
        life.created,
        life.attempts.len()
    );
    for (number, submitted) in (1..).zip(life.attempts) {
        write!(
            sql,
            "insert into slurm_metadata (job_id, attempt, token, job_dir, slurm_job_id, intended_at, submitted_at)
             values ('{id}', {number}, '{id}-{number}', '/d', 7, '{submitted}', '{submitted}');"
        )
        .unwrap();
    }
    for (attempt, task, queued, started, partition) in life.runs {
        let queued = queued.map_or("null".to_owned(), |queued| format!("'{queued}'"));
        let is_newest = usize::try_from(*attempt).unwrap() == life.attempts.len();
        let rule = if is_newest { life.rule } else { Some("node-fail") };
        let failure = rule.map_or("null".to_owned(), |rule| format!("'{}'", json!({"rule": rule})));
        write!(
            sql,
            "insert into runs (job_id, attempt, task, queued_since, started_at, partition, failure)
             values ('{id}', {attempt}, {task}, {queued}, '{started}', '{partition}', {failure});"
        )
        .unwrap();
    }
    if let Some((status, at)) = life.ended {
        write!(
            sql,
            "update jobs set phase = 'ended', status = '{status}', due_at = null, finished_at = '{at}' where id = '{id}';"
        )
        .unwrap();
    }
    sqlx::raw_sql(sqlx::AssertSqlSafe(sql)).execute(&api.pool).await.unwrap();
    id
}

fn command(team: Option<&str>) -> Value {
    json!({"command": "true", "labels": team.map_or(json!({}), |team| json!({"team": team}))})
}

/// Five jobs of callers and one of the service.
async fn some(api: &TestApi) {
    let vision = command(Some("vision"));
    let life = Life {
        created: "2026-09-18T10:00:00Z",
        attempts: &["2026-09-18T10:00:01Z"],
        runs: &[(1, 0, Some("2026-09-18T10:00:00Z"), "2026-09-18T10:00:10Z", "polar")],
        ended: Some(("Done", "2026-09-18T11:00:00Z")),
        rule: None,
    };
    lived(api, &vision, life).await;
    // Its times are the ends of days.
    let life = Life {
        created: "2026-09-18T23:59:59.999999Z",
        attempts: &["2026-09-19T00:00:00Z"],
        runs: &[(1, 0, Some("2026-09-19T00:00:00Z"), "2026-09-19T00:00:20Z", "polar")],
        ended: Some(("Error", "2026-09-20T00:00:00Z")),
        rule: Some("cuda-out-of-memory"),
    };
    lived(api, &vision, life).await;
    let mut sweep = command(Some("speech"));
    sweep["array"] = json!({"indices": "0-9"});
    let life = Life {
        created: "2026-09-20T05:00:00Z",
        attempts: &["2026-09-20T05:00:00Z"],
        runs: &[
            (1, 0, Some("2026-09-20T05:00:00Z"), "2026-09-20T05:00:30Z", "polar"),
            (1, 1, Some("2026-09-20T05:00:00Z"), "2026-09-20T05:02:10Z", "polar"),
        ],
        ..Life::default()
    };
    lived(api, &sweep, life).await;
    let life = Life {
        created: "2026-09-17T05:00:00Z",
        ended: Some(("Canceled", "2026-09-18T00:00:00Z")),
        ..Life::default()
    };
    lived(api, &command(None), life).await;
    lived(api, &command(None), Life { created: "2026-09-21T00:00:00Z", ..Life::default() }).await;
    let life = Life {
        created: "2026-09-18T10:00:00Z",
        attempts: &["2026-09-18T10:00:00Z"],
        runs: &[(1, 0, Some("2026-09-18T10:00:00Z"), "2026-09-18T12:00:00Z", "polar")],
        ended: Some(("Done", "2026-09-18T13:00:00Z")),
        rule: None,
    };
    let conversion = lived(api, &command(Some("vision")), life).await;
    let owned = format!("update jobs set owner = '' where id = '{conversion}'");
    sqlx::raw_sql(sqlx::AssertSqlSafe(owned)).execute(&api.pool).await.unwrap();
}

pub(crate) async fn stats(api: &TestApi, query: &str) -> Value {
    let answer = api.get(&format!("/stats?{query}")).await;
    assert_eq!(answer.status, 200, "{query}: {}", answer.text());
    answer.json()
}

fn figures(
    submitted: u32,
    ended: [u32; 3],
    rate: Option<f64>,
    waits: (u32, Option<f64>, Option<f64>),
) -> Value {
    json!({
        "submitted": submitted,
        "ended": {"done": ended[0], "error": ended[1], "canceled": ended[2]},
        "success_rate": rate,
        "queue_wait_seconds": {"runs": waits.0, "p50": waits.1, "p90": waits.2},
        "gpu_hours": 0.0,
    })
}

/// The figures of an entry, without what it is of.
fn entry(name: &str, value: Value, figures: &Value) -> Value {
    let mut entry = figures.clone();
    entry[name] = value;
    entry
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn the_figures_are_of_what_happened_in_the_window(pool: PgPool) {
    let api = TestApi::new(pool);
    some(&api).await;
    let shown = stats(&api, &format!("{DAYS}&bucket=day")).await;
    let waits = (4, Some(25.0), Some(100.0));
    assert_eq!(shown["totals"], figures(3, [1, 1, 1], Some(0.5), waits), "{shown}");
    assert_eq!(shown["now"], json!([{"status": "Pending", "jobs": 2}]), "the window does not matter");
    assert_eq!((&shown["groups"], &shown["groups_truncated"]), (&json!(null), &json!(false)));
    let days = [
        figures(2, [1, 0, 1], Some(1.0), (1, Some(10.0), Some(10.0))),
        figures(0, [0, 0, 0], None, (1, Some(20.0), Some(20.0))),
        figures(1, [0, 1, 0], Some(0.0), (2, Some(80.0), Some(120.0))),
    ];
    let days = days.iter().zip(["2026-09-18", "2026-09-19", "2026-09-20"]);
    let days: Value =
        days.map(|(figures, day)| entry("start", json!(format!("{day}T00:00:00Z")), figures)).collect();
    assert_eq!(shown["buckets"], days);
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn hours_in_which_nothing_happened_are_zeros(pool: PgPool) {
    let api = TestApi::new(pool);
    some(&api).await;
    let query = "since=2026-09-18T08:30:00Z&until=2026-09-18T12:30:00Z&bucket=hour";
    let shown = stats(&api, query).await;
    let hours: Vec<_> =
        shown["buckets"].as_array().unwrap().iter().map(|hour| hour["start"].as_str().unwrap()).collect();
    assert_eq!(hours, ["08", "09", "10", "11", "12"].map(|hour| format!("2026-09-18T{hour}:00:00Z")));
    let nothing = figures(0, [0, 0, 0], None, (0, None, None));
    for (number, hour) in [(0, "08"), (1, "09"), (4, "12")] {
        let start = json!(format!("2026-09-18T{hour}:00:00Z"));
        assert_eq!(shown["buckets"][number], entry("start", start, &nothing));
    }
    assert_eq!(
        (&shown["buckets"][2]["submitted"], &shown["buckets"][3]["ended"]["done"]),
        (&json!(1), &json!(1))
    );
    let weeks = stats(&api, &format!("{DAYS}&bucket=week")).await["buckets"].clone();
    assert_eq!(
        weeks,
        json!([entry("start", json!("2026-09-14T00:00:00Z"), &stats(&api, DAYS).await["totals"])])
    );
    let empty =
        stats(&api, "since=2020-01-01T00:00:00Z&until=2020-01-01T00:30:00Z&bucket=hour&group_by=owner").await;
    assert_eq!((&empty["totals"], &empty["groups"]), (&nothing, &json!([])));
    assert_eq!(empty["buckets"], json!([entry("start", json!("2020-01-01T00:00:00Z"), &nothing)]));
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn groups_have_the_figures_of_their_jobs_and_most_jobs_come_first(pool: PgPool) {
    let api = TestApi::new(pool);
    some(&api).await;
    let groups = async |by: &str| stats(&api, &format!("{DAYS}&group_by={by}")).await["groups"].clone();
    let vision = figures(2, [1, 1, 0], Some(0.5), (2, Some(15.0), Some(19.0)));
    let speech = figures(1, [0, 0, 0], None, (2, Some(80.0), Some(120.0)));
    let none = figures(0, [0, 0, 1], None, (0, None, None));
    assert_eq!(
        groups("label:team").await,
        json!([
            entry("value", json!("vision"), &vision),
            entry("value", json!("speech"), &speech),
            entry("value", json!(null), &none),
        ])
    );
    let failed = figures(1, [0, 1, 0], Some(0.0), (1, Some(20.0), Some(20.0)));
    let others = figures(2, [1, 0, 1], Some(1.0), (3, Some(30.0), Some(110.0)));
    assert_eq!(
        groups("rule").await,
        json!([entry("value", json!(null), &others), entry("value", json!("cuda-out-of-memory"), &failed)])
    );
    let totals = stats(&api, DAYS).await["totals"].clone();
    assert_eq!(groups("cluster").await, json!([entry("value", json!("dgx"), &totals)]));
    assert_eq!(groups("owner").await, json!([entry("value", json!("local"), &totals)]));
    let statuses = groups("status").await;
    let of =
        |status: &str| statuses.as_array().unwrap().iter().find(|group| group["value"] == status).unwrap();
    assert_eq!((&of("Done")["submitted"], &of("Done")["success_rate"]), (&json!(1), &json!(1.0)));
    assert_eq!(of("Pending")["queue_wait_seconds"]["runs"], 2);
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn each_run_waits_from_its_newest_queueing_and_counts_where_it_ran(pool: PgPool) {
    let api = TestApi::new(pool);
    let mut request = command(None);
    request["backend_details"] = json!({"backend_type": "slurm", "partition": "polar,polar3"});
    let life = Life {
        created: "2026-09-18T10:00:00Z",
        attempts: &["2026-09-18T10:00:00Z", "2026-09-18T11:00:00Z", "2026-09-18T12:00:00Z"],
        runs: &[
            // Slurm requeued it; a poll never saw it in the queue; the clocks of Slurm and of the service differ.
            (1, 0, Some("2026-09-18T10:30:00Z"), "2026-09-18T10:30:40Z", "polar"),
            (2, 0, None, "2026-09-18T11:01:00Z", "polar"),
            (3, 0, None, "2026-09-18T11:59:58Z", "polar3"),
        ],
        ended: Some(("Done", "2026-09-18T13:00:00Z")),
        rule: None,
    };
    let id = lived(&api, &request, life).await;
    let partitions = stats(&api, &format!("{DAYS}&group_by=partition")).await;
    assert_eq!(partitions["totals"], figures(1, [1, 0, 0], Some(1.0), (3, Some(40.0), Some(56.0))));
    let both = |waits| figures(1, [1, 0, 0], Some(1.0), waits);
    assert_eq!(
        partitions["groups"],
        json!([
            entry("value", json!("polar"), &both((2, Some(50.0), Some(58.0)))),
            entry("value", json!("polar3"), &both((1, Some(0.0), Some(0.0)))),
        ])
    );
    // A job that has run is where its newest run is.
    let placed = format!("update jobs set partition = 'polar3' where id = '{id}'");
    sqlx::raw_sql(sqlx::AssertSqlSafe(placed)).execute(&api.pool).await.unwrap();
    let polar = stats(&api, &format!("{DAYS}&partition=polar")).await["totals"].clone();
    assert_eq!(polar, figures(0, [0, 0, 0], None, (2, Some(50.0), Some(58.0))));
    let either = stats(&api, &format!("{DAYS}&partition=polar&partition=polar3")).await["totals"].clone();
    assert_eq!(either, partitions["totals"]);
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn an_owner_counts_only_their_own_jobs(pool: PgPool) {
    let api = TestApi::guarded(pool);
    for (token, scopes) in [("ann", "read write"), ("bob", "read write"), ("root", "admin")] {
        api.token(token, token, scopes, None).await;
    }
    for token in ["ann", "ann", "bob"] {
        let sent = api.call_as(token, Method::POST, "/jobs", Some(&command(None))).await;
        assert_eq!(sent.status, 201);
    }
    let id = api.get_as("bob", "/jobs").await.json()["jobs"][0]["id"].as_str().unwrap().to_owned();
    api.submit(&id, 7, "node01").await;
    let now = api.clock.now();
    api.see(&id, |job| job.run.started_at = Some(now)).await;
    api.clock.advance(TimeDelta::seconds(1));
    let figures = async |token: &str, query: &str| {
        let shown = api.get_as(token, &format!("/stats?bucket=day&group_by=owner{query}")).await.json();
        let groups = shown["groups"].as_array().unwrap().iter();
        let groups: Vec<_> = groups.map(|group| group["value"].as_str().unwrap().to_owned()).collect();
        let of_days = shown["buckets"].as_array().unwrap().iter();
        let sum: u64 = of_days.map(|day| day["submitted"].as_u64().unwrap()).sum();
        assert_eq!(shown["totals"]["submitted"], sum);
        let runs = shown["totals"]["queue_wait_seconds"]["runs"].as_u64().unwrap();
        let now = shown["now"].as_array().unwrap().iter();
        (sum, groups, runs, now.map(|count| count["jobs"].as_u64().unwrap()).sum::<u64>())
    };
    let owners = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(figures("ann", "").await, (2, owners(&["ann"]), 0, 2));
    assert_eq!(figures("ann", "&owner=bob").await, (0, owners(&[]), 0, 0));
    assert_eq!(figures("bob", "").await, (1, owners(&["bob"]), 1, 1));
    assert_eq!(figures("root", "").await, (3, owners(&["ann", "bob"]), 1, 3));
    assert_eq!(figures("root", "&owner=bob&owner=carl").await, (1, owners(&["bob"]), 1, 1));
    sqlx::raw_sql(crate::gpu_hours::HELD).execute(&api.pool).await.unwrap();
    let held = api.get_as("bob", &format!("/stats?{DAYS}")).await.json()["totals"]["gpu_hours"].as_f64();
    assert_eq!(held.map(|hours| (hours * 3600.0).round()), Some(1801.0 * 2.0));
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn what_the_service_records_is_what_is_counted(pool: PgPool) {
    let api = TestApi::new(pool);
    let id = api.job(&command(Some("vision"))).await;
    api.clock.advance(TimeDelta::seconds(5));
    api.submit(&id, 7, "node01").await;
    let accepted = api.clock.now();
    api.clock.advance(TimeDelta::seconds(90));
    let started = api.clock.now();
    api.see(&id, |job| {
        (job.phase, job.status) = (Phase::Running, Status::Running);
        job.run.queued_since = Some(accepted);
        job.run.started_at = Some(started);
    })
    .await;
    assert_eq!(stats(&api, "").await["now"], json!([{"status": "Running", "jobs": 1}]));
    api.end(&id).await;
    api.clock.advance(TimeDelta::seconds(1));
    let shown = stats(&api, "label=team:vision").await;
    assert_eq!(shown["totals"], figures(1, [1, 0, 0], Some(1.0), (1, Some(90.0), Some(90.0))));
    let until = DateTime::parse_from_rfc3339(shown["until"].as_str().unwrap()).unwrap();
    let since = DateTime::parse_from_rfc3339(shown["since"].as_str().unwrap()).unwrap();
    assert_eq!((until.to_utc(), until - since), (api.clock.now(), TimeDelta::days(7)));
    assert_eq!(shown["now"], json!([]));
    let other = stats(&api, "label=team:speech&cluster=dgx&group_by=label:team").await;
    assert_eq!((&other["totals"]["submitted"], &other["groups"]), (&json!(0), &json!([])));
    assert_eq!(stats(&api, "cluster=elsewhere").await["totals"]["submitted"], 0);
    // A job that its owner deletes is no longer counted.
    let deleted = format!("update jobs set desired_state = 'delete' where id = '{id}'");
    sqlx::raw_sql(sqlx::AssertSqlSafe(deleted)).execute(&api.pool).await.unwrap();
    assert_eq!(stats(&api, "").await["totals"]["submitted"], 0);
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn labels_are_texts_whatever_they_contain(pool: PgPool) {
    let api = TestApi::new(pool);
    let keys = ["'; drop table jobs; --", "a:b", "%_\\", "<b>", "\u{202e}x", "{\"a\": [1]}"];
    let values = ["' or '1'='1", "<script>alert(1)</script>", "a,b", "%", "\\", "NaN", "", "null"];
    for value in values {
        let labels: Value = keys
            .iter()
            .map(|key| ((*key).to_owned(), json!(value)))
            .collect::<serde_json::Map<_, _>>()
            .into();
        api.job(&json!({"command": "true", "labels": labels})).await;
    }
    api.job(&json!({"command": "true"})).await;
    api.clock.advance(TimeDelta::seconds(1));
    let encoded = |text: &str| text.bytes().fold(String::new(), |all, byte| all + &format!("%{byte:02X}"));
    for key in keys {
        let shown = stats(&api, &format!("group_by=label:{}", encoded(key))).await;
        let mut found: Vec<_> =
            shown["groups"].as_array().unwrap().iter().map(|group| group["value"].as_str()).collect();
        let mut sent: Vec<_> = values.into_iter().map(Some).chain([None]).collect();
        found.sort_unstable();
        sent.sort_unstable();
        assert_eq!(found, sent, "{key}");
        if !key.contains(':') {
            let query = format!("label={}:{}", encoded(key), encoded(values[0]));
            assert_eq!(stats(&api, &query).await["totals"]["submitted"], 1, "{key}");
        }
    }
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn the_smallest_groups_are_left_out(pool: PgPool) {
    let api = TestApi::new(pool);
    for number in 0..=100 {
        api.job(&command(Some(&format!("{number:03}")))).await;
    }
    let count = async || {
        api.clock.advance(TimeDelta::seconds(1));
        let shown = stats(&api, "group_by=label:team").await;
        assert!(shown["totals"]["submitted"].as_u64().unwrap() > 100, "{shown}");
        (
            shown["groups"].as_array().unwrap().len(),
            shown["groups_truncated"].clone(),
            shown["groups"][0]["value"].clone(),
        )
    };
    assert_eq!(count().await, (100, json!(true), json!("000")), "of groups of the same size the first ones");
    api.job(&command(Some("100"))).await;
    assert_eq!(count().await, (100, json!(true), json!("100")));
    let merged = "update jobs set labels = '{\"team\": \"099\"}' where labels ->> 'team' = '098'";
    sqlx::raw_sql(merged).execute(&api.pool).await.unwrap();
    assert_eq!(count().await.1, json!(false), "100 groups are all of them");
}

use axum::http::Method;
use chrono::TimeDelta;
use std::collections::BTreeSet;

use serde_json::{Value, json};
use sqlx::PgPool;

use crate::support::TestApi;

/// As a worker would.
async fn end(api: &TestApi, id: &str) {
    let ended = format!(
        "update jobs set phase = 'ended', status = 'Canceled', due_at = null, finished_at = now() where id = '{id}'"
    );
    sqlx::raw_sql(sqlx::AssertSqlSafe(ended)).execute(&api.pool).await.unwrap();
}

fn ids(page: &Value) -> Vec<String> {
    page["jobs"].as_array().unwrap().iter().map(|job| job["id"].as_str().unwrap().to_owned()).collect()
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn pages_have_no_gaps_and_no_repeats_while_jobs_are_added(pool: PgPool) {
    let api = TestApi::new(pool);
    let mut sent = Vec::new();
    for number in 0..7 {
        sent.push(api.job(&json!({"command": "true"})).await);
        // Some share their moment: the id decides their order.
        if number % 3 == 0 {
            api.clock.advance(TimeDelta::seconds(1));
        }
    }
    let mut seen = Vec::new();
    let mut next = "/jobs?limit=2".to_owned();
    loop {
        let page = api.get(&next).await;
        assert_eq!(page.status, 200, "{}", page.text());
        seen.extend(ids(&page.json()));
        api.clock.advance(TimeDelta::seconds(1));
        api.job(&json!({"command": "true", "name": "late"})).await;
        let Some(token) = page.json()["next_page_token"].as_str().map(str::to_owned) else {
            assert!(!page.headers.contains_key("link"));
            break;
        };
        let link = page.header("link");
        assert_eq!(link, format!("</jobs?limit=2&page_token={token}>; rel=\"next\""));
        next = link.trim_start_matches('<').split('>').next().unwrap().to_owned();
    }
    assert_eq!(seen.len(), 7);
    assert_eq!(seen.iter().collect::<BTreeSet<_>>(), sent.iter().collect::<BTreeSet<_>>());
    assert_eq!(seen.first(), sent.last(), "newest first");
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn filters_all_have_to_match(pool: PgPool) {
    let api = TestApi::new(pool);
    let tao = json!({
        "image": "x", "network_arch": "dino", "action": "train", "labels": {"team": "vision", "run": "a:b"},
    });
    let tao = api.job(&tao).await;
    let command = api.job(&json!({"command": "true", "labels": {"team": "vision"}})).await;
    let found = async |query: &str| ids(&api.get(&format!("/jobs?{query}")).await.json());
    assert_eq!(found("status=Pending&cluster=dgx").await, [command.clone(), tao.clone()]);
    assert_eq!(found("network_arch=dino&action=train").await, std::slice::from_ref(&tao));
    assert_eq!(found("label=team%3Avision&label=run:a:b").await, [tao]);
    assert_eq!(found("label=team:vision").await.len(), 2);
    assert!(found("status=Done").await.is_empty());
    assert!(found("action=evaluate").await.is_empty());
    assert!(found("cluster=elsewhere").await.is_empty());
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_parameter_that_is_not_acceptable_is_named(pool: PgPool) {
    let api = TestApi::new(pool);
    for (query, parameter, code) in [
        ("colour=red", "colour", "unknown_parameter"),
        ("status=Runing", "status", "invalid"),
        ("label=team=vision", "label", "invalid"),
        ("label=:vision", "label", "invalid"),
        ("partition=a%20b", "partition", "invalid"),
        ("sort=name", "sort", "invalid"),
        ("facets=status,colour", "facets", "invalid"),
        ("q=a&q=b", "q", "repeated"),
        ("limit=0", "limit", "out_of_range"),
        ("limit=201", "limit", "out_of_range"),
        ("limit=many", "limit", "invalid"),
        ("label=team", "label", "invalid"),
        ("label=team:a&label=team:b", "label", "contradiction"),
        ("cluster=%2Fetc", "cluster", "invalid"),
        ("action=%00", "action", "invalid"),
        ("created_after=yesterday", "created_after", "invalid"),
        ("created_before=2026-11-21", "created_before", "invalid"),
        // A `+` that is not encoded is a space.
        ("created_before=2026-11-21T00:00:00+01:00", "created_before", "invalid"),
        ("created_after=-0001-01-01T00:00:00Z", "created_after", "invalid"),
        ("page_token=abc", "page_token", "invalid"),
    ] {
        let problem = api.get(&format!("/jobs?{query}")).await.problem(400, "invalid_parameter");
        assert_eq!(problem["errors"][0]["parameter"], parameter, "{query}");
        assert_eq!(problem["errors"][0]["code"], code, "{query}");
        assert!(problem["detail"].as_str().unwrap().contains(parameter), "{query}");
    }
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn one_of_several_values_has_to_match_and_texts_are_found_in_names_labels_and_ids(pool: PgPool) {
    let api = TestApi::new(pool);
    let job = |name: &str, partition: &str, team: &str| json!({"command": "true", "name": name, "labels": {"team": team}, "backend_details": {"backend_type": "slurm", "partition": partition}});
    let one = api.job(&job("Llama 100%", "polar", "vision")).await;
    let two = api.job(&job("eval_a", "polar3,polar4", "speech")).await;
    let three = api.job(&job("evalxa", "polar4", "speech")).await;
    end(&api, &three).await;
    let found = async |query: &str| {
        let mut ids = ids(&api.get(&format!("/jobs?{query}")).await.json());
        ids.reverse();
        ids
    };
    let all = [&one, &two, &three].map(Clone::clone);
    assert_eq!(found("status=Pending&status=Canceled").await, all);
    assert_eq!(found("status=Canceled&status=Done").await, std::slice::from_ref(&three));
    assert_eq!(found("partition=polar&partition=polar3").await, [one.clone(), two.clone()]);
    assert_eq!(found("partition=polar4").await, [two.clone(), three.clone()]);
    assert_eq!(found("owner=local").await, all);
    assert!(found("owner=elsewhere").await.is_empty() && found("rule=cuda-out-of-memory").await.is_empty());
    assert_eq!(found("q=llama").await, std::slice::from_ref(&one));
    assert_eq!(found("q=100%25").await, std::slice::from_ref(&one), "a percent sign is itself");
    assert_eq!(found("q=eval_").await, std::slice::from_ref(&two), "and so is an underscore");
    assert_eq!(found("q=team:spee").await, [two.clone(), three.clone()]);
    assert_eq!(found(&format!("q={}", one.to_uppercase())).await, std::slice::from_ref(&one));
    assert_eq!(found("sort=created_at").await, [three.clone(), two.clone(), one.clone()], "reversed above");
    assert_eq!(found("sort=-finished_at").await, std::slice::from_ref(&three));
    let page = api.get("/jobs?sort=created_at&limit=1").await;
    assert_eq!(ids(&page.json()), [one]);
    let next = page.header("link").trim_start_matches('<').split('>').next().unwrap().to_owned();
    assert_eq!(ids(&api.get(&next).await.json()), [two]);
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn the_values_of_a_field_are_counted_under_all_filters_but_its_own(pool: PgPool) {
    let api = TestApi::new(pool);
    let job = |partition: &str| json!({"command": "true", "backend_details": {"backend_type": "slurm", "partition": partition}});
    for partition in ["polar", "polar", "polar,polar3"] {
        api.job(&job(partition)).await;
    }
    let canceled = api.job(&job("polar3")).await;
    end(&api, &canceled).await;
    let facets = async |query: &str| api.get(&format!("/jobs?{query}")).await.json()["facets"].clone();
    assert_eq!(facets("limit=1").await, json!(null));
    let counts = |pairs: &[(&str, u32)]| -> Value {
        pairs.iter().map(|(value, jobs)| json!({"value": value, "jobs": jobs})).collect()
    };
    assert_eq!(
        facets("limit=1&facets=status,partition,rule").await,
        json!({
            "status": counts(&[("Pending", 3), ("Canceled", 1)]),
            "partition": counts(&[("polar", 3), ("polar3", 2)]),
            "cluster": [], "owner": [], "rule": [],
        })
    );
    assert_eq!(
        facets("status=Canceled&facets=status,partition,cluster").await,
        json!({
            "status": counts(&[("Pending", 3), ("Canceled", 1)]),
            "partition": counts(&[("polar3", 1)]),
            "cluster": counts(&[("dgx", 1)]),
            "owner": [], "rule": [],
        })
    );
    assert_eq!(
        facets("partition=polar3&facets=status").await["status"],
        counts(&[("Canceled", 1), ("Pending", 1)])
    );
    assert_eq!(facets("q=nothing&facets=status").await["status"], json!([]));
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn an_owner_counts_only_their_own_jobs(pool: PgPool) {
    let api = TestApi::guarded(pool);
    for (token, owner, scopes) in
        [("ann", "ann", "read write"), ("bob", "bob", "read write"), ("root", "root", "admin")]
    {
        api.token(token, owner, scopes, None).await;
    }
    for token in ["ann", "ann", "bob"] {
        let sent = api.call_as(token, Method::POST, "/jobs", Some(&json!({"command": "true"}))).await;
        assert_eq!(sent.status, 201);
    }
    let owners = async |token: &str| api.get_as(token, "/jobs?facets=owner&owner=bob").await.json();
    let answer = owners("ann").await;
    assert_eq!((ids(&answer).len(), &answer["facets"]["owner"]), (0, &json!([{"value": "ann", "jobs": 2}])));
    let answer = owners("root").await;
    assert_eq!(ids(&answer).len(), 1);
    assert_eq!(answer["facets"]["owner"], json!([{"value": "ann", "jobs": 2}, {"value": "bob", "jobs": 1}]));
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_time_is_a_filter_and_its_ends_are_left_out(pool: PgPool) {
    let api = TestApi::new(pool);
    let mut sent = Vec::new();
    for _ in 0..3 {
        sent.push(api.job(&json!({"command": "true"})).await);
        api.clock.advance(TimeDelta::seconds(1));
    }
    let created = |id: &String| format!("/jobs/{id}");
    let mut times = Vec::new();
    for id in &sent {
        times.push(api.get(&created(id)).await.json()["created_on"].as_str().unwrap().to_owned());
    }
    let found = async |query: &str| ids(&api.get(&format!("/jobs?{query}")).await.json());
    assert_eq!(found(&format!("created_after={}", times[0])).await, [sent[2].clone(), sent[1].clone()]);
    assert_eq!(found(&format!("created_before={}", times[2])).await, [sent[1].clone(), sent[0].clone()]);
    let between = format!("created_after={}&created_before={}", times[0], times[2]);
    assert_eq!(found(&between).await, [sent[1].clone()]);
    // The same moment elsewhere on earth, and the ends of the calendar.
    assert_eq!(found("created_after=2026-09-21T16:00:00%2B02:00").await.len(), 3);
    assert_eq!(
        found("created_after=0000-01-01T00:00:00Z&created_before=9999-12-31T23:59:59Z").await.len(),
        3
    );
    // The next page has the same filter.
    let page = api.get(&format!("/jobs?limit=1&created_before={}", times[2])).await;
    let next = page.header("link").trim_start_matches('<').split('>').next().unwrap().to_owned();
    assert_eq!(ids(&api.get(&next).await.json()), [sent[0].clone()]);
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn existing_jobs_are_listed_once_while_others_are_submitted(pool: PgPool) {
    let api = TestApi::new(pool);
    let mut sent = BTreeSet::new();
    for number in 0..40 {
        sent.insert(api.job(&json!({"command": "true", "name": "early"})).await);
        api.clock.advance(TimeDelta::milliseconds(number % 2));
    }
    let send = async || {
        for _ in 0..20 {
            api.clock.advance(TimeDelta::milliseconds(1));
            api.job(&json!({"command": "true", "name": "late"})).await;
        }
    };
    let list = async || {
        let (mut seen, mut next) = (Vec::new(), "/jobs?limit=3".to_owned());
        loop {
            let page = api.get(&next).await.json();
            let jobs = page["jobs"].as_array().unwrap().clone();
            let early = jobs.iter().filter(|job| job["name"] == "early");
            seen.extend(early.map(|job| job["id"].as_str().unwrap().to_owned()));
            let Some(token) = page["next_page_token"].as_str() else { return seen };
            next = format!("/jobs?limit=3&page_token={token}");
        }
    };
    let ((), (), (), seen) = tokio::join!(send(), send(), send(), list());
    assert_eq!(seen.len(), sent.len());
    assert_eq!(seen.into_iter().collect::<BTreeSet<_>>(), sent);
}

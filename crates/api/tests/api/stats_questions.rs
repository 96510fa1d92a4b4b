//! Which questions about figures are refused, and the widest that are not.

use sqlx::PgPool;

use crate::{stats::stats, support::TestApi};

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_parameter_that_is_not_acceptable_is_named(pool: PgPool) {
    let api = TestApi::new(pool);
    let long = "k".repeat(501);
    for (query, parameter, code) in [
        ("colour=red", "colour", "unknown_parameter"),
        ("group_by=colour", "group_by", "invalid"),
        ("group_by=label", "group_by", "invalid"),
        ("group_by=label:", "group_by", "invalid"),
        ("group_by=label:a%0Ab", "group_by", "invalid"),
        (&format!("group_by=label:{long}"), "group_by", "invalid"),
        ("group_by=Status", "group_by", "invalid"),
        ("group_by=status&group_by=owner", "group_by", "repeated"),
        ("bucket=minute", "bucket", "invalid"),
        ("bucket=Day", "bucket", "invalid"),
        ("since=yesterday", "since", "invalid"),
        ("until=2026-09-21", "until", "invalid"),
        ("since=2027-01-01T00:00:00Z", "since", "contradiction"),
        ("since=2026-09-01T00:00:00Z&until=2026-09-01T00:00:00Z", "since", "contradiction"),
        ("since=2020-01-01T00:00:00Z", "since", "contradiction"),
        ("since=2026-01-01T00:00:00Z&bucket=hour", "bucket", "contradiction"),
        ("since=0000-01-01T00:00:00Z&until=9999-12-31T23:59:59Z", "since", "contradiction"),
        ("until=0000-01-01T00:00:00Z", "since", "contradiction"),
        ("cluster=%2Fetc", "cluster", "invalid"),
        ("partition=a%20b", "partition", "invalid"),
        ("label=team", "label", "invalid"),
        ("label=team:a&label=team:b", "label", "contradiction"),
        ("owner=%00", "owner", "invalid"),
    ] {
        let problem = api.get(&format!("/stats?{query}")).await.problem(400, "invalid_parameter");
        assert_eq!(problem["errors"][0]["parameter"], parameter, "{query}");
        assert_eq!(problem["errors"][0]["code"], code, "{query}");
    }
    // The ends of the calendar, and the longest answers.
    for query in [
        "since=0000-12-31T00:00:00Z&until=0001-01-02T00:00:00Z&bucket=week",
        "since=9999-12-01T00:00:00Z&until=9999-12-31T23:59:59-23:59&bucket=day&group_by=status",
        "since=2025-09-01T00:00:00Z&until=2026-09-21T00:00:00Z&bucket=day",
        "since=2026-08-11T00:00:00Z&bucket=hour",
    ] {
        let shown = stats(&api, query.replace("-23:59", "%2D23:59").as_str()).await;
        for time in ["since", "until"].map(|name| shown[name].as_str().unwrap().to_owned()) {
            assert!(time.len() >= 20 && time.as_bytes()[4] == b'-', "{query}: {time}");
        }
    }
}

//! GPU hours, from what Slurm accounts for.

use serde_json::Value;
use sqlx::PgPool;

use crate::{
    stats::{DAYS, stats},
    support::TestApi,
};

/// What Slurm jobs held: 4 GPUs over midnight and 2 for half an hour, each of a job; 8 of a job that was deleted; and nothing of others.
pub(crate) const HELD: &str = "
    insert into allocations (cluster, slurm_job_id, started_at, elapsed, job_id, attempt, owner, labels, partition, state, gpus, cpus, nodes)
    select 'dgx', n, at::timestamptz, seconds, gen_random_uuid(), 1, owner, labels::jsonb, 'polar', 'COMPLETED', gpus, 8, 1
    from (values (1, '2026-09-18T23:30:00Z', 3600, 'ann', '{\"team\": \"vision\"}', 4),
                 (2, '2026-09-19T12:00:00Z', 1801, 'bob', '{\"team\": \"speech\"}', 2),
                 (3, '2026-09-17T23:00:00Z', 7200, 'ann', '{}', 8),
                 (4, '2026-09-19T12:00:00Z', 3600, 'ann', '{}', 0),
                 (5, '2026-09-21T00:00:00Z', 3600, 'ann', '{}', 1),
                 (6, '2026-09-19T12:00:00Z', 3600, '', '{}', 1)) v (n, at, seconds, owner, labels, gpus)";

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn gpu_hours_are_what_slurm_accounts_for_in_the_window(pool: PgPool) {
    let api = TestApi::new(pool);
    sqlx::raw_sql(HELD).execute(&api.pool).await.unwrap();
    #[expect(clippy::cast_possible_truncation, reason = "whole seconds")]
    let seconds = |figures: &Value| (figures["gpu_hours"].as_f64().unwrap() * 3600.0).round() as i64;
    let of = async |query: &str| stats(&api, &format!("{DAYS}{query}")).await;
    let shown = of("&bucket=day").await;
    // The first hour of the third one is before the window.
    let (ann, bob) = (3600 * 4 + 3600 * 8, 1801 * 2);
    assert_eq!(seconds(&shown["totals"]), ann + bob, "{shown}");
    let days: Vec<_> = shown["buckets"].as_array().unwrap().iter().map(seconds).collect();
    assert_eq!(days, [1800 * 4 + 3600 * 8, 1800 * 4 + bob, 0]);
    let teams: Vec<_> = of("&group_by=label:team").await["groups"]
        .as_array()
        .unwrap()
        .iter()
        .map(|group| (group["value"].as_str().map(str::to_owned), seconds(group)))
        .collect();
    let team = |name: &str| Some(name.to_owned());
    assert_eq!(teams, [(None, 3600 * 8), (team("vision"), 3600 * 4), (team("speech"), bob)]);
    assert_eq!(seconds(&of("&label=team:speech").await["totals"]), bob);
    assert_eq!(seconds(&of("&owner=ann&cluster=dgx&partition=polar").await["totals"]), ann);
    assert_eq!(seconds(&of("&partition=other").await["totals"]), 0);
}

//! Nodes that a job is kept away from, and when it is not any more.

use slurm::NodeName;

use super::*;

fn node01() -> NodeName {
    "node01".parse().unwrap()
}

impl Bench {
    /// A job that Slurm has put back into its queue, because node01 failed.
    async fn requeued(&self) -> (JobId, String) {
        let (id, name) = self.submitted().await;
        self.fake.run_on(&name, "node01");
        self.poll().await;
        self.fake.requeue(&name, &SlurmState::NodeFail);
        self.poll().await;
        self.step(Lane::Follow).await;
        (id, name)
    }

    async fn wait_for(&self, name: &str, reason: &str) {
        self.fake.wait_for(name, reason);
        self.poll().await;
    }

    async fn learn(&self, broken: u32) {
        self.fake.break_nodes(broken);
        assert!(self.worker.learn_if_due(&self.runtime).await.unwrap());
    }
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn an_exclusion_that_leaves_no_node_is_lifted_and_not_set_again(pool: PgPool) {
    let bench = Bench::new(pool);
    let (id, name) = bench.requeued().await;
    assert_eq!(bench.fake.excluded(&name), [node01()]);
    bench.wait_for(&name, "BadConstraints").await;
    let message = bench.job(id).await.message;
    assert!(message.contains("lifting the exclusion (BadConstraints)"), "{message}");
    bench.step(Lane::Follow).await;
    assert_eq!(bench.fake.excluded(&name), []);
    let job = bench.job(id).await;
    assert!(job.message.contains("without the excluded nodes (node01)"), "{}", job.message);
    assert!(job.message.contains("lifted the exclusion (BadConstraints)"), "{}", job.message);
    assert_eq!(job.attempt.unwrap().excluded, []);
    assert_eq!(bench.step(Lane::Follow).await, 0, "once");

    bench.fake.run_on(&name, "node01");
    bench.poll().await;
    bench.fake.requeue(&name, &SlurmState::Preempted);
    bench.poll().await;
    bench.step(Lane::Follow).await;
    assert_eq!(bench.fake.excluded(&name), [], "what it did then is allowed_again");
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_reason_that_may_be_older_than_the_exclusion_lifts_it_a_minute_later(pool: PgPool) {
    let bench = Bench::new(pool);
    let (_, name) = bench.requeued().await;
    let reason = "ReqNodeNotAvail, UnavailableNodes:node[02-04]";
    bench.wait_for(&name, reason).await;
    bench.make_due().await;
    bench.step(Lane::Follow).await;
    assert_eq!(bench.fake.excluded(&name), [node01()]);
    bench.clock.advance(TimeDelta::minutes(1));
    bench.poll().await;
    bench.step(Lane::Follow).await;
    assert_eq!(bench.fake.excluded(&name), []);
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn an_exclusion_expires_while_the_job_waits_by_the_clusters_own_setting(pool: PgPool) {
    let bench = Bench::new(pool);
    let (id, name) = bench.requeued().await;
    bench.wait_for(&name, "Resources").await;
    let hours = bench.runtime.target.cluster.retries.node_exclusion_hours;
    bench.clock.advance(TimeDelta::hours(i64::from(hours)) - TimeDelta::minutes(1));
    bench.poll().await;
    assert_eq!(bench.step(Lane::Follow).await, 0);
    bench.clock.advance(TimeDelta::minutes(1));
    bench.poll().await;
    bench.step(Lane::Follow).await;
    assert_eq!(bench.fake.excluded(&name), []);
    let message = bench.job(id).await.message;
    assert!(message.contains("the exclusion of node01 has expired; lifted the exclusion"), "{message}");
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_relief_that_does_not_get_through_is_tried_again(pool: PgPool) {
    let bench = Bench::new(pool);
    let (id, name) = bench.requeued().await;
    bench.wait_for(&name, "BadConstraints").await;
    bench.fake.plan_fault(Fault::Unreachable);
    bench.step(Lane::Follow).await;
    assert_eq!(bench.job(id).await.attempt.unwrap().excluded, [node01()]);
    bench.make_due().await;
    bench.step(Lane::Follow).await;
    assert_eq!(bench.job(id).await.attempt.unwrap().excluded, []);
    assert_eq!(bench.fake.excluded(&name), []);
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn the_only_node_there_is_is_not_left_out(pool: PgPool) {
    let bench = Bench::new(pool);
    bench.learn(3).await;
    let (id, name) = bench.requeued().await;
    assert_eq!(bench.fake.excluded(&name), []);
    let message = bench.job(id).await.message;
    assert!(message.contains("it may get node01 again, because it needs all nodes"), "{message}");
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn the_next_attempt_leaves_out_no_more_nodes_than_it_can_spare(pool: PgPool) {
    for (broken, left_out) in [(3, vec![]), (2, vec![node01()])] {
        let bench = Bench::new(pool.clone());
        sqlx::raw_sql("truncate jobs, cluster_partitions, cluster_polls cascade")
            .execute(&pool)
            .await
            .unwrap();
        bench.learn(broken).await;
        let (id, name) = bench.submitted().await;
        bench.fake.run_on(&name, "node01");
        bench.poll().await;
        bench.fake.set_state(&name, &SlurmState::NodeFail, None);
        bench.poll().await;
        bench.step(Lane::Follow).await;
        let message = bench.job(id).await.message;
        assert_eq!(message.contains("excluding node01"), !left_out.is_empty(), "{message}");
        bench.make_due().await;
        bench.step(Lane::Submit).await;
        assert_eq!(bench.job(id).await.attempt.unwrap().excluded, left_out);
    }
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn the_nodes_that_the_owner_excludes_stay_excluded(pool: PgPool) {
    let bench = Bench::new(pool.clone());
    let (id, name) = bench.submitted().await;
    let change = r#"update jobs set spec = jsonb_set(spec, '{options}', '{"exclude": "node[07-08]"}')"#;
    sqlx::raw_sql(change).execute(&pool).await.unwrap();
    bench.fake.run_on(&name, "node01");
    bench.poll().await;
    bench.fake.requeue(&name, &SlurmState::NodeFail);
    bench.poll().await;
    bench.step(Lane::Follow).await;
    let all: Vec<NodeName> =
        ["node07", "node08", "node01"].iter().map(|name| name.parse().unwrap()).collect();
    assert_eq!(bench.fake.excluded(&name), all);
    assert_eq!(bench.job(id).await.attempt.unwrap().excluded, [node01()], "only its own are an attempt's");
    bench.wait_for(&name, "BadConstraints").await;
    bench.step(Lane::Follow).await;
    assert_eq!(bench.fake.excluded(&name), all[..2]);
}

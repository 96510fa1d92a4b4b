//! Attempts that are made again: by us, and by Slurm itself.

use super::*;

impl Bench {
    /// The newest attempt runs on `node` and fails with this state and log.
    async fn fail_on(&self, name: &str, node: &str, state: &SlurmState, log: &str) {
        self.fake.run_on(name, node);
        self.poll().await;
        self.fake.write_log(name, log);
        self.fake.set_state(name, state, (*state == SlurmState::Failed).then_some(1));
        self.poll().await;
        self.step(Lane::Follow).await;
    }

    async fn submit_again(&self) {
        self.make_due().await;
        self.step(Lane::Submit).await;
    }
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_job_that_lost_its_node_reaches_done_on_another(pool: PgPool) {
    let bench = Bench::new(pool);
    let (id, name) = bench.submitted().await;
    bench.fail_on(&name, "node01", &SlurmState::NodeFail, "").await;
    assert_eq!(bench.status(id).await, (Status::Pending, Phase::RetryWait));
    assert!(
        bench.fake.removed(&format!("/lustre/users/tao/env/{id}.sh")),
        "nothing secret lies about meanwhile"
    );
    bench.submit_again().await;
    let job = bench.job(id).await;
    assert_eq!((job.phase, job.retry_count), (Phase::InQueue, 1));
    let attempt = job.attempt.unwrap();
    assert_eq!(attempt.token.as_str(), format!("{name}-r2"));
    assert_eq!(attempt.excluded, ["node01".parse().unwrap()]);
    bench.fake.set_state(&format!("{name}-r2"), &SlurmState::Completed, Some(0));
    bench.poll().await;
    bench.step(Lane::Follow).await;
    assert_eq!(bench.status(id).await, (Status::Done, Phase::Ended));
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_fault_of_the_job_ends_it_and_says_why(pool: PgPool) {
    let bench = Bench::new(pool);
    let (id, name) = bench.submitted().await;
    bench.fail_on(&name, "node01", &SlurmState::Failed, "ValueError: num_classes must be 20\n").await;
    let job = bench.job(id).await;
    assert_eq!((job.status, job.retry_count), (Status::Error, 0));
    let verdict = job.attempt.unwrap().verdict.unwrap();
    assert_eq!(verdict.why, "Not retried: the job's code or its specification is wrong.");
    assert_eq!(verdict.line.as_deref(), Some("ValueError: num_classes must be 20"));
    assert!(job.message.contains(&verdict.why), "{}", job.message);
    let failure = bench.job(id).await.run.failure.unwrap();
    assert_eq!((failure.rule.as_str(), failure.line.unwrap().offset), ("python-error", 0));
    assert_eq!(failure.node.unwrap().as_str(), "node01");
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn an_attempt_that_is_retried_keeps_why_it_failed(pool: PgPool) {
    let bench = Bench::new(pool);
    let (id, name) = bench.submitted().await;
    let log = "slow start\nRuntimeError: CUDA error: uncorrectable ECC error encountered\n";
    bench.fail_on(&name, "node01", &SlurmState::Failed, log).await;
    bench.submit_again().await;
    let kept = bench.worker.store.run_failure(id, Some(1), None).await.unwrap().unwrap().failure.unwrap();
    assert_eq!((kept.rule.as_str(), kept.line.unwrap().offset), ("ecc", 11));
    assert_eq!(bench.job(id).await.run.failure, None, "the next attempt has not failed");
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_job_whose_time_was_up_is_not_sent_again_whatever_its_log_says(pool: PgPool) {
    let bench = Bench::new(pool);
    let (id, name) = bench.submitted().await;
    let log = "NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus.\n";
    bench.fail_on(&name, "node01", &SlurmState::Timeout, log).await;
    // Its own last word is waited for.
    bench.clock.advance(TimeDelta::minutes(10));
    bench.make_due().await;
    bench.step(Lane::Follow).await;
    assert_eq!(bench.status(id).await, (Status::Error, Phase::Ended));
    assert_eq!(bench.job(id).await.retry_count, 0);
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn the_same_fault_on_three_nodes_is_nobodys_node(pool: PgPool) {
    let bench = Bench::new(pool);
    let (id, name) = bench.submitted().await;
    let log = "NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus.\n";
    for (attempt, node) in [(1, "node01"), (2, "node02"), (3, "node03")] {
        let name = if attempt == 1 { name.clone() } else { format!("{name}-r{attempt}") };
        bench.fail_on(&name, node, &SlurmState::Failed, log).await;
        bench.submit_again().await;
    }
    let job = bench.job(id).await;
    assert_eq!((job.status, job.retry_count), (Status::Error, 2));
    assert!(job.message.contains("3 different nodes (node01, node02, node03)"), "{}", job.message);
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_node_that_slurm_has_drained_for_a_fault_is_to_blame(pool: PgPool) {
    let bench = Bench::new(pool);
    let (id, name) = bench.submitted().await;
    bench.fake.sicken("node01".parse().unwrap(), "drained (NHC: GPU 3)");
    bench.fail_on(&name, "node01", &SlurmState::Failed, "").await;
    let job = bench.job(id).await;
    assert_eq!(job.phase, Phase::RetryWait);
    assert!(job.message.contains("Slurm reports node node01 as drained (NHC: GPU 3)"), "{}", job.message);
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_job_that_slurm_itself_requeued_keeps_away_from_the_failed_node(pool: PgPool) {
    let bench = Bench::new(pool);
    let (id, name) = bench.submitted().await;
    bench.fake.run_on(&name, "node01");
    bench.poll().await;
    bench.fake.requeue(&name, &SlurmState::NodeFail);
    bench.poll().await;
    bench.step(Lane::Follow).await;
    let job = bench.job(id).await;
    assert_eq!((job.status, job.phase), (Status::Pending, Phase::InQueue));
    assert!(job.message.contains("a node failed; excluding node01"), "{}", job.message);
    assert_eq!(bench.fake.excluded(&name), ["node01".parse().unwrap()]);
    assert_eq!(job.run.requeues, 1);
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_wish_to_cancel_wins_over_the_next_attempt(pool: PgPool) {
    let bench = Bench::new(pool);
    let (id, name) = bench.submitted().await;
    bench.fail_on(&name, "node01", &SlurmState::NodeFail, "").await;
    bench.worker.store.request_cancel(id, &Viewer::All, bench.clock.now()).await.unwrap();
    bench.submit_again().await;
    assert_eq!(bench.status(id).await, (Status::Canceled, Phase::Ended));
    assert_eq!(bench.fake.submissions(&format!("{name}-r2")), 0);
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn an_exclusion_that_leaves_no_place_is_given_up(pool: PgPool) {
    let bench = Bench::new(pool);
    let (id, name) = bench.submitted().await;
    bench.fail_on(&name, "node01", &SlurmState::NodeFail, "").await;
    bench.fake.refuse(Some((FailureClass::Permanent, "Requested node configuration is not available")));
    bench.submit_again().await;
    assert_eq!(bench.status(id).await.1, Phase::Submitting);
    bench.fake.refuse(None);
    bench.submit_again().await;
    let job = bench.job(id).await;
    assert_eq!((job.phase, job.attempt.unwrap().excluded.len()), (Phase::InQueue, 0));
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_requeue_that_nobody_explains_is_not_asked_about_for_ever(pool: PgPool) {
    let bench = Bench::new(pool);
    let (id, name) = bench.submitted().await;
    bench.fake.run_on(&name, "node01");
    bench.poll().await;
    // Back in the queue, and accounting has no run that ended.
    bench.fake.set_state(&name, &SlurmState::Pending, None);
    bench.poll().await;
    for minutes in [0, 5, 6] {
        assert!(bench.job(id).await.has_unexplained_requeue());
        bench.clock.advance(TimeDelta::minutes(minutes));
        bench.make_due().await;
        bench.step(Lane::Follow).await;
    }
    let job = bench.job(id).await;
    assert_eq!((job.phase, job.has_unexplained_requeue()), (Phase::InQueue, false));
}

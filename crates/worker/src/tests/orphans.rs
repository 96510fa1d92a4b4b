//! Jobs of our names on the cluster that nothing watches.

use domain::OrphanKind;

use super::*;

const SIGHT: TimeDelta = TimeDelta::seconds(11);

impl Bench {
    /// Two polls, far enough apart to confirm an orphan.
    async fn look_twice(&self) {
        self.poll().await;
        self.clock.advance(SIGHT);
        self.poll().await;
    }

    async fn orphans(&self) -> Vec<(SlurmJobId, OrphanKind)> {
        let states = self.worker.store.poll_states().await.unwrap();
        let orphans = states.into_values().flat_map(|state| state.orphans);
        orphans.map(|orphan| (orphan.slurm_id, orphan.kind)).collect()
    }

    async fn told(&self, id: JobId) -> Vec<String> {
        self.worker.store.place_events().await.unwrap();
        let events = self.worker.store.job_feed(id, 0, 0, &["orphan".to_owned()], 10).await.unwrap();
        events.iter().map(|of_feed| of_feed.event.data["message"].as_str().unwrap().to_owned()).collect()
    }
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn an_attempt_that_slurm_starts_again_behind_our_back_is_cancelled_and_the_job_is_told(pool: PgPool) {
    let bench = Bench::new(pool);
    let (id, name) = bench.submitted().await;
    bench.fake.set_state(&name, &SlurmState::NodeFail, None);
    bench.poll().await;
    bench.step(Lane::Follow).await;
    bench.make_due().await;
    bench.step(Lane::Submit).await;
    assert_eq!(bench.fake.submissions(&format!("{name}-r2")), 1);
    let first = SlurmJobId::new(1).unwrap();
    bench.fake.set_state(&name, &SlurmState::Running, None);

    bench.poll().await;
    assert_eq!(bench.orphans().await, [(first, OrphanKind::Superseded)]);
    assert_eq!(bench.fake.state_of(first), Some(SlurmState::Running), "once seen is not enough");
    bench.clock.advance(SIGHT);
    let before = bench.fake.commands();
    bench.poll().await;
    assert_eq!(bench.fake.commands() - before, 2, "the poll and the cancellation");
    assert_eq!(bench.fake.state_of(first), Some(SlurmState::Cancelled));
    let said = format!("Slurm job 1 ({name}) belongs to an attempt that has ended; canceling it.");
    assert_eq!(bench.told(id).await, [said]);

    bench.poll().await;
    assert_eq!((bench.orphans().await, bench.told(id).await.len()), (vec![], 1));
    assert_eq!(bench.status(id).await, (Status::Pending, Phase::InQueue), "its own attempt goes on");
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_second_copy_that_waits_while_the_first_runs_is_cancelled(pool: PgPool) {
    let bench = Bench::new(pool);
    let (id, name) = bench.submitted().await;
    bench.fake.set_state(&name, &SlurmState::Running, None);
    let copy = bench.fake.add(&name, &SlurmState::Pending).unwrap();
    bench.look_twice().await;
    assert_eq!(bench.fake.state_of(copy), Some(SlurmState::Cancelled));
    assert_eq!(bench.status(id).await.0, Status::Running);
    assert_eq!(bench.told(id).await.len(), 1);
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn what_the_database_does_not_know_is_shown_and_left_alone(pool: PgPool) {
    let bench = Bench::new(pool);
    bench.submitted().await;
    let stranger =
        bench.fake.add("tao-job-00000000-0000-0000-0000-0000000000ff", &SlurmState::Running).unwrap();
    for name in [
        "tao-job-x",
        "tao-sqsh-000000000000000000000000000000ff-1",
        "tao-job-00000000-0000-0000-0000-0000000000ff?x",
        "their-job",
    ] {
        bench.fake.add(name, &SlurmState::Running);
    }
    let before = bench.fake.commands();
    bench.look_twice().await;
    assert_eq!(bench.fake.commands() - before, 2, "no command beside the polls");
    assert_eq!(bench.orphans().await, [(stranger, OrphanKind::Unknown)]);
    assert_eq!(bench.fake.state_of(stranger), Some(SlurmState::Running));
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_restored_database_adopts_the_attempt_that_it_does_not_know(pool: PgPool) {
    let bench = Bench::new(pool);
    let (id, name) = bench.submitted().await;
    bench.poll().await;
    // The backup ends here: the first attempt fails, and the second is submitted by the service of that time.
    bench.fake.set_state(&name, &SlurmState::NodeFail, None);
    let second = bench.fake.add(&format!("{name}-r2"), &SlurmState::Running).unwrap();
    bench.look_twice().await;
    assert_eq!(bench.orphans().await, [(second, OrphanKind::Newer)]);
    bench.step(Lane::Follow).await;
    bench.make_due().await;
    bench.step(Lane::Submit).await;
    bench.poll().await;
    assert_eq!((bench.orphans().await, bench.fake.submissions(&format!("{name}-r2"))), (vec![], 1));
    let job = bench.job(id).await;
    assert_eq!((job.status, job.attempt.unwrap().slurm_id), (Status::Running, Some(second)));
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_cluster_without_jobs_is_looked_at_now_and_then_and_while_an_orphan_is_left(pool: PgPool) {
    let bench = Bench::new(pool);
    let (id, name) = bench.submitted().await;
    bench.fake.set_state(&name, &SlurmState::Completed, Some(0));
    bench.poll().await;
    bench.step(Lane::Follow).await;
    assert_eq!(bench.status(id).await.1, Phase::Ended);
    let (before, late) = (bench.fake.commands(), bench.fake.add(&name, &SlurmState::Running).unwrap());
    bench.poll().await;
    assert_eq!(bench.fake.commands(), before, "an idle cluster is left in peace");
    bench.clock.advance(TimeDelta::minutes(10));
    bench.poll().await;
    assert_eq!(bench.orphans().await, [(late, OrphanKind::Superseded)]);
    bench.clock.advance(SIGHT);
    bench.poll().await;
    assert_eq!(bench.fake.state_of(late), Some(SlurmState::Cancelled));
    bench.poll().await;
    let after = bench.fake.commands();
    bench.poll().await;
    assert_eq!((bench.orphans().await, bench.fake.commands()), (vec![], after));
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_cancellation_of_an_orphan_that_is_lost_is_sent_again(pool: PgPool) {
    let bench = Bench::new(pool);
    let (_, name) = bench.submitted().await;
    bench.fake.set_state(&name, &SlurmState::Running, None);
    let copy = bench.fake.add(&name, &SlurmState::Pending).unwrap();
    bench.poll().await;
    bench.clock.advance(SIGHT);
    // The poll before it has no claim to die after.
    bench.fake.plan_fault(Fault::DiesAfterClaim);
    bench.fake.plan_fault(Fault::Unreachable);
    bench.poll().await;
    assert_eq!(bench.fake.state_of(copy), Some(SlurmState::Pending));
    bench.clock.advance(TimeDelta::minutes(2));
    bench.poll().await;
    assert_eq!(bench.fake.state_of(copy), Some(SlurmState::Cancelled));
}

//! Pausing, resuming, sending again and deleting.

use persistence::{DueJobs as _, LeaseTerms, Requested, Retry};
use uuid::Uuid;

use super::*;

fn taken(wished: Requested) -> Job {
    match wished {
        Requested::Taken(job) => job,
        other => panic!("{other:?}"),
    }
}

impl Bench {
    async fn pause(&self, id: JobId) {
        taken(self.worker.store.request_pause(id, &Viewer::All, self.clock.now()).await.unwrap());
    }

    async fn resume(&self, id: JobId) -> Job {
        taken(self.worker.store.request_resume(id, &Viewer::All, None, self.clock.now()).await.unwrap())
    }
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_running_job_is_paused_and_resumed_under_its_id(pool: PgPool) {
    let bench = Bench::new(pool);
    let (id, name) = bench.submitted().await;
    bench.fake.run_on(&name, "node01");
    bench.poll().await;
    bench.pause(id).await;
    assert_eq!(bench.status(id).await.0, Status::Pausing);
    bench.step(Lane::Follow).await;
    bench.poll().await;
    bench.step(Lane::Follow).await;
    assert_eq!(bench.status(id).await, (Status::Paused, Phase::Paused));
    let commands = bench.fake.commands();
    bench.poll().await;
    assert_eq!(bench.fake.commands(), commands, "nothing of it is asked about while it is at rest");

    assert_eq!(bench.resume(id).await.status, Status::Resuming);
    bench.step(Lane::Submit).await;
    assert_eq!(bench.fake.submissions(&format!("{name}-r2")), 1);
    let job = bench.job(id).await;
    assert_eq!((job.phase, job.retry_count), (Phase::InQueue, 0));
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_job_that_is_not_in_slurm_yet_is_paused_at_once(pool: PgPool) {
    let bench = Bench::new(pool);
    let id = bench.accept(command_job(1)).await;
    bench.pause(id).await;
    bench.step(Lane::Submit).await;
    assert_eq!(bench.status(id).await, (Status::Paused, Phase::Paused));
    assert_eq!(bench.fake.commands(), 0);
    bench.resume(id).await;
    bench.step(Lane::Submit).await;
    assert_eq!(bench.fake.submissions(&format!("tao-job-{id}")), 1);
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_pause_during_a_lost_submission_reaches_what_was_submitted(pool: PgPool) {
    let bench = Bench::new(pool);
    bench.fake.plan_fault(Fault::ReplyLost);
    let (id, name) = bench.submitted().await;
    bench.pause(id).await;
    for _ in 0..3 {
        bench.make_due().await;
        bench.step(Lane::Follow).await;
        bench.poll().await;
    }
    assert_eq!(bench.status(id).await, (Status::Paused, Phase::Paused));
    assert_eq!(bench.fake.submissions(&name), 1);
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_paused_job_can_be_canceled(pool: PgPool) {
    let bench = Bench::new(pool);
    let id = bench.accept(command_job(1)).await;
    bench.pause(id).await;
    bench.step(Lane::Submit).await;
    taken(bench.worker.store.request_cancel(id, &Viewer::All, bench.clock.now()).await.unwrap());
    bench.step(Lane::Submit).await;
    assert_eq!(bench.status(id).await, (Status::Canceled, Phase::Ended));
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_failed_job_is_sent_again_with_its_whole_budget(pool: PgPool) {
    let bench = Bench::new(pool);
    let (id, name) = bench.submitted().await;
    bench.fake.set_state(&name, &SlurmState::Failed, Some(3));
    bench.poll().await;
    bench.step(Lane::Follow).await;
    assert_eq!(bench.status(id).await.0, Status::Error);
    let mut secrets = Secrets::default();
    secrets.env.insert("HF_TOKEN".parse().unwrap(), "hunter3".to_owned().into());
    let store = &bench.worker.store;
    let retry = Retry { secrets: &secrets, incarnation: None, array: None };
    taken(store.request_retry(id, &Viewer::All, &retry, None, bench.clock.now()).await.unwrap());
    let job = bench.job(id).await;
    assert_eq!((job.status, job.phase, job.finished_at), (Status::Pending, Phase::Queued, None));
    bench.step(Lane::Submit).await;
    assert_eq!(bench.fake.submissions(&format!("{name}-r2")), 1);
    let again = store.request_retry(id, &Viewer::All, &retry, None, bench.clock.now()).await.unwrap();
    assert!(matches!(again, Requested::Stays(_)), "once is enough");
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_job_deleted_with_its_artifacts_is_gone_once_the_cluster_has_removed_them(pool: PgPool) {
    let bench = Bench::new(pool);
    let (id, name) = bench.submitted().await;
    let store = &bench.worker.store;
    let early = store.request_delete(id, &Viewer::All, true, None, bench.clock.now()).await.unwrap();
    assert!(matches!(early, Requested::Stays(_)));
    bench.fake.set_state(&name, &SlurmState::Completed, Some(0));
    bench.poll().await;
    bench.step(Lane::Follow).await;
    taken(store.request_delete(id, &Viewer::All, true, None, bench.clock.now()).await.unwrap());
    assert!(store.find_job(id, &Viewer::All).await.unwrap().is_none(), "nobody sees it any more");
    bench.fake.plan_fault(Fault::Unreachable);
    bench.step(Lane::Follow).await;
    assert!(!bench.fake.purged(id.get()));
    bench.make_due().await;
    bench.step(Lane::Follow).await;
    assert!(bench.fake.purged(id.get()));
    let left: i64 = sqlx::query_scalar("select count(*) from jobs").fetch_one(&bench.pool).await.unwrap();
    assert_eq!(left, 0);
}

impl Bench {
    /// A job that has ended, and whose owner wants it gone with all that it left.
    async fn deleted(&self, number: u128) -> JobId {
        let id = self.accept(command_job(number)).await;
        self.step(Lane::Submit).await;
        self.fake.set_state(&format!("tao-job-{id}"), &SlurmState::Completed, Some(0));
        self.poll().await;
        self.step(Lane::Follow).await;
        let store = &self.worker.store;
        taken(store.request_delete(id, &Viewer::All, true, None, self.clock.now()).await.unwrap());
        id
    }

    async fn stored(&self, id: JobId) -> bool {
        sqlx::query_scalar("select exists (select from jobs where id = $1)")
            .bind(id.get())
            .fetch_one(&self.pool)
            .await
            .unwrap()
    }

    /// In how many minutes something of the job is due.
    async fn due_in(&self, id: JobId) -> i32 {
        sqlx::query_scalar(
            "select round(extract(epoch from due_at - now()) / 60)::int from jobs where id = $1",
        )
        .bind(id.get())
        .fetch_one(&self.pool)
        .await
        .unwrap()
    }
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_base_directory_that_cannot_be_read_holds_up_its_own_job_alone(pool: PgPool) {
    let bench = Bench::new(pool);
    let bad = bench.deleted(1).await;
    let _: i32 = sqlx::query_scalar(
        "insert into slurm_metadata (job_id, attempt, token, job_dir, intended_at) values ($1, 9, 'x', 'y', now())
         returning attempt",
    )
    .bind(bad.get())
    .fetch_one(&bench.pool)
    .await
    .unwrap();
    let good = bench.deleted(2).await;
    // Both in one batch.
    bench.make_due().await;
    assert_eq!(bench.step(Lane::Follow).await, 2);
    assert_eq!((bench.stored(good).await, bench.stored(bad).await), (false, true));
    assert!(bench.fake.purged(bad.get()), "what can be found of it goes at once");
    assert_eq!(bench.due_in(bad).await, 2, "tried twice by now");
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn remains_that_cannot_be_removed_are_tried_ever_more_rarely_and_given_up(pool: PgPool) {
    let bench = Bench::new(pool);
    let id = bench.deleted(1).await;
    let mut waits = Vec::new();
    while bench.stored(id).await {
        bench.fake.plan_fault(Fault::Unreachable);
        bench.step(Lane::Follow).await;
        if bench.stored(id).await {
            waits.push(bench.due_in(id).await);
        }
        bench.make_due().await;
        assert!(waits.len() < 100, "it is tried for ever: {waits:?}");
    }
    assert_eq!(waits[..8], [1, 2, 4, 8, 16, 32, 60, 60]);
    assert_eq!((waits.len(), bench.fake.purged(id.get())), (29, false));
    let again = NewJob { job: command_job(1), secrets: Secrets::default(), request_hash: [0; 32] };
    assert!(matches!(bench.worker.store.insert_job(&again).await.unwrap(), Inserted::Other));
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn the_id_of_a_deleted_job_is_not_taken_again(pool: PgPool) {
    let bench = Bench::new(pool);
    let (id, name) = bench.submitted().await;
    bench.fake.set_state(&name, &SlurmState::Completed, Some(0));
    bench.poll().await;
    bench.step(Lane::Follow).await;
    taken(bench.worker.store.request_delete(id, &Viewer::All, false, None, bench.clock.now()).await.unwrap());
    let again = NewJob { job: command_job(1), secrets: Secrets::default(), request_hash: [0; 32] };
    assert_eq!(again.job.id, id);
    // What is on the cluster still bears the id: the old end would be taken for the new job's.
    assert!(matches!(bench.worker.store.insert_job(&again).await.unwrap(), Inserted::Other));
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_closed_attempt_is_not_opened_again_by_a_second_pause(pool: PgPool) {
    let bench = Bench::new(pool);
    let (id, name) = bench.paused().await;
    bench.resume(id).await;
    bench.pause(id).await;
    let commands = bench.fake.commands();
    bench.step(Lane::Submit).await;
    assert_eq!((bench.status(id).await.0, bench.fake.commands()), (Status::Paused, commands));
    bench.resume(id).await;
    bench.step(Lane::Submit).await;
    assert_eq!(bench.fake.submissions(&format!("{name}-r2")), 1);
}

impl Bench {
    /// It was in Slurm's queue, and is at rest.
    async fn paused(&self) -> (JobId, String) {
        let (id, name) = self.submitted().await;
        self.pause(id).await;
        self.step(Lane::Follow).await;
        self.poll().await;
        self.step(Lane::Follow).await;
        assert_eq!(self.status(id).await.1, Phase::Paused);
        (id, name)
    }

    async fn cancel(&self, id: JobId) {
        taken(self.worker.store.request_cancel(id, &Viewer::All, self.clock.now()).await.unwrap());
    }

    /// Canceled, it ends at the next step, and nobody asks the cluster, which is away.
    async fn ends_without_the_cluster(&self, id: JobId) {
        let commands = self.fake.commands();
        self.cancel(id).await;
        self.fake.plan_fault(Fault::Unreachable);
        self.step(Lane::Submit).await;
        assert_eq!(self.status(id).await, (Status::Canceled, Phase::Ended));
        assert_eq!(self.fake.commands(), commands);
    }
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_paused_job_whose_secrets_are_gone_is_canceled_without_the_cluster(pool: PgPool) {
    let bench = Bench::new(pool);
    let (id, _) = bench.paused().await;
    assert!(bench.fake.removed(&format!("/lustre/users/tao/env/{id}.sh")), "they went with the pause");
    bench.ends_without_the_cluster(id).await;
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_job_that_was_paused_after_a_refusal_is_canceled_without_the_cluster(pool: PgPool) {
    let bench = Bench::new(pool);
    bench.fake.refuse(Some((FailureClass::Capacity, "too many jobs")));
    let (id, _) = bench.submitted().await;
    bench.pause(id).await;
    bench.step(Lane::Submit).await;
    assert_eq!(bench.status(id).await.0, Status::Paused);
    assert!(bench.fake.removed(&format!("/lustre/users/tao/env/{id}.sh")), "they went with the pause");
    bench.ends_without_the_cluster(id).await;
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_job_that_waits_for_its_next_attempt_is_canceled_without_the_cluster(pool: PgPool) {
    let bench = Bench::new(pool);
    let (id, name) = bench.submitted().await;
    bench.fake.set_state(&name, &SlurmState::NodeFail, None);
    bench.poll().await;
    bench.step(Lane::Follow).await;
    assert_eq!(bench.status(id).await.1, Phase::RetryWait);
    bench.ends_without_the_cluster(id).await;
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_cancellation_says_what_it_waits_for_and_waits_a_day_at_most(pool: PgPool) {
    let bench = Bench::new(pool);
    bench.fake.refuse(Some((FailureClass::Capacity, "too many jobs")));
    let (id, _) = bench.submitted().await;
    bench.cancel(id).await;
    for wait in [0, 12, 11] {
        bench.clock.advance(TimeDelta::hours(wait));
        bench.fake.plan_fault(Fault::Unreachable);
        bench.make_due().await;
        bench.step(Lane::Submit).await;
        let job = bench.job(id).await;
        let says =
            "Canceling. Removing its files with secrets failed (the cluster does not answer); retrying.";
        assert_eq!((job.status, job.message.as_str()), (Status::Canceling, says));
    }
    bench.clock.advance(TimeDelta::hours(1));
    bench.fake.plan_fault(Fault::Unreachable);
    bench.make_due().await;
    bench.step(Lane::Submit).await;
    assert_eq!(bench.status(id).await, (Status::Canceled, Phase::Ended));
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_file_that_cannot_be_removed_holds_up_its_own_job_alone(pool: PgPool) {
    let bench = Bench::new(pool);
    bench.fake.refuse(Some((FailureClass::Capacity, "too many jobs")));
    let ids = [bench.accept(command_job(1)).await, bench.accept(command_job(2)).await];
    bench.step(Lane::Submit).await;
    bench.fake.hold_on_to(&format!("/lustre/users/tao/env/{}.sh", ids[0]));
    for id in ids {
        bench.cancel(id).await;
    }
    bench.step(Lane::Submit).await;
    assert_eq!(bench.status(ids[1]).await.0, Status::Canceled);
    let job = bench.job(ids[0]).await;
    assert_eq!(job.status, Status::Canceling);
    assert!(
        job.message.ends_with("failed (the cluster could not remove them); retrying."),
        "{}",
        job.message
    );
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_wish_that_comes_while_a_job_is_put_off_is_not_lost(pool: PgPool) {
    let bench = Bench::new(pool);
    let (id, _) = bench.submitted().await;
    sqlx::raw_sql("update jobs set due_at = now()").execute(&bench.pool).await.unwrap();
    let store = &bench.worker.store;
    let terms = LeaseTerms { duration: Duration::from_secs(30), limit: 1, only_stopped: false };
    let lease =
        store.acquire_due(&bench.runtime.target.cluster.name, Lane::Follow, Uuid::from_u128(9), terms);
    let lease = lease.await.unwrap();
    taken(store.request_cancel(id, &Viewer::All, bench.clock.now()).await.unwrap());
    store.put_off(&lease, &lease.jobs, None).await.unwrap();
    assert_eq!(bench.step(Lane::Follow).await, 1, "it is due for its cancellation");
}

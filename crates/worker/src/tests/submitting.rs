//! Submissions: lost, refused, interrupted, and never twice.

use super::*;
use persistence::StepRecords as _;

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_lost_reply_is_looked_up_and_never_submitted_again(pool: PgPool) {
    let bench = Bench::new(pool);
    bench.fake.plan_fault(Fault::ReplyLost);
    let (id, name) = bench.submitted().await;
    assert_eq!(bench.status(id).await.1, Phase::SubmitUncertain);
    bench.step(Lane::Follow).await;
    assert_eq!(bench.status(id).await.1, Phase::InQueue);
    assert_eq!(bench.fake.submissions(&name), 1);
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_submission_that_died_after_its_claim_is_sent_again_once_absence_is_proved(pool: PgPool) {
    let bench = Bench::new(pool);
    bench.fake.plan_fault(Fault::DiesAfterClaim);
    let (id, name) = bench.submitted().await;
    for wait in [1, 100, 150, 11] {
        assert_eq!(bench.status(id).await.1, Phase::SubmitUncertain);
        bench.clock.advance(TimeDelta::seconds(wait));
        bench.make_due().await;
        bench.step(Lane::Follow).await;
    }
    assert_eq!((bench.status(id).await.1, bench.fake.submissions(&name)), (Phase::Submitting, 0));
    bench.step(Lane::Submit).await;
    assert_eq!((bench.status(id).await.1, bench.fake.submissions(&name)), (Phase::InQueue, 1));
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_silent_scheduler_proves_no_absence(pool: PgPool) {
    let bench = Bench::new(pool);
    bench.fake.plan_fault(Fault::DiesAfterClaim);
    let (id, _) = bench.submitted().await;
    for _ in 0..5 {
        bench.fake.plan_fault(Fault::SchedulerSilent);
        bench.clock.advance(TimeDelta::hours(1));
        bench.make_due().await;
        bench.step(Lane::Follow).await;
    }
    assert_eq!(bench.status(id).await.1, Phase::SubmitUncertain);
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_file_system_that_is_away_proves_no_absence(pool: PgPool) {
    let bench = Bench::new(pool);
    bench.fake.plan_fault(Fault::DiesAfterClaim);
    let (id, _) = bench.submitted().await;
    for _ in 0..5 {
        bench.fake.plan_fault(Fault::FilesAway);
        bench.clock.advance(TimeDelta::hours(1));
        bench.make_due().await;
        bench.step(Lane::Follow).await;
    }
    assert_eq!(bench.status(id).await.1, Phase::SubmitUncertain);
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn an_unreachable_cluster_changes_nothing_but_the_message(pool: PgPool) {
    let bench = Bench::new(pool);
    bench.fake.plan_fault(Fault::Unreachable);
    let (id, name) = bench.submitted().await;
    let job = bench.job(id).await;
    assert_eq!((job.status, job.phase), (Status::Pending, Phase::Submitting));
    assert!(job.message.contains("no route to host"), "{}", job.message);
    bench.make_due().await;
    bench.step(Lane::Submit).await;
    assert_eq!(bench.fake.submissions(&name), 1);
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn nothing_is_rendered_for_a_cluster_that_is_not_asked(pool: PgPool) {
    let bench = Bench::new(pool);
    bench.fake.set_away(true);
    let (id, name) = bench.submitted().await;
    let job = bench.job(id).await;
    assert_eq!((job.status, job.phase), (Status::Pending, Phase::Submitting));
    assert!(job.message.contains("no route to host"), "{}", job.message);
    let script = async || -> Option<String> {
        sqlx::query_scalar("select script from slurm_metadata where job_id = $1")
            .bind(id.get())
            .fetch_one(&bench.pool)
            .await
            .unwrap()
    };
    assert_eq!((script().await, bench.fake.commands()), (None, 0));
    bench.fake.set_away(false);
    bench.make_due().await;
    bench.step(Lane::Submit).await;
    assert_eq!(bench.fake.submissions(&name), 1);
    assert!(script().await.is_some());
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_refusal_for_good_ends_the_job(pool: PgPool) {
    let bench = Bench::new(pool);
    bench.fake.refuse(Some((FailureClass::Permanent, "invalid partition specified")));
    let (id, _) = bench.submitted().await;
    let job = bench.job(id).await;
    assert_eq!(job.status, Status::Error);
    assert!(job.message.contains("invalid partition specified"), "{}", job.message);
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_full_queue_is_waited_for(pool: PgPool) {
    let bench = Bench::new(pool);
    bench.fake.refuse(Some((FailureClass::Capacity, "too many jobs")));
    let (id, name) = bench.submitted().await;
    assert_eq!(bench.status(id).await, (Status::Pending, Phase::Submitting));
    bench.fake.refuse(None);
    bench.make_due().await;
    bench.step(Lane::Submit).await;
    assert_eq!((bench.status(id).await.1, bench.fake.submissions(&name)), (Phase::InQueue, 1));
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_refused_job_leaves_no_secret_on_the_cluster(pool: PgPool) {
    let bench = Bench::new(pool);
    bench.fake.refuse(Some((FailureClass::Permanent, "invalid partition specified")));
    let (id, _) = bench.submitted().await;
    assert_eq!(bench.status(id).await.0, Status::Error);
    assert!(bench.fake.removed(&format!("/lustre/users/tao/env/{id}.sh")));
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_worker_that_died_while_submitting_is_not_taken_for_one_that_never_sent(pool: PgPool) {
    let bench = Bench::new(pool);
    let (id, name) = bench.submitted().await;
    // As a crash between the answer and its record leaves it.
    sqlx::raw_sql(
        "update jobs set phase = 'submitting', submitted_at = null, due_at = now();
         update slurm_metadata set slurm_job_id = null, submitted_at = null",
    )
    .execute(&bench.pool)
    .await
    .unwrap();
    bench.fake.plan_fault(Fault::Unreachable);
    bench.step(Lane::Submit).await;
    assert_eq!(bench.status(id).await.1, Phase::SubmitUncertain);
    bench.worker.store.request_cancel(id, &Viewer::All, bench.clock.now()).await.unwrap();
    bench.step(Lane::Follow).await;
    assert_eq!(bench.status(id).await, (Status::Canceling, Phase::InQueue), "found, and now canceled");
    assert_eq!(bench.fake.submissions(&name), 1);
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_job_with_secrets_of_a_lost_key_ends_and_the_others_go_on(pool: PgPool) {
    let mut bench = Bench::new(pool);
    let sealed = bench.accept(command_job(1)).await;
    bench.worker.store = Store::from_pool(bench.pool.clone(), Sealer::from_key([8; 32]));
    let fresh = bench.accept(command_job(2)).await;
    bench.step(Lane::Submit).await;
    assert_eq!(bench.status(sealed).await.0, Status::Error);
    assert_eq!(bench.status(fresh).await.1, Phase::InQueue);
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_job_whose_inputs_are_missing_ends_without_its_secrets_and_unsubmitted(pool: PgPool) {
    let bench = Bench::new(pool);
    bench.fake.take_away("/lustre/data/a");
    let mut job = command_job(1);
    job.spec.required_paths = vec!["/lustre/data/a".parse().unwrap(), "/lustre/data/b".parse().unwrap()];
    let id = bench.accept(job).await;
    bench.step(Lane::Submit).await;
    let job = bench.job(id).await;
    assert_eq!((job.status, job.phase), (Status::Error, Phase::Ended));
    assert!(
        job.message.contains("/lustre/data/a") && !job.message.contains("/lustre/data/b"),
        "{}",
        job.message
    );
    assert_eq!(bench.fake.submissions(&format!("tao-job-{id}")), 0);
    assert!(bench.worker.store.open_secrets(&[id]).await.unwrap().is_empty());
}

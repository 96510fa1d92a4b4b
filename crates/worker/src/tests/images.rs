//! Conversions against the fake cluster and a real Postgres.

use domain::{ImagePolicy, ImageRef};
use remote::ImageFile;

use super::*;

mod cached_files;

const FILE: &str = "/lustre/users/tao/";

/// A job that wants the image from the cache.
fn job_with(number: u128, policy: ImagePolicy) -> Job {
    let mut job = command_job(number);
    job.spec.image = Some("registry.example/a/b:1".parse().unwrap());
    job.spec.image_policy = policy;
    job
}

fn converted(number: u128) -> Job {
    job_with(number, ImagePolicy::default())
}

fn required(number: u128) -> Job {
    job_with(number, ImagePolicy { require_sqsh: true, ..ImagePolicy::default() })
}

/// Where the image of `job_with` is cached.
fn cached() -> String {
    format!("{FILE}{}", "registry.example/a/b:1".parse::<ImageRef>().unwrap().cache_file_name())
}

impl Bench {
    async fn convert(&self) -> usize {
        Box::pin(self.worker.take_conversions(&self.runtime)).await.unwrap()
    }

    /// The conversion has been submitted, and nothing more. Returns its name in Slurm.
    async fn conversion(&self) -> String {
        self.step(Lane::Submit).await;
        self.convert().await;
        self.convert().await;
        self.token().await
    }

    async fn token(&self) -> String {
        sqlx::query_scalar("select token from image_conversions").fetch_one(&self.pool).await.unwrap()
    }

    async fn state(&self) -> String {
        sqlx::query_scalar("select state from image_conversions").fetch_one(&self.pool).await.unwrap()
    }

    async fn make_conversions_due(&self) {
        sqlx::raw_sql("update image_conversions set due_at = now() where due_at is not null")
            .execute(&self.pool)
            .await
            .unwrap();
    }

    /// The conversion ends with this code, and this is at its place.
    async fn end_conversion(&self, name: &str, code: u8, file: ImageFile) {
        let state = if code == 0 { SlurmState::Completed } else { SlurmState::Failed };
        self.fake.set_state(name, &state, Some(code));
        self.fake.put_image(&cached(), file);
        self.poll().await;
        self.convert().await;
        self.step(Lane::Submit).await;
    }

    async fn script(&self, id: JobId) -> String {
        sqlx::query_scalar("select script from slurm_metadata where job_id = $1")
            .bind(id.get())
            .fetch_one(&self.pool)
            .await
            .unwrap()
    }
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn many_jobs_of_one_image_are_one_conversion(pool: PgPool) {
    let bench = Bench::new(pool);
    let mut ids = Vec::new();
    for number in 1..=10 {
        ids.push(bench.accept(converted(number)).await);
    }
    let name = bench.conversion().await;
    assert_eq!(bench.fake.submissions(&name), 1);
    bench.step(Lane::Submit).await;
    for id in &ids {
        let job = bench.job(*id).await;
        assert_eq!((job.status, job.phase), (Status::Pending, Phase::ConvertingImage));
        assert!(job.message.contains("Slurm job 1 is waiting for a node"), "{}", job.message);
    }
    bench.fake.set_state(&name, &SlurmState::Running, None);
    bench.poll().await;
    bench.step(Lane::Submit).await;
    assert!(bench.job(ids[0]).await.message.contains("Slurm job 1 has been running on node01 since"));

    bench.end_conversion(&name, 0, ImageFile::Whole).await;
    for id in &ids {
        assert_eq!(bench.status(*id).await.1, Phase::InQueue);
        assert!(bench.script(*id).await.contains(&cached()));
    }
    assert_eq!((bench.state().await.as_str(), bench.fake.submissions(&name)), ("ready", 1));
    assert_eq!(bench.convert().await, 0, "and nothing of it is due any more");
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_file_of_an_image_and_a_job_that_wants_none_are_never_converted(pool: PgPool) {
    let bench = Bench::new(pool);
    let file = bench.accept(command_job(1)).await;
    let plain = job_with(2, ImagePolicy { use_sqsh: false, ..ImagePolicy::default() });
    let plain = bench.accept(plain).await;
    bench.step(Lane::Submit).await;
    assert_eq!((bench.status(file).await.1, bench.status(plain).await.1), (Phase::InQueue, Phase::InQueue));
    assert!(bench.script(plain).await.contains("--container-image='registry.example#a/b:1'"));
    assert_eq!((bench.convert().await, bench.fake.commands()), (0, 1));
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_conversion_whose_answer_was_lost_is_found_and_never_submitted_again(pool: PgPool) {
    let bench = Bench::new(pool);
    let id = bench.accept(converted(1)).await;
    bench.step(Lane::Submit).await;
    bench.convert().await;
    bench.fake.plan_fault(Fault::ReplyLost);
    bench.convert().await;
    assert_eq!(bench.state().await, "submit_uncertain");
    bench.convert().await;
    let name = bench.token().await;
    assert_eq!((bench.state().await.as_str(), bench.fake.submissions(&name)), ("in_queue", 1));
    bench.end_conversion(&name, 0, ImageFile::Whole).await;
    assert_eq!(bench.status(id).await.1, Phase::InQueue);
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_worker_that_died_while_it_submitted_a_conversion_leaves_one(pool: PgPool) {
    let bench = Bench::new(pool);
    bench.accept(converted(1)).await;
    let name = bench.conversion().await;
    // As a crash between the answer and its record leaves it.
    sqlx::raw_sql(
        "update image_conversions set state = 'submitting', slurm_job_id = null, submitted_at = null, due_at = now()",
    )
    .execute(&bench.pool)
    .await
    .unwrap();
    bench.fake.plan_fault(Fault::Unreachable);
    bench.convert().await;
    assert_eq!(
        bench.state().await,
        "submit_uncertain",
        "that nothing was sent now says nothing about before"
    );
    bench.convert().await;
    assert_eq!((bench.state().await.as_str(), bench.fake.submissions(&name)), ("in_queue", 1));
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_conversion_that_died_after_its_claim_is_sent_again_once_absence_is_proved(pool: PgPool) {
    let bench = Bench::new(pool);
    bench.accept(converted(1)).await;
    bench.step(Lane::Submit).await;
    bench.convert().await;
    bench.fake.plan_fault(Fault::DiesAfterClaim);
    bench.convert().await;
    let name = bench.token().await;
    for wait in [1, 100, 150, 11] {
        assert_eq!(bench.state().await, "submit_uncertain");
        bench.clock.advance(TimeDelta::seconds(wait));
        bench.make_conversions_due().await;
        bench.convert().await;
    }
    assert_eq!((bench.state().await.as_str(), bench.fake.submissions(&name)), ("submitting", 0));
    bench.convert().await;
    assert_eq!((bench.state().await.as_str(), bench.fake.submissions(&name)), ("in_queue", 1));
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_failed_conversion_is_remembered_and_the_image_itself_is_run(pool: PgPool) {
    let bench = Bench::new(pool);
    let id = bench.accept(converted(1)).await;
    let strict = bench.accept(required(2)).await;
    let name = bench.conversion().await;
    bench.end_conversion(&name, 1, ImageFile::Absent).await;
    let job = bench.job(id).await;
    assert_eq!(job.phase, Phase::InQueue);
    assert!(job.message.contains("its last line"), "{}", job.message);
    assert!(bench.script(id).await.contains("--container-image='registry.example#a/b:1'"));
    let refused = bench.job(strict).await;
    assert_eq!(refused.status, Status::Error);
    assert!(refused.message.contains("its last line") && refused.message.contains("require_sqsh"));

    let commands = bench.fake.commands();
    let later = bench.accept(converted(3)).await;
    bench.step(Lane::Submit).await;
    assert_eq!((bench.status(later).await.1, bench.fake.commands()), (Phase::InQueue, commands + 1));
    bench.clock.advance(TimeDelta::minutes(6));
    let after = bench.accept(converted(4)).await;
    let again = bench.conversion().await;
    assert_eq!(bench.status(after).await.1, Phase::ConvertingImage);
    assert_ne!(again, name);
    assert_eq!(bench.fake.submissions(&again), 1);
}

const NOT_FOUND: &str =
    "[ERROR] URL https://registry.example/v2/a/b/manifests/1 returned error code: 404 Not Found\n";

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn an_image_that_its_registry_does_not_have_takes_no_gpu(pool: PgPool) {
    let bench = Bench::new(pool);
    let (id, strict) = (bench.accept(converted(1)).await, bench.accept(required(2)).await);
    let name = bench.conversion().await;
    bench.fake.write_log(&name, NOT_FOUND);
    bench.end_conversion(&name, 1, ImageFile::Absent).await;
    for id in [id, strict] {
        let job = bench.job(id).await;
        assert_eq!((job.status, job.attempt), (Status::Error, None));
        assert!(job.message.contains("the image does not exist in its registry. enroot"), "{}", job.message);
    }
    // It may have been pushed since.
    let later = bench.accept(converted(3)).await;
    let again = bench.conversion().await;
    assert_ne!(again, name);
    bench.end_conversion(&again, 0, ImageFile::Whole).await;
    assert_eq!(bench.status(later).await.1, Phase::InQueue);
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_refused_conversion_says_what_slurm_says(pool: PgPool) {
    let bench = Bench::new(pool);
    bench.fake.refuse(Some((FailureClass::Permanent, "invalid partition specified: cpu")));
    let id = bench.accept(required(1)).await;
    bench.conversion().await;
    bench.step(Lane::Submit).await;
    let job = bench.job(id).await;
    assert_eq!(job.status, Status::Error);
    assert!(job.message.contains("invalid partition specified: cpu"), "{}", job.message);
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_dead_node_is_no_fault_of_the_image(pool: PgPool) {
    let bench = Bench::new(pool);
    let id = bench.accept(required(1)).await;
    let first = bench.conversion().await;
    bench.fake.set_state(&first, &SlurmState::NodeFail, None);
    bench.poll().await;
    for _ in 0..3 {
        bench.convert().await;
    }
    let second = bench.token().await;
    assert_ne!(first, second);
    bench.end_conversion(&second, 0, ImageFile::Whole).await;
    assert_eq!(bench.status(id).await.1, Phase::InQueue);
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_job_canceled_while_its_image_is_converted_ends_at_once(pool: PgPool) {
    let bench = Bench::new(pool);
    let (first, second) = (bench.accept(converted(1)).await, bench.accept(converted(2)).await);
    let name = bench.conversion().await;
    bench.worker.store.request_cancel(first, &Viewer::All, bench.clock.now()).await.unwrap();
    bench.step(Lane::Submit).await;
    assert_eq!(bench.status(first).await, (Status::Canceled, Phase::Ended));
    bench.convert().await;
    bench.poll().await;
    assert_eq!(bench.state().await, "in_queue", "somebody else waits for it");

    bench.worker.store.request_cancel(second, &Viewer::All, bench.clock.now()).await.unwrap();
    bench.step(Lane::Submit).await;
    bench.convert().await;
    bench.poll().await;
    bench.convert().await;
    assert_eq!((bench.state().await.as_str(), bench.fake.submissions(&name)), ("requested", 1));
    assert_eq!(bench.convert().await, 0, "it rests until somebody wants it");

    bench.accept(converted(3)).await;
    let again = bench.conversion().await;
    assert_eq!((bench.state().await.as_str(), bench.fake.submissions(&again)), ("in_queue", 1));
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_tag_that_moves_is_converted_anew_only_if_asked_and_once_for_all_who_wait(pool: PgPool) {
    let bench = Bench::new(pool);
    let place = format!("{FILE}{}", "reg.example/a/b".parse::<ImageRef>().unwrap().cache_file_name());
    bench.fake.put_image(&place, ImageFile::Whole);
    let job = |number, force_reconvert_latest| {
        let mut job = converted(number);
        job.spec.image = Some("reg.example/a/b".parse().unwrap());
        job.spec.image_policy.force_reconvert_latest = force_reconvert_latest;
        job
    };
    let usual = bench.accept(job(1, false)).await;
    let fresh = [bench.accept(job(2, true)).await, bench.accept(job(3, true)).await];
    let name = bench.conversion().await;
    bench.step(Lane::Submit).await;
    assert_eq!(bench.status(fresh[0]).await.1, Phase::ConvertingImage);
    assert!(bench.script(usual).await.contains(&place), "who asks for nothing new does not wait for it");
    let target: String =
        sqlx::query_scalar("select target from image_conversions").fetch_one(&bench.pool).await.unwrap();
    assert_ne!(target, place, "the file that others may be reading stays as it is");

    bench.clock.advance(TimeDelta::minutes(1));
    bench.fake.set_state(&name, &SlurmState::Completed, Some(0));
    bench.fake.put_image(&target, ImageFile::Whole);
    bench.poll().await;
    bench.convert().await;
    bench.step(Lane::Submit).await;
    for id in fresh {
        assert!(bench.script(id).await.contains(&target), "{}", bench.script(id).await);
    }
    // Accepted after that import began: it sees what has been pushed since.
    bench.clock.advance(TimeDelta::minutes(1));
    bench.accept(job(4, true)).await;
    let again = bench.conversion().await;
    assert_ne!(again, name);
    assert_eq!(bench.fake.submissions(&again), 1);
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_conversion_costs_no_command_of_its_own_per_poll(pool: PgPool) {
    let bench = Bench::new(pool);
    bench.accept(converted(1)).await;
    bench.conversion().await;
    let before = bench.fake.commands();
    for _ in 0..5 {
        bench.poll().await;
        bench.step(Lane::Submit).await;
        bench.convert().await;
    }
    assert_eq!(bench.fake.commands(), before + 5);
}

/// A cluster whose base directory has a name of so many bytes: what lies below it may be too long for a path.
fn deep(bytes: usize) -> Cluster {
    let mut cluster = cluster();
    cluster.base_dir = format!("/{}", "b".repeat(bytes - 1)).parse().unwrap();
    cluster
}

async fn the_image_itself_is_run_or_the_job_ends(bench: Bench, says: &str) {
    let (id, strict) = (bench.accept(converted(1)).await, bench.accept(required(2)).await);
    bench.step(Lane::Submit).await;
    bench.convert().await;
    bench.convert().await;
    assert_eq!(bench.state().await, "failed");
    assert_eq!(bench.convert().await, 0, "nobody tries it over and over");
    bench.step(Lane::Submit).await;
    let job = bench.job(id).await;
    assert!(!matches!(job.phase, Phase::ConvertingImage), "{}", job.message);
    let refused = bench.job(strict).await;
    assert_eq!(refused.status, Status::Error);
    assert!(refused.message.contains(says), "{}", refused.message);
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_conversion_without_a_place_for_its_state_fails_and_says_why(pool: PgPool) {
    let says = "an absolute path of at most 3000 bytes";
    Box::pin(the_image_itself_is_run_or_the_job_ends(Bench::of(pool, deep(2955)), says)).await;
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_conversion_whose_script_has_no_place_fails_and_says_why(pool: PgPool) {
    let says = "an absolute path of at most 3000 bytes";
    Box::pin(the_image_itself_is_run_or_the_job_ends(Bench::of(pool, deep(2945)), says)).await;
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn an_image_without_a_place_in_the_cache_is_never_said_to_be_converted(pool: PgPool) {
    let mut cluster = cluster();
    cluster.images.cache_dir = format!("/{}", "c".repeat(2990)).parse().unwrap();
    let bench = Bench::of(pool, cluster);
    let (id, strict) = (bench.accept(converted(1)).await, bench.accept(required(2)).await);
    bench.step(Lane::Submit).await;
    assert!(bench.job(id).await.message.contains("each node pulls it"), "{}", bench.job(id).await.message);
    let refused = bench.job(strict).await;
    assert_eq!(refused.status, Status::Error);
    assert!(refused.message.contains("require_sqsh"), "{}", refused.message);
}

//! Images and their conversions against the fake cluster and a real Postgres.

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
    /// Jobs begin to wait, and the conversion has been submitted. Returns its name in Slurm.
    async fn conversion(&self) -> String {
        self.step(Lane::Submit).await;
        self.step(Lane::Submit).await;
        self.converting().await.attempt.unwrap().token.to_string()
    }

    /// The job that converts the image.
    async fn converting(&self) -> Job {
        let id: uuid::Uuid =
            sqlx::query_scalar("select conversion from cached_images where conversion is not null")
                .fetch_one(&self.pool)
                .await
                .unwrap();
        self.job(JobId::new(id)).await
    }

    /// Where the conversion makes its file.
    async fn target(&self) -> String {
        sqlx::query_scalar("select target from cached_images where target is not null")
            .fetch_one(&self.pool)
            .await
            .unwrap()
    }

    /// The conversion ends with this code, and this is at the place of its file. The jobs that wait for it go on.
    async fn end_conversion(&self, name: &str, code: u8, file: ImageFile) {
        let state = if code == 0 { SlurmState::Completed } else { SlurmState::Failed };
        self.fake.set_state(name, &state, Some(code));
        self.fake.put_image(&self.target().await, file);
        self.poll().await;
        self.step(Lane::Follow).await;
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
    let by = bench.converting().await.id;
    for id in &ids {
        let job = bench.job(*id).await;
        assert_eq!((job.status, job.phase), (Status::Pending, Phase::ConvertingImage));
        assert!(job.message.contains(&format!("Waits for job {by}, which is to convert")), "{}", job.message);
    }
    bench.fake.run_on(&name, "node01");
    bench.poll().await;
    bench.step(Lane::Submit).await;
    let message = bench.job(ids[0]).await.message;
    assert!(message.contains(&format!("Job {by} has been converting the image")), "{message}");

    bench.end_conversion(&name, 0, ImageFile::Whole).await;
    for id in &ids {
        assert_eq!(bench.status(*id).await.1, Phase::InQueue);
        assert!(bench.script(*id).await.contains(&cached()));
    }
    assert_eq!(bench.fake.submissions(&name), 1);
    assert_eq!(bench.job(by).await.status, Status::Done);
    assert_eq!(bench.step(Lane::Submit).await, 0, "and nothing of it is due any more");
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
    assert_eq!((bench.step(Lane::Submit).await, bench.fake.commands()), (0, 1));
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
        assert!(
            job.message.contains("cannot be used: the image does not exist in its registry. Job "),
            "{}",
            job.message
        );
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
    for _ in 0..3 {
        bench.step(Lane::Submit).await;
    }
    let job = bench.job(id).await;
    assert_eq!(job.status, Status::Error);
    assert!(job.message.contains("invalid partition specified: cpu"), "{}", job.message);
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn an_image_that_cannot_be_looked_for_is_looked_for_again(pool: PgPool) {
    let bench = Bench::new(pool);
    let id = bench.accept(converted(1)).await;
    bench.fake.plan_fault(Fault::Unreachable);
    bench.step(Lane::Submit).await;
    let job = bench.job(id).await;
    assert_eq!(job.phase, Phase::ConvertingImage);
    assert!(job.message.contains("cannot be looked for at the moment: "), "{}", job.message);
    bench.make_due().await;
    bench.conversion().await;
    assert_eq!(bench.status(id).await.1, Phase::ConvertingImage);
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_dead_node_is_no_fault_of_the_image(pool: PgPool) {
    let bench = Bench::new(pool);
    let id = bench.accept(required(1)).await;
    let first = bench.conversion().await;
    bench.fake.run_on(&first, "node01");
    bench.poll().await;
    bench.fake.set_state(&first, &SlurmState::NodeFail, None);
    bench.poll().await;
    bench.step(Lane::Follow).await;
    bench.make_due().await;
    bench.step(Lane::Submit).await;
    let second = bench.converting().await.attempt.unwrap().token.to_string();
    assert_ne!(first, second);
    bench.end_conversion(&second, 0, ImageFile::Whole).await;
    let job = bench.job(id).await;
    assert_eq!(job.phase, Phase::InQueue, "{}", job.message);
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_conversion_that_does_not_begin_is_waited_for_no_longer_than_an_hour(pool: PgPool) {
    let bench = Bench::new(pool);
    let (id, strict) = (bench.accept(converted(1)).await, bench.accept(required(2)).await);
    bench.conversion().await;
    bench.poll().await;
    let conversion = bench.converting().await.id;
    bench.clock.advance(TimeDelta::minutes(59));
    bench.make_due().await;
    bench.step(Lane::Submit).await;
    assert_eq!(bench.status(id).await.1, Phase::ConvertingImage);
    bench.clock.advance(TimeDelta::minutes(1));
    bench.make_due().await;
    bench.step(Lane::Submit).await;
    assert_eq!(bench.status(id).await.1, Phase::InQueue);
    assert!(bench.job(strict).await.message.contains("its Slurm job was pending for an hour"));
    assert_eq!(bench.job(conversion).await.desired, domain::DesiredState::Cancel);
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_conversion_that_somebody_paused_holds_up_nobody(pool: PgPool) {
    let bench = Bench::new(pool);
    let id = bench.accept(converted(1)).await;
    bench.step(Lane::Submit).await;
    let conversion = bench.converting().await.id;
    bench.worker.store.request_pause(conversion, &Viewer::All, bench.clock.now()).await.unwrap();
    bench.step(Lane::Submit).await;
    assert_eq!(bench.status(conversion).await, (Status::Paused, Phase::Paused));
    bench.make_due().await;
    bench.step(Lane::Submit).await;
    assert!(bench.job(id).await.message.contains("the job that converts it is paused"));
    assert_eq!(bench.job(conversion).await.desired, domain::DesiredState::Cancel);
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_job_canceled_while_its_image_is_converted_ends_at_once(pool: PgPool) {
    let bench = Bench::new(pool);
    let (first, second) = (bench.accept(converted(1)).await, bench.accept(converted(2)).await);
    let name = bench.conversion().await;
    let conversion = bench.converting().await.id;
    bench.worker.store.request_cancel(first, &Viewer::All, bench.clock.now()).await.unwrap();
    bench.step(Lane::Submit).await;
    assert_eq!(bench.status(first).await, (Status::Canceled, Phase::Ended));
    bench.step(Lane::Follow).await;
    assert_eq!(bench.status(conversion).await.0, Status::Pending, "somebody else waits for it");

    bench.worker.store.request_cancel(second, &Viewer::All, bench.clock.now()).await.unwrap();
    bench.step(Lane::Submit).await;
    bench.step(Lane::Follow).await;
    bench.poll().await;
    bench.step(Lane::Follow).await;
    assert_eq!(bench.status(conversion).await, (Status::Canceled, Phase::Ended));
    assert_eq!(bench.fake.submissions(&name), 1);

    // What was canceled says nothing of the image.
    bench.accept(converted(3)).await;
    bench.step(Lane::Submit).await;
    let again = bench.conversion().await;
    assert_ne!(again, name);
    assert_eq!(bench.fake.submissions(&again), 1);
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
    assert_eq!(bench.status(fresh[0]).await.1, Phase::ConvertingImage);
    assert!(bench.script(usual).await.contains(&place), "who asks for nothing new does not wait for it");
    let target = bench.target().await;
    assert_ne!(target, place, "the file that others may be reading stays as it is");

    bench.clock.advance(TimeDelta::minutes(1));
    bench.fake.run_on(&name, "node01");
    bench.poll().await;
    bench.end_conversion(&name, 0, ImageFile::Whole).await;
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
        bench.step(Lane::Follow).await;
    }
    assert_eq!(bench.fake.commands(), before + 5);
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

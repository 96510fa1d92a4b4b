//! Files that are in the cache already, and those that a job finds damaged or gone.

use domain::{ComponentSettings, JobComponent, ServiceSettings, Work};

use super::*;

impl Bench {
    /// Submits a job whose image is in the cache.
    async fn launch_from_cache(&self, job: Job) -> JobId {
        self.fake.put_image(&cached(), ImageFile::Whole);
        let id = Box::pin(self.accept(job)).await;
        Box::pin(self.step(Lane::Submit)).await;
        id
    }

    /// A job needs the image after its file was last seen a while ago.
    async fn look_again(&self, number: u128) {
        self.clock.advance(TimeDelta::minutes(11));
        self.accept(converted(number)).await;
        self.step(Lane::Submit).await;
    }

    /// The job runs with the cached file, and fails with this log. Returns the name of its next attempt.
    async fn fail_with_file(&self, id: JobId, log: &str) -> String {
        let name = self.job(id).await.attempt.unwrap().token.to_string();
        self.fake.run_on(&name, "node01");
        self.poll().await;
        self.fake.write_log(&name, log);
        self.fake.set_state(&name, &SlurmState::Failed, Some(1));
        self.poll().await;
        self.step(Lane::Follow).await;
        format!("{name}-r2")
    }
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_file_that_is_there_is_used_at_once_and_looked_for_once(pool: PgPool) {
    let bench = Bench::new(pool);
    let id = bench.launch_from_cache(converted(1)).await;
    assert_eq!((bench.status(id).await.1, bench.fake.commands()), (Phase::InQueue, 2));
    let second = bench.accept(converted(2)).await;
    bench.step(Lane::Submit).await;
    assert_eq!((bench.status(second).await.1, bench.fake.commands()), (Phase::InQueue, 3));

    bench.clock.advance(TimeDelta::minutes(11));
    let third = bench.accept(converted(3)).await;
    bench.step(Lane::Submit).await;
    assert_eq!(
        (bench.status(third).await.1, bench.fake.commands()),
        (Phase::InQueue, 5),
        "it may have been removed since"
    );
}

const PURGED: &str =
    "slurmstepd-node01: error: pyxis:     [ERROR] No such file or directory: /lustre/x.sqsh\n";
const DAMAGED: &str = "slurmstepd-node01: error: pyxis:     lzo uncompress failed with error code -6\n";

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_cached_file_that_was_purged_a_moment_after_it_was_seen_is_converted_again(pool: PgPool) {
    let bench = Bench::new(pool);
    let id = bench.launch_from_cache(converted(1)).await;
    bench.fake.put_image(&cached(), ImageFile::Absent);
    bench.fail_with_file(id, PURGED).await;
    assert_eq!(bench.status(id).await, (Status::Pending, Phase::RetryWait));
    bench.make_due().await;
    let conversion = bench.conversion().await;
    assert_eq!(bench.status(id).await.1, Phase::ConvertingImage);
    bench.end_conversion(&conversion, 0, ImageFile::Whole).await;
    let job = bench.job(id).await;
    assert_eq!((job.phase, job.attempt.unwrap().excluded), (Phase::InQueue, Vec::new()));
    assert!(bench.script(id).await.contains(&cached()));
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_damaged_cached_file_is_made_anew_even_if_the_job_that_found_it_is_not_retried(pool: PgPool) {
    let bench = Bench::new(pool);
    let mut job = converted(1);
    job.spec.max_retries = 0;
    let id = bench.launch_from_cache(job).await;
    bench.fail_with_file(id, DAMAGED).await;
    assert_eq!(bench.status(id).await, (Status::Error, Phase::Ended));

    let next = bench.accept(converted(2)).await;
    let conversion = bench.conversion().await;
    let target = bench.target().await;
    assert_ne!(target, cached(), "somebody may be reading the old file");
    assert_eq!(bench.status(next).await.1, Phase::ConvertingImage, "it does not get the damaged file");
    bench.end_conversion(&conversion, 0, ImageFile::Whole).await;
    assert!(bench.script(next).await.contains(&target), "{}", bench.script(next).await);
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_damaged_file_is_removed_when_no_job_reads_it_and_another_is_whole(pool: PgPool) {
    let bench = Bench::new(pool);
    let reader = bench.launch_from_cache(converted(1)).await;
    let id = bench.launch_from_cache(converted(2)).await;
    bench.fail_with_file(id, DAMAGED).await;
    bench.make_due().await;
    let conversion = bench.conversion().await;
    let target = bench.target().await;
    bench.end_conversion(&conversion, 0, ImageFile::Whole).await;
    let image = bench.job(id).await.attempt.unwrap().images[0].image.clone();
    assert_eq!(image.to_string(), target);

    bench.look_again(3).await;
    assert!(bench.fake.has_image(&cached()), "a job may be reading it");
    let name = bench.job(reader).await.attempt.unwrap().token.to_string();
    bench.fake.set_state(&name, &SlurmState::Cancelled, None);
    bench.poll().await;
    bench.step(Lane::Follow).await;
    assert_eq!(bench.status(reader).await.1, Phase::Ended);
    bench.look_again(4).await;
    assert_eq!([cached(), target].map(|file| bench.fake.has_image(&file)), [false, true]);
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_job_of_several_images_waits_until_the_cache_has_all_of_them(pool: PgPool) {
    let bench = Bench::new(pool);
    let other = "registry.example/c/d:2".parse::<ImageRef>().unwrap().cache_file_name();
    bench.fake.put_image(&format!("{FILE}{other}"), ImageFile::Whole);
    let mut job = converted(1);
    let component = |name: &str, image: Option<&str>| JobComponent {
        name: name.parse().unwrap(),
        text: "true".to_owned(),
        is_service: image.is_some(),
        copy_of: None,
        balances: None,
        with_previous: false,
        first_node: 0,
        nodes: 1,
        launcher: None,
        timeout_minutes: None,
        own: ComponentSettings {
            image: image.map(|image| image.parse().unwrap()),
            ..ComponentSettings::default()
        },
        continue_on_error: false,
        service: ServiceSettings::default(),
    };
    let list = vec![component("model", Some("registry.example/c/d:2")), component("ask", None)];
    job.spec.work = Work::Components { list };
    let id = bench.accept(job).await;
    let name = bench.conversion().await;
    assert_eq!(bench.status(id).await.1, Phase::ConvertingImage);
    bench.end_conversion(&name, 0, ImageFile::Whole).await;
    let job = bench.job(id).await;
    assert_eq!(job.phase, Phase::InQueue, "{}", job.message);
    let script = bench.script(id).await;
    assert!(script.contains(&cached()) && script.contains(&other), "{script}");
    assert_eq!(job.attempt.unwrap().images.len(), 2);
}

//! Promises to jobs that wait for the conversion of their image.

use chrono::TimeDelta;
use domain::{CachedImage, Conversion, DesiredState, Job, JobId, Owner, Phase, Status, Transition};
use persistence::{
    DueJobs as _, ImageRecord, ImageRequest, Images as _, Inserted, Lane, NewJob, StepRecords as _, Wait,
};
use slurm::RemotePath;
use testkit::command_job;
use uuid::Uuid;

use crate::{
    promises::{NOW, TERMS, dgx},
    sides::{Request, Side, secrets},
};

const CONVERSION: u128 = 9;

fn path() -> RemotePath {
    "/lustre/a.sqsh".parse().unwrap()
}

fn id(number: u128) -> JobId {
    JobId::new(Uuid::from_u128(number))
}

async fn image(side: &impl Side) -> CachedImage {
    let wish = ImageRequest { job: id(1), cache_path: path(), image: "r.io/a/b:1".parse().unwrap() };
    side.store().request_images(&dgx(), &[wish]).await.unwrap().remove(0)
}

/// Everything that is due in these lanes, after it was taken and left in this state. Nothing is due again by itself.
async fn step(side: &impl Side, token: u128, change: impl Fn(Job) -> Job) -> Vec<JobId> {
    let mut stepped = Vec::new();
    for (lane, number) in [(Lane::Submit, 0), (Lane::Follow, 1)] {
        let lease =
            side.store().acquire_due(&dgx(), lane, Uuid::from_u128(token * 2 + number), TERMS).await.unwrap();
        let steps: Vec<_> =
            lease.jobs.iter().map(|job| Transition { job: change(job.clone()), due_at: None }).collect();
        side.store().record_steps(&lease, &steps, NOW).await.unwrap();
        stepped.extend(lease.jobs.iter().map(|job| job.id));
    }
    stepped.sort_unstable();
    stepped
}

/// Two jobs wait for one conversion.
async fn two_wait(side: &impl Side) {
    for number in 1..=2 {
        let new = NewJob { job: command_job(number), secrets: secrets(), request_hash: [0; 32] };
        assert!(matches!(side.insert(&new).await, Inserted::Created(_)));
    }
    step(side, 1, |job| Job { phase: Phase::ConvertingImage, ..job }).await;
    let job = Job { owner: Owner::SERVICE, ..command_job(CONVERSION) };
    let mut image = image(side).await;
    image.conversion = Some(Conversion::begun(job.id, path(), NOW));
    let record = ImageRecord { image, conversion: Some(job) };
    side.store().record_images(&dgx(), &[record]).await.unwrap();
    wait(side).await;
    assert_eq!(step(side, 2, |job| job).await, [id(CONVERSION)], "those that wait are not due");
}

async fn wait(side: &impl Side) {
    let until = NOW + TimeDelta::hours(1);
    let mut waits = Vec::new();
    for job in [1, 2].map(id) {
        let version = side.find(job).await.unwrap().version;
        waits.push(Wait { job, conversion: id(CONVERSION), until, version });
    }
    side.store().await_conversions(&dgx(), &waits, NOW).await.unwrap();
}

/// The owner cancels a job, and it leaves.
async fn leave(side: &impl Side, number: u128) {
    side.request(id(number), Request::Cancel, NOW).await;
    let left =
        step(side, 10 + number, |job| if job.id == id(number) { job.canceled_locally(NOW) } else { job })
            .await;
    assert!(left.contains(&id(number)), "{left:?}");
}

/// The conversion goes on to this, after a request that makes it due.
async fn go_on(side: &impl Side, token: u128, request: Request, change: impl Fn(Job) -> Job) {
    side.request(id(CONVERSION), request, NOW).await;
    step(side, token, |job| if job.id == id(CONVERSION) { change(job) } else { job }).await;
}

pub(crate) async fn who_waits_is_due_when_the_conversion_begins_and_ends(side: impl Side) {
    two_wait(&side).await;
    go_on(&side, 3, Request::Pause, |job| Job { started_at: Some(NOW), ..job }).await;
    assert_eq!(step(&side, 4, |job| job).await, [id(1), id(2)], "it began");
    go_on(&side, 5, Request::Cancel, |job| Job {
        phase: Phase::Ended,
        status: Status::Canceled,
        finished_at: Some(NOW),
        ..job
    })
    .await;
    assert_eq!(step(&side, 6, |job| job).await, [id(1), id(2)], "it ended");
    assert_eq!(image(&side).await.conversion.unwrap().status, Status::Canceled);
    // They came too late for its end.
    wait(&side).await;
    assert_eq!(step(&side, 7, |job| job).await, [id(1), id(2)]);
}

pub(crate) async fn who_waits_is_due_when_it_does_not_wait_any_longer(side: impl Side) {
    two_wait(&side).await;
    side.pass(TimeDelta::minutes(59)).await;
    assert!(step(&side, 3, |job| job).await.is_empty());
    side.pass(TimeDelta::minutes(2)).await;
    assert_eq!(step(&side, 4, |job| job).await, [id(1), id(2)]);
}

pub(crate) async fn a_conversion_lives_as_long_as_somebody_waits(side: impl Side) {
    two_wait(&side).await;
    leave(&side, 1).await;
    assert_eq!(side.find(id(CONVERSION)).await.unwrap().desired, DesiredState::Run, "the other one waits");
    leave(&side, 2).await;
    let conversion = side.find(id(CONVERSION)).await.unwrap();
    assert_eq!((conversion.desired, conversion.status), (DesiredState::Cancel, Status::Canceling));
    assert_eq!(step(&side, 20, |job| job).await, [id(CONVERSION)], "and is canceled at once");
}

pub(crate) async fn who_was_changed_meanwhile_is_due_at_once(side: impl Side) {
    two_wait(&side).await;
    let until = NOW + TimeDelta::hours(1);
    let version = side.find(id(1)).await.unwrap().version;
    side.request(id(1), Request::Cancel, NOW).await;
    let wait = Wait { job: id(1), conversion: id(CONVERSION), until, version };
    side.store().await_conversions(&dgx(), &[wait], NOW).await.unwrap();
    assert_eq!(step(&side, 3, |job| job).await, [id(1)]);
}

pub(crate) async fn a_conversion_that_is_given_up_is_canceled_unless_somebody_waits(side: impl Side) {
    two_wait(&side).await;
    side.store().give_up_conversions(&dgx(), &[id(CONVERSION)], NOW).await.unwrap();
    assert_eq!(side.find(id(CONVERSION)).await.unwrap().desired, DesiredState::Run);
    let job = Job { owner: Owner::SERVICE, ..command_job(11) };
    let image =
        CachedImage { conversion: Some(Conversion::begun(job.id, path(), NOW)), ..image(&side).await };
    let record = ImageRecord { image, conversion: Some(job) };
    side.store().record_images(&dgx(), &[record]).await.unwrap();
    side.store().give_up_conversions(&dgx(), &[id(11)], NOW).await.unwrap();
    assert_eq!(side.find(id(11)).await.unwrap().desired, DesiredState::Cancel);
}

pub(crate) async fn an_image_that_has_changed_since_it_was_read_is_not_stored(side: impl Side) {
    two_wait(&side).await;
    let stale = image(&side).await;
    let record = |number| {
        let job = Job { owner: Owner::SERVICE, ..command_job(number) };
        let conversion = Some(Conversion::begun(job.id, path(), NOW));
        ImageRecord { image: CachedImage { conversion, ..stale.clone() }, conversion: Some(job) }
    };
    for (number, stored) in [(11, 1), (12, 0)] {
        let found = side.store().record_images(&dgx(), &[record(number)]).await.unwrap();
        assert_eq!((found.len(), side.find(id(number)).await.is_some()), (stored, stored == 1));
    }
}

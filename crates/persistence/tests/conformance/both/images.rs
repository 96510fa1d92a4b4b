//! Calls about the images in a cluster's cache.

use std::collections::BTreeSet;

use chrono::TimeDelta;
use domain::{CachedImage, Conversion, FileFault, Job, JobId, Owner, Phase, Timestamp};
use persistence::{ImageRecord, ImageRequest, Images as _, Wait};
use testkit::command_job;
use uuid::Uuid;

use super::{Both, dgx, ids, outcome};
use crate::sides::Side as _;

/// An image without its time of damage, which each store chooses.
fn face(image: &CachedImage) -> String {
    let damaged_at = image.damaged_at.map(|_| Timestamp::UNIX_EPOCH);
    format!("{:?}", CachedImage { damaged_at, ..image.clone() })
}

impl Both {
    /// An image that a job wants, as both stores know it.
    async fn wanted(&mut self) -> (ImageRequest, [CachedImage; 2]) {
        let (job, number) = (self.any_job(), self.dice.below(2));
        let request = ImageRequest {
            job,
            cache_path: format!("/lustre/cache/{number}.sqsh").parse().unwrap(),
            image: format!("nvcr.io/nvidia/tao:{number}").parse().unwrap(),
        };
        let (real, memory) = of_both!(self, request_images(&dgx(), std::slice::from_ref(&request)));
        let (real, memory) = (real.unwrap(), memory.unwrap());
        let told = |found: &[CachedImage]| found.iter().map(face).collect::<BTreeSet<_>>();
        self.same("request_images", (told(&real), told(&memory)));
        (request, [real[0].clone(), memory[0].clone()])
    }

    pub(super) async fn want_image(&mut self) {
        let (request, _) = self.wanted().await;
        if self.dice.chance(300) {
            let fault = if self.dice.chance(500) { FileFault::Damaged } else { FileFault::Missing };
            let done = of_both!(self, distrust_files(&dgx(), &[(&request.cache_path, fault)]));
            self.same("distrust_files", (outcome(&done.0), outcome(&done.1)));
        }
    }

    pub(super) async fn record_image(&mut self) {
        let (request, images) = self.wanted().await;
        let now = self.now;
        let begins = self.dice.chance(500);
        let job = begins.then(|| {
            let id = 100 + self.begun.len() as u128;
            let Job { cluster, spec, .. } = command_job(id);
            Job::accepted(JobId::new(Uuid::from_u128(id)), Owner::SERVICE, cluster, spec, now)
        });
        let (is_seen, is_late) = (self.dice.chance(500), self.dice.chance(200));
        let record = |image: &CachedImage| {
            let mut image = image.clone();
            image.version -= i64::from(is_late);
            image.failures += 1;
            (image.error, image.retry_at) = (Some("why".to_owned()), Some(now));
            image.conversion =
                job.as_ref().map(|job| Conversion::begun(job.id, request.cache_path.clone(), now));
            if is_seen {
                (image.file, image.file_seen_at) = (Some(request.cache_path.clone()), Some(now));
            }
            [ImageRecord { image, conversion: job.clone() }]
        };
        let [real, memory] = &images;
        let real = self.real.store().record_images(&dgx(), &record(real)).await.unwrap();
        let memory = self.memory.store().record_images(&dgx(), &record(memory)).await.unwrap();
        if !real.is_empty() {
            self.begun.extend(job.map(|job| job.id));
        }
        self.same("record_images", (real, memory));
    }

    pub(super) async fn await_conversion(&mut self) {
        let Some(conversion) = self.begun.last().copied() else { return };
        let until = self.now + TimeDelta::seconds(65);
        let mut waits = Vec::new();
        for job in ids() {
            let version = self.real.find(job).await.map_or(0, |job| job.version);
            waits.push(Wait { job, conversion, until, version });
        }
        let done = of_both!(self, await_conversions(&dgx(), &waits, self.now));
        self.same("await_conversions", (outcome(&done.0), outcome(&done.1)));
        let mut waiting = 0;
        for id in ids() {
            let job = self.real.find(id).await;
            waiting += usize::from(job.is_some_and(|job| job.phase == Phase::ConvertingImage));
        }
        if waiting > 1 {
            *self.happened.entry("jobs that wait for one conversion".to_owned()).or_default() += 1;
        }
    }
}

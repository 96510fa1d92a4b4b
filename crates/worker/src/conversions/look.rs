//! Checks files before and after a conversion, and cancels abandoned conversions.

use std::time::Duration;

use domain::{Abandoned, Conversion, ConversionFindings, conclude_conversion};
use persistence::{ConversionLease, WorkStore};
use remote::{Cancel, CheckImages, Conclude, Concluding, ImageFile, Markers, Superseded};
use slurm::RemotePath;

use super::{Due, warn_of};
use crate::{Result, cluster_runtime::Runtime, link::cluster_link::ClusterLink, worker::Worker};

/// Slurm gives a job its `KillWait` (30 s by default) to end. An earlier repetition would be useless.
const CANCEL_AGAIN: Duration = Duration::from_secs(45);
/// After a cancellation that failed.
const TRY_AGAIN: Duration = Duration::from_secs(5);
/// Enough for the last lines of enroot.
const TAIL_BYTES: usize = 8 * 1024;

impl<L: ClusterLink, S: WorkStore> Worker<L, S> {
    pub(super) async fn check_images(
        &self,
        runtime: &Runtime<L>,
        lease: &ConversionLease,
        due: Vec<Due>,
    ) -> Result {
        let superseded = due.iter().enumerate().flat_map(|(by, (one, demand))| {
            let known_at = one.damaged_at.unwrap_or_default().timestamp();
            let file = move |path: &RemotePath| Superseded { by, known_at, path: path.clone() };
            one.superseded(demand).iter().map(file)
        });
        let command = CheckImages {
            paths: due.iter().map(|(one, _)| one.place().clone()).collect(),
            superseded: superseded.collect(),
        };
        let found = match runtime.target.link.call(&command).await {
            Ok(found) => found,
            Err(error) => {
                return self
                    .store_unanswered(
                        runtime,
                        lease,
                        due,
                        &error,
                        "the path of the image could not be checked",
                    )
                    .await;
            }
        };
        let (now, base_dir) = (self.clock.now(), &runtime.target.cluster.base_dir);
        let step = |((conversion, demand), found): (&Due, ImageFile)| {
            conversion.checked(found, demand, base_dir, now)
        };
        let moved = due.iter().zip(found).map(step).collect();
        self.store_moved(runtime, lease, moved).await
    }

    pub(super) async fn cancel_conversions(
        &self,
        runtime: &Runtime<L>,
        lease: &ConversionLease,
        conversions: Vec<(Conversion, Abandoned)>,
    ) -> Result {
        // By id, never by name alone: another service may have a job of that name.
        let known = |(one, _): &(Conversion, Abandoned)| {
            one.run.as_ref().and_then(|run| Some((run.slurm_id?, run.key(one.id))))
        };
        let command = Cancel { jobs: conversions.iter().filter_map(known).collect(), ..Cancel::default() };
        let again_in = match runtime.target.link.call(&command).await {
            Ok(answer) if answer.refused.is_none() => CANCEL_AGAIN,
            Ok(_) => TRY_AGAIN,
            Err(error) => {
                warn_of(conversions.iter().map(|(one, _)| one), &error, "the cancellation failed");
                TRY_AGAIN
            }
        };
        for (one, why) in &conversions {
            tracing::info!(image = %one.image, %why, "a conversion is canceled");
        }
        let abandoned: Vec<_> = conversions.iter().map(|(one, why)| (one.id, Some(*why))).collect();
        self.store.put_off_conversions(lease, &abandoned, Some(again_in)).await?;
        self.poll_soon(runtime).await
    }

    pub(super) async fn conclude_conversions(
        &self,
        runtime: &Runtime<L>,
        lease: &ConversionLease,
        due: Vec<Due>,
    ) -> Result {
        let runs = || due.iter().filter_map(|(one, _)| one.run.as_ref());
        let command = Conclude {
            jobs: due.iter().filter_map(|(one, _)| concluding(one)).collect(),
            tail_bytes: TAIL_BYTES,
            status_bytes_total: 0,
        };
        let check =
            CheckImages { paths: runs().map(|run| run.target.clone()).collect(), superseded: Vec::new() };
        let link = &runtime.target.link;
        let answers = match link.call(&command).await {
            Ok(concluded) => link.call(&check).await.map(|files| (concluded, files)),
            Err(error) => Err(error),
        };
        let (concluded, files) = match answers {
            Ok(answers) => answers,
            Err(error) => {
                let what = "the result of a conversion could not be checked";
                return self.store_unanswered(runtime, lease, due, &error, what).await;
            }
        };
        let now = self.clock.now();
        let step = |(one, demand): &Due| {
            let run = one.run.as_ref();
            let place = run.and_then(|run| check.paths.iter().position(|path| *path == run.target));
            let said = run.and_then(|run| concluded.iter().find(|said| said.key == run.token.as_str()));
            let nothing = Markers::default();
            let found = ConversionFindings {
                markers: said.map_or(&nothing, |said| &said.markers),
                err_tail: said.map_or(&[], |said| &said.err_tail),
                file: place.and_then(|place| files.get(place)).copied().unwrap_or(ImageFile::Unread),
            };
            conclude_conversion(one, &found, demand, &runtime.target.cluster, &self.settings.graces, now)
        };
        let moved = due.iter().map(step).collect();
        self.store_moved(runtime, lease, moved).await
    }
}

fn concluding(conversion: &Conversion) -> Option<Concluding> {
    let run = conversion.run.as_ref()?;
    Some(Concluding {
        is_bare: false,
        role_logs: None,
        key: run.key(conversion.id),
        id: run.slurm_id,
        state_dir: run.state_dir.clone(),
        // Its logs are in the state directory, which is always searched.
        logs: Vec::new(),
        results_dir: None,
        status: Vec::new(),
        status_backlog: 0,
        results: Vec::new(),
        remove: Vec::new(),
    })
}

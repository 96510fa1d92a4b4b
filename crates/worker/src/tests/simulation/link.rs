//! The way to the cluster: commands may not arrive, arrive twice, or bring no answer while they go on.

use std::{collections::HashMap, future::Future, time::Duration};

use remote::{
    Cancel, Canceled, CheckImages, Checkpoints, Conclude, Concluded, EarlierRun, Exclude, Excluded,
    ImageFile, Locate, LocateAnswer, NodeHealth, NodeHealthAnswer, Partitions, PartitionsAnswer, Poll,
    PollAnswer, Purge, Purged, RawOutput, RemoteCommand, Remove, Removed, Requeued, SubmitAnswer,
    SubmitBatch,
};
use slurm::{RemotePath, SlurmJobId};
use tokio::{
    sync::oneshot,
    time::{sleep, timeout},
};

use super::programs::{FarSide, far_off};
use crate::{ClusterLink, LinkError};

/// The way of one worker.
#[derive(Debug, Clone)]
pub(super) struct LossyLink(pub(super) FarSide);

/// Longer than any program takes.
const DEADLINE: Duration = Duration::from_secs(270);

impl LossyLink {
    /// Sends a program to the far side, where it goes on whatever becomes of us; none as its answer is its death.
    async fn send<T: Send + 'static>(
        &self,
        deadline: Duration,
        program: impl Future<Output = Option<T>> + Send + 'static,
    ) -> Result<T, LinkError> {
        let world = &self.0.world;
        if world.is_unreachable() || world.strikes(world.temper.unreachable) {
            sleep(world.millis(1, 50)).await;
            return Err(LinkError::NotSent { why: "no route to host".to_owned() });
        }
        let way = if world.strikes(20) { world.millis(10, 20_000) } else { world.millis(0, 10) };
        if !way.is_zero() {
            sleep(way).await;
        }
        let (tell, told) = oneshot::channel();
        far_off(async move {
            if let Some(answer) = program.await {
                let _ = tell.send(answer);
            }
        });
        let lost = || LinkError::Lost { why: "no trailer".to_owned() };
        if world.strikes(world.temper.reply_lost) {
            world.note(|| "a reply is lost".to_owned());
            sleep(world.millis(0, 30_000)).await;
            return Err(lost());
        }
        let Ok(Ok(answer)) = timeout(deadline, told).await else { return Err(lost()) };
        if world.strikes(world.temper.slow) {
            sleep(world.millis(5000, 60_000)).await;
        }
        Ok(answer)
    }

    /// A command that has its effect at one moment; sometimes twice, as one that was sent again.
    async fn once<T: Send + 'static>(
        &self,
        act: impl Fn(&FarSide) -> T + Send + 'static,
    ) -> Result<T, LinkError> {
        let far = self.0.clone();
        self.send(DEADLINE, async move {
            let again = far.world.strikes(20);
            let answer = act(&far);
            if again {
                sleep(far.world.millis(0, 5000)).await;
                return Some(act(&far));
            }
            Some(answer)
        })
        .await
    }
}

impl ClusterLink for LossyLink {
    async fn submit(&self, command: &SubmitBatch) -> Result<Vec<SubmitAnswer>, LinkError> {
        self.send(SubmitBatch::DEADLINE, self.0.clone().submit(command.clone())).await
    }

    async fn locate(&self, command: &Locate) -> Result<LocateAnswer, LinkError> {
        let (far, command) = (self.0.clone(), command.clone());
        self.send(DEADLINE, async move { Some(far.locate(command).await) }).await
    }

    async fn poll(&self, command: &Poll) -> Result<PollAnswer, LinkError> {
        let (far, command) = (self.0.clone(), command.clone());
        self.send(DEADLINE, async move { Some(far.poll(command).await) }).await
    }

    async fn conclude(&self, command: &Conclude) -> Result<Vec<Concluded>, LinkError> {
        let command = command.clone();
        self.once(move |far| far.cluster.conclude(&command)).await
    }

    async fn cancel(&self, command: &Cancel) -> Result<Canceled, LinkError> {
        let command = command.clone();
        self.once(move |far| far.cluster.cancel(&command)).await
    }

    async fn check_images(&self, command: &CheckImages) -> Result<Vec<ImageFile>, LinkError> {
        let command = command.clone();
        self.once(move |far| far.cluster.images(&command.paths)).await
    }

    async fn remove(&self, command: &Remove) -> Result<Removed, LinkError> {
        let command = command.clone();
        self.once(move |far| far.cluster.remove(&command)).await
    }

    async fn purge(&self, command: &Purge) -> Result<Purged, LinkError> {
        let command = command.clone();
        self.once(move |far| far.cluster.purge(&command)).await
    }

    async fn node_health(&self, _: &NodeHealth) -> Result<NodeHealthAnswer, LinkError> {
        self.once(|_| NodeHealthAnswer { sick: Some(std::collections::BTreeMap::new()) }).await
    }

    async fn requeued(&self, command: &Requeued) -> Result<HashMap<SlurmJobId, EarlierRun>, LinkError> {
        let command = command.clone();
        let runs = self.once(move |far| far.cluster.requeued(&command)).await?;
        runs.ok_or_else(|| LinkError::NotSent { why: "sacct does not answer".to_owned() })
    }

    async fn partitions(&self, command: &Partitions) -> Result<PartitionsAnswer, LinkError> {
        let command = *command;
        self.once(move |_| {
            let stdout = b"ENFORCE ALL\nROW polar*|up|4:00:00|n/a|4|idle|64|512000|gpu:8\nEND 2\n".to_vec();
            command.parse(&RawOutput { stdout, ..RawOutput::default() })
        })
        .await?
        .map_err(|error| LinkError::from_answer(&error))
    }

    async fn checkpoints(&self, command: &Checkpoints) -> Result<Vec<Option<RemotePath>>, LinkError> {
        let count = command.results.len();
        self.once(move |_| vec![None; count]).await
    }

    async fn exclude(&self, command: &Exclude) -> Result<Excluded, LinkError> {
        let count = command.jobs.len();
        self.once(move |_| Excluded { failed: vec![None; count] }).await
    }
}

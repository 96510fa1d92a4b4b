//! The way to the cluster: commands may not arrive, arrive twice, or bring no answer while they go on.

use std::{future::Future, time::Duration};

use remote::{RemoteCommand, SubmitBatch};
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
            return Err(no_route());
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
}

fn no_route() -> LinkError {
    LinkError::NotSent { why: "no route to host".to_owned() }
}

impl ClusterLink for LossyLink {
    async fn call<C: RemoteCommand>(&self, command: &C) -> Result<C::Output, LinkError> {
        let deadline = if C::NAME == SubmitBatch::NAME { SubmitBatch::DEADLINE } else { DEADLINE };
        self.send(deadline, self.0.clone().answer(command.clone())).await?
    }

    fn out_of_reach(&self) -> Option<LinkError> {
        let world = &self.0.world;
        // The hosts may be tried again before they answer.
        (world.is_unreachable() && world.strikes(500)).then(no_route)
    }
}

//! The loop: take turns, post, record.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use domain::{Clock, Ids, Networks, retry_after, webhook_wait};
use persistence::{DeliveryResult, DeliveryTerms, Store, StoreError, WebhookLease};
use tokio::task::{JoinError, JoinSet};
use tokio_util::sync::CancellationToken;
use ureq::Agent;

use crate::{
    authorities::Authorities,
    post::{Failure, Message, agent, post},
    signature::signature,
};

/// How the service delivers.
#[derive(Debug, Clone)]
pub struct DeliverySettings {
    /// What may be called beside public addresses.
    pub networks: Networks,
    /// Who may vouch for a receiver's certificate.
    pub authorities: Authorities,
    /// How long a receiver may take for its answer.
    pub timeout: Duration,
    /// After so many attempts a message is given up.
    pub attempts: u32,
}

/// So many messages are under way at a time, each to another job's receiver.
const AT_A_TIME: usize = 64;
/// So many of one owner's, through all processes: receivers that hang hold up those of their owner only.
const OF_ONE_OWNER: u32 = 32;
/// How often the database is asked whose turn it is, when nothing is under way that would end sooner.
const LOOK: Duration = Duration::from_secs(1);
/// Turns that end within so long are replaced by one question.
const TOGETHER: Duration = Duration::from_millis(10);
/// What a turn lasts beside the receiver's time: half of it for beginning, half for recording.
const BESIDE: Duration = Duration::from_secs(10);
/// So much of a reason is kept.
const LONGEST_REASON: usize = 500;

/// Delivers the messages of all jobs, beside others that do the same.
pub struct Deliverer {
    store: Store,
    settings: DeliverySettings,
    agent: Agent,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn Ids>,
}

impl std::fmt::Debug for Deliverer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Deliverer").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl Deliverer {
    pub fn new(store: Store, settings: DeliverySettings, clock: Arc<dyn Clock>, ids: Arc<dyn Ids>) -> Self {
        // Shown before the first delivery: what does not exist cannot be seen to rise.
        for outcome in ["delivered", "failed", "dead"] {
            metrics::counter!("webhook_deliveries_total", "outcome" => outcome).increment(0);
        }
        let _ = metrics::histogram!("webhook_delivery_duration_seconds");
        let agent = agent(settings.networks.clone(), &settings.authorities, settings.timeout);
        Self { store, settings, agent, clock, ids }
    }

    /// Delivers until `stop`; what is under way then is finished first.
    pub async fn run(self: Arc<Self>, stop: CancellationToken) {
        let mut under_way = JoinSet::new();
        while !stop.is_cancelled() {
            let asked = Instant::now();
            for turn in self.turns(AT_A_TIME.saturating_sub(under_way.len())).await {
                under_way.spawn(Arc::clone(&self).deliver(turn, asked));
            }
            tokio::select! {
                () = stop.cancelled() => {}
                Some(ended) = under_way.join_next() => {
                    log_panic(ended);
                    tokio::time::sleep(TOGETHER).await;
                    while let Some(ended) = under_way.try_join_next() {
                        log_panic(ended);
                    }
                }
                () = tokio::time::sleep(LOOK) => {}
            }
        }
        while let Some(ended) = under_way.join_next().await {
            log_panic(ended);
        }
    }

    async fn turns(&self, most: usize) -> Vec<WebhookLease> {
        let most = u32::try_from(most).unwrap_or(u32::MAX);
        if most == 0 {
            return Vec::new();
        }
        let duration = self.settings.timeout + BESIDE;
        let terms = DeliveryTerms { duration, limit: most, limit_per_owner: OF_ONE_OWNER };
        self.store.lease_webhooks(self.ids.lease(), terms).await.unwrap_or_else(|error| {
            tracing::warn!(%error, "cannot look for webhooks that are due");
            Vec::new()
        })
    }

    async fn deliver(self: Arc<Self>, turn: WebhookLease, asked: Instant) {
        let began = Instant::now();
        if is_late(asked, began) {
            tracing::warn!(job.id = %turn.job, "the turn to deliver a webhook came too late; leaving it to the next");
            return;
        }
        let result = self.attempt(&turn).await;
        let outcome = match &result {
            DeliveryResult::Delivered { .. } => "delivered",
            DeliveryResult::Failed { retry_in: Some(_), .. } => "failed",
            DeliveryResult::Failed { retry_in: None, .. } => "dead",
        };
        metrics::counter!("webhook_deliveries_total", "outcome" => outcome).increment(1);
        metrics::histogram!("webhook_delivery_duration_seconds").record(began.elapsed().as_secs_f64());
        if let DeliveryResult::Failed { error, retry_in, .. } = &result {
            tracing::warn!(
                job.id = %turn.job, event.seq = turn.seq, attempt = turn.attempts + 1, error,
                given_up = retry_in.is_none(), "a webhook was not delivered"
            );
        }
        match self.store.record_delivery(&turn, &result).await {
            Ok(true) => {}
            Ok(false) => {
                tracing::warn!(job.id = %turn.job, "a webhook was delivered by somebody else meanwhile, or its job is deleted");
            }
            // The lease ends, and it is delivered again.
            Err(error) => log_unrecorded(&turn, &error),
        }
    }

    async fn attempt(&self, turn: &WebhookLease) -> DeliveryResult {
        // The same each time, so that a receiver can tell what it has had already. No dot: what is signed is parted by them.
        let id = format!("{}_{}", turn.job, turn.seq);
        let timestamp = self.clock.now().timestamp();
        let failed = |failure: Failure| {
            let jitter = rand::random::<f64>();
            let asked = failure.retry_after.and_then(|text| retry_after(&text, self.clock.now()));
            let retry_in = webhook_wait(turn.attempts + 1, self.settings.attempts, jitter, asked)
                .filter(|_| failure.again);
            DeliveryResult::Failed {
                response_status: failure.status,
                error: failure.error.chars().filter(|c| !c.is_control()).take(LONGEST_REASON).collect(),
                retry_in: retry_in.map(|wait| wait.to_std().unwrap_or_default()),
            }
        };
        let Some(signature) = signature(turn.webhook.key_bytes(), &id, timestamp, &turn.body) else {
            let error = "it cannot be signed".to_owned();
            return failed(Failure { status: None, error, again: false, retry_after: None });
        };
        let message =
            Message { url: turn.webhook.url.clone(), id, timestamp, signature, body: turn.body.clone() };
        let agent = self.agent.clone();
        match tokio::task::spawn_blocking(move || post(&agent, &message)).await {
            Ok(Ok(response_status)) => DeliveryResult::Delivered { response_status },
            Ok(Err(failure)) => failed(failure),
            Err(error) => {
                let error = error.to_string();
                failed(Failure { status: None, error, again: true, retry_after: None })
            }
        }
    }
}

/// Whether a turn that was asked for then is better not begun now: a process that was stopped for a while would deliver
/// beside the one that stands in for it.
fn is_late(asked: Instant, now: Instant) -> bool {
    now - asked > BESIDE / 2
}

/// It costs itself: its lease ends, and it is delivered again.
fn log_panic(ended: Result<(), JoinError>) {
    if let Err(error) = ended {
        tracing::error!(%error, "the delivery of a webhook panicked");
    }
}

fn log_unrecorded(turn: &WebhookLease, error: &StoreError) {
    tracing::warn!(job.id = %turn.job, %error, "cannot record what became of a webhook; it will be sent again");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_that_is_begun_leaves_the_receiver_its_time_and_the_record_its_own() {
        let asked = Instant::now();
        assert!(!is_late(asked, asked + Duration::from_secs(5)));
        assert!(is_late(asked, asked + Duration::from_secs(6)));
    }
}

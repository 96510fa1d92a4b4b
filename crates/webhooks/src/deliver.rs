//! The delivery loop: lease messages, post them, record the result.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use domain::{Clock, Ids, Networks, retry_after, webhook_wait};
use persistence::{DeliveryResult, DeliveryTerms, Store, WebhookLease};
use tokio::task::{JoinError, JoinSet};
use tokio_util::sync::CancellationToken;
use ureq::Agent;

use crate::{
    authorities::Authorities,
    post::{Failure, agent, post},
    signature::signature,
};

/// How the service delivers.
#[derive(Debug, Clone)]
pub struct DeliverySettings {
    /// The networks that may be called besides public addresses.
    pub networks: Networks,
    /// The authorities that may sign a receiver's certificate.
    pub authorities: Authorities,
    /// How long a receiver may take to answer.
    pub timeout: Duration,
    /// The number of attempts before a message is given up.
    pub attempts: u32,
}

/// The most messages in flight at a time, each of another job.
const MAX_IN_FLIGHT: usize = 64;
/// The most messages of one owner in flight, over all processes: receivers that hang delay only their owner's messages.
const MAX_PER_OWNER: u32 = 32;
/// How often the database is asked for due messages, unless a delivery ends sooner.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Deliveries that end within this time are replaced with one query.
const BATCH_DELAY: Duration = Duration::from_millis(10);
/// How much longer a lease lasts than the receiver's timeout: half of it to start the delivery, half to record the result.
const LEASE_MARGIN: Duration = Duration::from_secs(10);
/// The most characters of an error that are stored.
const MAX_ERROR_CHARS: usize = 500;

/// Delivers the messages of all jobs. Several processes may each run one.
#[derive(Debug)]
pub struct Deliverer {
    store: Store,
    settings: DeliverySettings,
    agent: Agent,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn Ids>,
}

impl Deliverer {
    pub fn new(store: Store, settings: DeliverySettings, clock: Arc<dyn Clock>, ids: Arc<dyn Ids>) -> Self {
        // The metrics exist from the start, so that their first increase is visible.
        for outcome in ["delivered", "failed", "dead"] {
            metrics::counter!("tao_slurm_webhook_deliveries_total", "outcome" => outcome).increment(0);
        }
        let _ = metrics::histogram!("tao_slurm_webhook_delivery_duration_seconds");
        let agent = agent(settings.networks.clone(), &settings.authorities, settings.timeout);
        Self { store, settings, agent, clock, ids }
    }

    /// Delivers until `stop`, then finishes the deliveries in flight.
    pub async fn run(self: Arc<Self>, stop: CancellationToken) {
        let mut in_flight = JoinSet::new();
        while !stop.is_cancelled() {
            let leased_at = Instant::now();
            for turn in self.turns(MAX_IN_FLIGHT.saturating_sub(in_flight.len())).await {
                in_flight.spawn(Arc::clone(&self).deliver(turn, leased_at));
            }
            tokio::select! {
                () = stop.cancelled() => {}
                Some(ended) = in_flight.join_next() => {
                    log_panic(ended);
                    tokio::time::sleep(BATCH_DELAY).await;
                    while let Some(ended) = in_flight.try_join_next() {
                        log_panic(ended);
                    }
                }
                () = tokio::time::sleep(POLL_INTERVAL) => {}
            }
        }
        while let Some(ended) = in_flight.join_next().await {
            log_panic(ended);
        }
    }

    async fn turns(&self, limit: usize) -> Vec<WebhookLease> {
        let limit = u32::try_from(limit).unwrap_or(u32::MAX);
        if limit == 0 {
            return Vec::new();
        }
        let duration = self.settings.timeout + LEASE_MARGIN;
        let terms = DeliveryTerms { duration, limit, limit_per_owner: MAX_PER_OWNER };
        self.store.lease_webhooks(self.ids.lease(), terms).await.unwrap_or_else(|error| {
            tracing::warn!(%error, "cannot look for due webhooks");
            Vec::new()
        })
    }

    async fn deliver(self: Arc<Self>, turn: WebhookLease, leased_at: Instant) {
        let began = Instant::now();
        if is_late(leased_at, began) {
            tracing::warn!(job.id = %turn.job, "a webhook delivery started too late for its lease; it is retried later");
            return;
        }
        let result = self.attempt(&turn).await;
        let outcome = match &result {
            DeliveryResult::Delivered { .. } => "delivered",
            DeliveryResult::Failed { retry_in: Some(_), .. } => "failed",
            DeliveryResult::Failed { retry_in: None, .. } => "dead",
        };
        metrics::counter!("tao_slurm_webhook_deliveries_total", "outcome" => outcome).increment(1);
        metrics::histogram!("tao_slurm_webhook_delivery_duration_seconds")
            .record(began.elapsed().as_secs_f64());
        if let DeliveryResult::Failed { error, retry_in, .. } = &result {
            tracing::warn!(
                job.id = %turn.job, event.seq = turn.seq, attempt = turn.attempts + 1, error,
                given_up = retry_in.is_none(), "a webhook was not delivered"
            );
        }
        // An unrecorded message is delivered again when its lease ends.
        match self.store.record_delivery(&turn, &result).await {
            Ok(true) => {}
            Ok(false) => {
                tracing::warn!(job.id = %turn.job, "another process delivered the webhook in the meantime, or its job was deleted");
            }
            Err(error) => {
                tracing::warn!(job.id = %turn.job, %error, "cannot record the result of a webhook; it will be sent again");
            }
        }
    }

    async fn attempt(&self, turn: &WebhookLease) -> DeliveryResult {
        match self.deliver_once(turn).await {
            Ok(response_status) => DeliveryResult::Delivered { response_status },
            Err(failure) => {
                let retry_after = failure.retry_after.and_then(|text| retry_after(&text, self.clock.now()));
                let wait = webhook_wait(
                    turn.attempts + 1,
                    self.settings.attempts,
                    rand::random::<f64>(),
                    retry_after,
                );
                DeliveryResult::Failed {
                    response_status: failure.status,
                    error: failure.error.chars().filter(|c| !c.is_control()).take(MAX_ERROR_CHARS).collect(),
                    retry_in: wait
                        .filter(|_| failure.retryable)
                        .map(|wait| wait.to_std().unwrap_or_default()),
                }
            }
        }
    }

    async fn deliver_once(&self, turn: &WebhookLease) -> Result<u16, Failure> {
        // The same id at each attempt, so that a receiver detects duplicates. Without a dot, which separates the signed parts.
        let id = format!("{}_{}", turn.job, turn.seq);
        let timestamp = self.clock.now().timestamp();
        let signature = signature(turn.webhook.key_bytes(), &id, timestamp, &turn.body)
            .ok_or_else(|| Failure::without_answer("the message cannot be signed".to_owned(), false))?;
        let request = self
            .agent
            .post(&turn.webhook.url)
            .header("content-type", "application/json")
            .header("webhook-id", id)
            .header("webhook-timestamp", timestamp.to_string())
            .header("webhook-signature", signature);
        let body = turn.body.clone();
        let posted = tokio::task::spawn_blocking(move || post(request, &body)).await;
        posted.unwrap_or_else(|error| Err(Failure::without_answer(error.to_string(), true)))
    }
}

/// Whether a delivery must not start any more: after this process was suspended, another process may have the lease.
fn is_late(leased_at: Instant, now: Instant) -> bool {
    now - leased_at > LEASE_MARGIN / 2
}

/// A panic affects one message: its lease ends, and it is delivered again.
fn log_panic(ended: Result<(), JoinError>) {
    if let Err(error) = ended {
        tracing::error!(%error, "a webhook delivery panicked");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delivery_starts_only_if_its_lease_leaves_time_for_the_receiver_and_the_record() {
        let leased_at = Instant::now();
        assert!(!is_late(leased_at, leased_at + Duration::from_secs(5)));
        assert!(is_late(leased_at, leased_at + Duration::from_secs(6)));
    }
}

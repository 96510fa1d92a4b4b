//! What a job's webhook was told, as it is shown.

// The macro of `ToSchema` knows a moment by this name only.
use chrono::{DateTime, Utc};
use domain::JobId;
use persistence::{DeadLetter, WebhookDelivery, WebhookHistory};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

/// A job's webhook, and the newest 200 messages to it.
#[derive(Debug, Serialize, ToSchema)]
pub struct WebhookView {
    /// Whose it is.
    pub job_id: JobId,
    /// Where the messages go.
    pub url: String,
    /// Messages that wait for their turn.
    pub pending: u64,
    /// Messages that were given up.
    pub dead: u64,
    /// When the next attempt is due; null when none is.
    pub next_attempt_at: Option<DateTime<Utc>>,
    /// Newest first.
    pub deliveries: Vec<WebhookDeliveryView>,
}

/// A message to a webhook.
#[derive(Debug, Serialize, ToSchema)]
pub struct WebhookDeliveryView {
    /// Its `webhook-id`, the same with each attempt.
    pub id: String,
    /// The number of the event that it tells of.
    pub seq: u64,
    /// `pending`, `delivered` or `dead`: given up.
    #[schema(example = "delivered")]
    pub state: String,
    /// How often it was tried.
    pub attempts: u32,
    /// When the status changed.
    pub created_at: DateTime<Utc>,
    /// When it was last tried.
    pub tried_at: Option<DateTime<Utc>>,
    /// When the receiver took it.
    pub delivered_at: Option<DateTime<Utc>>,
    /// What the receiver answered to the last attempt; null when it did not.
    pub response_status: Option<u16>,
    /// Why the last attempt failed; null when it did not.
    pub error: Option<String>,
    /// What is sent.
    #[schema(value_type = Object)]
    pub body: Value,
}

/// Messages that were given up, newest first.
#[derive(Debug, Serialize, ToSchema)]
pub struct DeadLetterListView {
    /// Those of this page.
    pub dead_letters: Vec<DeadLetterView>,
    /// Give this as `before` to get the next page; null on the last one.
    pub next_before: Option<u64>,
}

/// A message that was given up.
#[derive(Debug, Serialize, ToSchema)]
pub struct DeadLetterView {
    /// Whose status it tells of.
    pub job_id: JobId,
    /// The message, and why it was given up.
    pub delivery: WebhookDeliveryView,
}

impl From<DeadLetter> for DeadLetterView {
    fn from(letter: DeadLetter) -> Self {
        Self { job_id: letter.job, delivery: WebhookDeliveryView::new(letter.job, letter.delivery) }
    }
}

impl WebhookView {
    pub(crate) fn new(job_id: JobId, history: WebhookHistory) -> Self {
        let WebhookHistory { url, due_at, pending, dead, deliveries } = history;
        let deliveries =
            deliveries.into_iter().map(|delivery| WebhookDeliveryView::new(job_id, delivery)).collect();
        Self { job_id, url, pending, dead, next_attempt_at: due_at, deliveries }
    }
}

impl WebhookDeliveryView {
    fn new(job: JobId, delivery: WebhookDelivery) -> Self {
        Self {
            id: format!("{job}_{}", delivery.seq),
            seq: delivery.seq,
            state: delivery.state,
            attempts: delivery.attempts,
            created_at: delivery.created_at,
            tried_at: delivery.tried_at,
            delivered_at: delivery.delivered_at,
            response_status: delivery.response_status,
            error: delivery.error,
            body: serde_json::from_str(&delivery.body).unwrap_or_default(),
        }
    }
}

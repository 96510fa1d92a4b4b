//! Webhook deliveries.

// `ToSchema` recognizes this type by its name only.
use chrono::{DateTime, Utc};
use domain::JobId;
use persistence::{DeadLetter, WebhookDelivery, WebhookHistory};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

/// A job's webhook and its newest 200 messages.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct WebhookView {
    /// The job's id.
    pub job_id: JobId,
    /// The receiver's URL.
    pub url: String,
    /// The number of messages to be sent.
    pub pending: u64,
    /// The number of messages that were given up.
    pub dead: u64,
    /// When the next attempt is due; null if none is.
    pub next_attempt_at: Option<DateTime<Utc>>,
    /// The messages, newest first.
    pub deliveries: Vec<WebhookDeliveryView>,
}

/// A message to a webhook.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct WebhookDeliveryView {
    /// The `webhook-id`, the same in each attempt.
    pub id: String,
    /// The number of the event that the message reports.
    pub seq: u64,
    /// `pending`, `delivered` or `dead` (given up).
    #[schema(example = "delivered")]
    pub state: String,
    /// The number of attempts.
    pub attempts: u32,
    /// When the job's status changed.
    pub created_at: DateTime<Utc>,
    /// When the last attempt was made.
    pub last_attempt_at: Option<DateTime<Utc>>,
    /// When the receiver accepted the message.
    pub delivered_at: Option<DateTime<Utc>>,
    /// The HTTP status of the receiver's last answer; null without an answer.
    pub response_status: Option<u16>,
    /// Why the last attempt failed; null if it did not.
    pub error: Option<String>,
    /// The message body.
    #[schema(value_type = Object)]
    pub body: Value,
}

/// Messages that were given up, newest first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DeadLetterListView {
    /// The messages of this page.
    pub dead_letters: Vec<DeadLetterView>,
    /// The value of `before` for the next page; null on the last one.
    pub next_before: Option<u64>,
}

/// A message that was given up.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DeadLetterView {
    /// The job's id.
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
            last_attempt_at: delivery.tried_at,
            delivered_at: delivery.delivered_at,
            response_status: delivery.response_status,
            error: delivery.error,
            body: serde_json::from_str(&delivery.body).unwrap_or_default(),
        }
    }
}

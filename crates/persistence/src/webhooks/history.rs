//! The messages of webhooks, as the owners of the jobs see them, and redelivery.

use domain::{JobId, Timestamp};

use super::WebhookSeal;
use crate::{
    error::Result,
    jobs::queries::Viewer,
    store::Store,
    values::{StoredRow, count, signed},
};

/// A message and its delivery.
#[derive(Debug, Clone)]
pub struct WebhookDelivery {
    pub seq: u64,
    pub state: String,
    pub body: String,
    pub attempts: u32,
    pub created_at: Timestamp,
    pub tried_at: Option<Timestamp>,
    pub delivered_at: Option<Timestamp>,
    pub response_status: Option<u16>,
    pub error: Option<String>,
}

/// The newest messages of a job, and how many there are.
#[derive(Debug, Clone)]
pub struct WebhookHistory {
    pub url: String,
    pub due_at: Option<Timestamp>,
    pub pending: u64,
    pub dead: u64,
    /// Newest first.
    pub deliveries: Vec<WebhookDelivery>,
}

/// A message that could not be delivered.
#[derive(Debug, Clone)]
pub struct DeadLetter {
    /// Its place among the messages of all jobs.
    pub id: u64,
    pub job: JobId,
    pub delivery: WebhookDelivery,
}

/// How many messages of a job a history contains.
const SHOWN: i64 = 200;

/// A macro, because each checked query has its own row type.
macro_rules! delivery {
    ($row:ident, $stored:expr) => {
        WebhookDelivery {
            seq: $stored.number("seq", $row.seq)?,
            state: $row.state,
            body: $row.body,
            attempts: $stored.number("attempts", $row.attempts)?,
            created_at: $row.created_at,
            tried_at: $row.tried_at,
            delivered_at: $row.delivered_at,
            response_status: $row
                .response_status
                .map(|status| $stored.number("response_status", status))
                .transpose()?,
            error: $row.error,
        }
    };
}

impl Store {
    /// The messages of a job's webhook; `None` when it has no webhook.
    pub async fn webhook_history(&self, job: JobId) -> Result<Option<WebhookHistory>> {
        let Some(webhook) = sqlx::query!(
            r#"-- webhooks::history::webhook_history
               select w.url, w.due_at,
                      (select count(*) from webhook_deliveries d where d.job_id = w.job_id and d.state = 'pending') as "pending!",
                      (select count(*) from webhook_deliveries d where d.job_id = w.job_id and d.state = 'dead') as "dead!"
               from webhooks w where w.job_id = $1"#,
            job.get(),
        )
        .fetch_optional(&self.pool)
        .await?
        else {
            return Ok(None);
        };
        let url = WebhookSeal::job(&self.sealer, job.get())
            .open_url(&webhook.url)
            .ok_or_else(|| StoredRow::of("webhooks", &job).corrupt("url"))?;
        let rows = sqlx::query!(
            "-- webhooks::history::webhook_history deliveries
             select seq, state, body, attempts, created_at, tried_at, delivered_at, response_status, error
             from webhook_deliveries where job_id = $1 order by seq desc limit $2",
            job.get(),
            SHOWN,
        )
        .fetch_all(&self.pool)
        .await?;
        let stored = StoredRow::of("webhook_deliveries", &job);
        let deliveries = rows.into_iter().map(|row| Ok(delivery!(row, stored)));
        Ok(Some(WebhookHistory {
            url,
            due_at: webhook.due_at,
            pending: count(webhook.pending),
            dead: count(webhook.dead),
            deliveries: deliveries.collect::<Result<_>>()?,
        }))
    }

    /// Undeliverable messages of all jobs, newest first, before the place `before`.
    pub async fn dead_letters(
        &self,
        viewer: &Viewer,
        before: Option<u64>,
        limit: u32,
    ) -> Result<Vec<DeadLetter>> {
        let rows = sqlx::query!(
            "-- webhooks::history::dead_letters
             select d.id, d.job_id, d.seq, d.state, d.body, d.attempts, d.created_at, d.tried_at, d.delivered_at,
                    d.response_status, d.error
             from webhook_deliveries d join jobs j on j.id = d.job_id
             where d.state = 'dead' and j.desired_state <> 'delete' and ($1::text is null or j.owner = $1)
               and ($2::bigint is null or d.id < $2)
             order by d.id desc limit $3",
            viewer.owner(),
            before.map(signed),
            i64::from(limit),
        )
        .fetch_all(&self.pool)
        .await?;
        rows.into_iter()
            .map(|row| {
                let stored = StoredRow::of("webhook_deliveries", &row.job_id);
                let (id, job) = (stored.number("id", row.id)?, JobId::new(row.job_id));
                Ok(DeadLetter { id, job, delivery: delivery!(row, stored) })
            })
            .collect()
    }

    /// Redelivers one message, in whatever state it is, or all undeliverable ones. Returns how many; `None` when the job has no
    /// webhook.
    pub async fn redeliver(&self, job: JobId, seq: Option<u64>) -> Result<Option<u64>> {
        let mut tx = self.begin().await?;
        // The job is locked first, as by its deletion: it is deleted before, or stays because its messages wait again.
        sqlx::query!(
            "-- webhooks::history::redeliver job
             select id from jobs where id = $1 for key share",
            job.get(),
        )
        .fetch_optional(&mut *tx)
        .await?;
        let found = sqlx::query!(
            "-- webhooks::history::redeliver lock
             select job_id from webhooks where job_id = $1 for no key update",
            job.get(),
        )
        .fetch_optional(&mut *tx)
        .await?;
        if found.is_none() {
            return Ok(None);
        }
        let redelivered = sqlx::query!(
            "-- webhooks::history::redeliver
             update webhook_deliveries
             set state = 'pending', attempts = 0, delivered_at = null
             where job_id = $1 and state <> 'pending'
               and case when $2::bigint is null then state = 'dead' else seq = $2 end",
            job.get(),
            seq.map(signed),
        )
        .execute(&mut *tx)
        .await?
        .rows_affected();
        sqlx::query!(
            "-- webhooks::history::redeliver wake
             update webhooks set due_at = now() where job_id = $1 and ($2 or due_at is not null)",
            job.get(),
            redelivered > 0,
        )
        .execute(&mut *tx)
        .await?;
        tx.commit().await?;
        Ok(Some(redelivered))
    }
}

//! What webhooks were told, as the owners of their jobs see it, and telling it again.

use domain::{JobId, Timestamp};

use super::{opened_url, signed, unsigned};
use crate::{error::StoreError, jobs::stored::Viewer, store::Store};

/// A message.
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

/// A message that was given up.
#[derive(Debug, Clone)]
pub struct DeadLetter {
    /// Its place among those of all jobs.
    pub id: u64,
    pub job: JobId,
    pub delivery: WebhookDelivery,
}

/// So many messages of a job are shown.
const SHOWN: i64 = 200;

/// The two queries read the same columns, and each has its own type for a row.
macro_rules! delivery {
    ($row:ident) => {
        WebhookDelivery {
            seq: unsigned($row.seq)?,
            state: $row.state,
            body: $row.body,
            attempts: unsigned($row.attempts)?,
            created_at: $row.created_at,
            tried_at: $row.tried_at,
            delivered_at: $row.delivered_at,
            response_status: $row.response_status.map(unsigned).transpose()?,
            error: $row.error,
        }
    };
}

impl Store {
    /// What a job's webhook was told; none when it has none.
    pub async fn webhook_history(&self, job: JobId) -> Result<Option<WebhookHistory>, StoreError> {
        let Some(webhook) = sqlx::query!(
            r#"-- webhooks::history
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
        let url = opened_url(&self.sealer, job.get(), &webhook.url).ok_or_else(|| StoreError::Corrupt {
            table: "webhooks",
            column: "url",
            row: job.to_string(),
        })?;
        let rows = sqlx::query!(
            "-- webhooks::history deliveries
             select seq, state, body, attempts, created_at, tried_at, delivered_at, response_status, error
             from webhook_deliveries where job_id = $1 order by seq desc limit $2",
            job.get(),
            SHOWN,
        )
        .fetch_all(&self.pool)
        .await?;
        let deliveries = rows.into_iter().map(|row| Ok(delivery!(row))).collect::<Result<_, StoreError>>()?;
        Ok(Some(WebhookHistory {
            url,
            due_at: webhook.due_at,
            pending: unsigned(webhook.pending)?,
            dead: unsigned(webhook.dead)?,
            deliveries,
        }))
    }

    /// Messages of all jobs that were given up, newest first, below the place `before`.
    pub async fn dead_letters(
        &self,
        viewer: &Viewer,
        before: Option<u64>,
        limit: u32,
    ) -> Result<Vec<DeadLetter>, StoreError> {
        let rows = sqlx::query!(
            "-- webhooks::dead_letters
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
                Ok(DeadLetter {
                    id: unsigned(row.id)?,
                    job: JobId::new(row.job_id),
                    delivery: delivery!(row),
                })
            })
            .collect()
    }

    /// Has messages delivered again: one, whatever became of it, or all that were given up. How many it were; none
    /// when the job has no webhook.
    pub async fn redeliver(&self, job: JobId, seq: Option<u64>) -> Result<Option<u64>, StoreError> {
        let mut tx = self.pool.begin().await?;
        // The job first, as whoever forgets it does: it stays until its messages wait again, or is gone before.
        sqlx::query!(
            "-- webhooks::redeliver job
             select id from jobs where id = $1 for key share",
            job.get(),
        )
        .fetch_optional(&mut *tx)
        .await?;
        let found = sqlx::query!(
            "-- webhooks::redeliver lock
             select job_id from webhooks where job_id = $1 for no key update",
            job.get(),
        )
        .fetch_optional(&mut *tx)
        .await?;
        if found.is_none() {
            return Ok(None);
        }
        let again = sqlx::query!(
            "-- webhooks::redeliver
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
            "-- webhooks::redeliver wake
             update webhooks set due_at = now() where job_id = $1 and ($2 or due_at is not null)",
            job.get(),
            again > 0,
        )
        .execute(&mut *tx)
        .await?;
        tx.commit().await?;
        Ok(Some(again))
    }
}

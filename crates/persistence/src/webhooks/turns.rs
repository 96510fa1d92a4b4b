//! The right to deliver messages, by lease, and the results.

use std::time::Duration;

use domain::{JobId, Webhook};
use uuid::Uuid;

use super::WebhookSeal;
use crate::{
    error::Result,
    store::Store,
    values::{StoredRow, millis, signed},
};

/// How long leases last and how many are taken at once.
#[derive(Debug, Clone, Copy)]
pub struct DeliveryTerms {
    pub duration: Duration,
    pub limit: u32,
    /// The limit for one owner, over all processes: receivers that hang hold up their own owner only.
    pub limit_per_owner: u32,
}

/// The right to deliver the oldest waiting message of a job.
#[derive(Debug)]
pub struct WebhookLease {
    pub job: JobId,
    /// The number of the event that the message is about.
    pub seq: u64,
    pub webhook: Webhook,
    /// The bytes to send.
    pub body: String,
    /// The number of earlier attempts.
    pub attempts: u32,
    token: Uuid,
}

/// The result of an attempt to deliver.
#[derive(Debug, Clone)]
pub enum DeliveryResult {
    Delivered {
        response_status: u16,
    },
    Failed {
        response_status: Option<u16>,
        error: String,
        /// `None`: the message is dead.
        retry_in: Option<Duration>,
    },
}

impl Store {
    /// Leases webhooks that are due, each with its oldest waiting message. `token` has to be new.
    pub async fn lease_webhooks(&self, token: Uuid, terms: DeliveryTerms) -> Result<Vec<WebhookLease>> {
        let mut tx = self.begin().await?;
        let leased = sqlx::query!(
            "-- webhooks::turns::lease_webhooks
             with busy as (
                 select owner, count(*) as turns from webhooks
                 where lease_token is not null and lease_expires_at > now() group by owner
             ), ranked as (
                 select w.job_id, w.due_at,
                        coalesce(b.turns, 0) + row_number() over (partition by w.owner order by w.due_at) as place
                 from webhooks w left join busy b on b.owner = w.owner
                 where w.due_at <= now() and (w.lease_expires_at is null or w.lease_expires_at <= now())
             ), due as (
                 select w.job_id from webhooks w
                 join (select r.job_id from ranked r where r.place <= $4 order by r.due_at limit $3) r
                     on r.job_id = w.job_id
                 where w.due_at <= now() and (w.lease_expires_at is null or w.lease_expires_at <= now())
                 for no key update of w skip locked
             )
             update webhooks w
             set lease_token = $1, lease_expires_at = now() + $2 * interval '1 millisecond'
             from due where w.job_id = due.job_id
             returning w.job_id, w.url, w.secret",
            token,
            millis(terms.duration),
            i64::from(terms.limit),
            i64::from(terms.limit_per_owner),
        )
        .fetch_all(&mut *tx)
        .await?;
        if leased.is_empty() {
            return Ok(Vec::new());
        }
        let jobs: Vec<Uuid> = leased.iter().map(|row| row.job_id).collect();
        // A separate statement sees everything that was recorded before the leases were taken.
        let oldest = sqlx::query!(
            r#"-- webhooks::turns::lease_webhooks messages
               select d.job_id as "job_id!", d.seq as "seq!", d.body as "body!", d.attempts as "attempts!"
               from unnest($1::uuid[]) as leased (job_id)
               cross join lateral (
                   select o.job_id, o.seq, o.body, o.attempts from webhook_deliveries o
                   where o.job_id = leased.job_id and o.state = 'pending' order by o.seq limit 1) d"#,
            &jobs,
        )
        .fetch_all(&mut *tx)
        .await?;
        let idle: Vec<Uuid> =
            jobs.into_iter().filter(|job| oldest.iter().all(|row| row.job_id != *job)).collect();
        if !idle.is_empty() {
            sqlx::query!(
                "-- webhooks::turns::lease_webhooks idle
                 update webhooks set due_at = null, lease_token = null, lease_expires_at = null
                 where job_id = any($1)",
                &idle,
            )
            .execute(&mut *tx)
            .await?;
        }
        tx.commit().await?;
        let mut granted = Vec::with_capacity(oldest.len());
        for row in oldest {
            let Some(place) = leased.iter().find(|leased| leased.job_id == row.job_id) else { continue };
            let seal = WebhookSeal::job(&self.sealer, row.job_id);
            let Some(webhook) = seal.open(&place.url, &place.secret) else {
                // The others go on. This one is tried and logged again when its lease ends.
                tracing::error!(job.id = %row.job_id, "a webhook cannot be opened: it was sealed with another key; check secrets.key_file");
                continue;
            };
            let stored = StoredRow::of("webhook_deliveries", &row.job_id);
            granted.push(WebhookLease {
                job: JobId::new(row.job_id),
                seq: stored.number("seq", row.seq)?,
                webhook,
                body: row.body,
                attempts: stored.number("attempts", row.attempts)?,
                token,
            });
        }
        Ok(granted)
    }

    /// Records the result of a delivery and returns the lease. False when the lease was lost.
    pub async fn record_delivery(&self, lease: &WebhookLease, result: &DeliveryResult) -> Result<bool> {
        let (state, status, error, retry_in) = match result {
            DeliveryResult::Delivered { response_status } => {
                ("delivered", Some(*response_status), None, None)
            }
            DeliveryResult::Failed { response_status, error, retry_in: Some(wait) } => {
                ("pending", *response_status, Some(error), Some(*wait))
            }
            DeliveryResult::Failed { response_status, error, retry_in: None } => {
                ("dead", *response_status, Some(error), None)
            }
        };
        let job = lease.job.get();
        let mut tx = self.begin().await?;
        // The lock comes first: a message that is added at the same time is visible below, or sets `due_at` afterwards.
        let ours = sqlx::query!(
            "-- webhooks::turns::record_delivery lock
             select job_id from webhooks where job_id = $1 and lease_token = $2 for no key update",
            job,
            lease.token,
        )
        .fetch_optional(&mut *tx)
        .await?;
        if ours.is_none() {
            return Ok(false);
        }
        sqlx::query!(
            "-- webhooks::turns::record_delivery
             update webhook_deliveries
             set state = $3, attempts = attempts + 1, tried_at = now(), response_status = $4, error = $5,
                 delivered_at = case when $3 = 'delivered' then now() end
             where job_id = $1 and seq = $2",
            job,
            signed(lease.seq),
            state,
            status.map(i32::from),
            error,
        )
        .execute(&mut *tx)
        .await?;
        sqlx::query!(
            "-- webhooks::turns::record_delivery release
             update webhooks w
             set lease_token = null, lease_expires_at = null,
                 due_at = case when exists (select from webhook_deliveries d where d.job_id = w.job_id and d.state = 'pending')
                               then now() + $2 * interval '1 millisecond' end
             where job_id = $1",
            job,
            millis(retry_in.unwrap_or_default()),
        )
        .execute(&mut *tx)
        .await?;
        tx.commit().await?;
        Ok(true)
    }
}

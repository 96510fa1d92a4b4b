//! Accepting jobs.

use std::{collections::HashSet, fmt::Write};

use chrono::SubsecRound;
use domain::{Job, JobId, Secrets, Timestamp, Webhook, Work};
use serde_json::{Map, Value, json};
use sqlx::PgExecutor;

use crate::{
    callers::idempotency::Once,
    clusters::stored::hold_incarnation,
    error::{Result, StoreError},
    jobs::{lane::Lane, needs, queries::Viewer},
    listen,
    statements::retry_rolled_back,
    store::Store,
    values::to_json,
    webhooks,
};

/// A validated job that is not stored yet.
#[derive(Debug)]
pub struct NewJob {
    pub job: Job,
    pub secrets: Secrets,
    /// SHA-256 of the request: the same id with another request is another job. Only a keyed hash of it is stored, because
    /// the request may hold secrets that are easy to guess.
    pub request_hash: [u8; 32],
}

/// The result of an insert.
#[derive(Debug)]
pub enum Inserted {
    Created(Job),
    /// The same owner has sent the same request with the same id before.
    Same(Job),
    /// The id belongs to another request or another owner, or to a job that was deleted.
    Other,
    /// Its cluster was deleted, or its name means another cluster now.
    ClusterGone,
    /// These of its needs, by their places, name no job of its owner.
    NeedsUnknown(Vec<usize>),
}

/// What is stored in the same transaction as a job.
#[derive(Debug, Clone, Copy, Default)]
pub struct InsertWith<'a> {
    /// The idempotency key of its request.
    pub once: Option<&'a Once>,
    /// The receiver of its status changes, from the first one on.
    pub webhook: Option<&'a Webhook>,
    /// The incarnation of the job's cluster, if the cluster is in the database and not in the configuration file.
    pub incarnation: Option<i64>,
}

impl Store {
    /// Stores a job and wakes the workers. The job is durable when this returns.
    pub async fn insert_job(&self, new: &NewJob) -> Result<Inserted> {
        let stored = self.insert_job_with(new, InsertWith::default()).await?;
        // `None` is only possible with a key.
        Ok(stored.unwrap_or(Inserted::Other))
    }

    /// Stores a job with what belongs to its request. `None` when the idempotency key is already used; then nothing was
    /// stored.
    pub async fn insert_job_with(&self, new: &NewJob, along: InsertWith<'_>) -> Result<Option<Inserted>> {
        let stored = retry_rolled_back(|| self.insert(new, along)).await?;
        if let Some(once) = along.once {
            self.sweep_keys(once.keep).await?;
        }
        Ok(stored)
    }

    async fn insert(&self, new: &NewJob, along: InsertWith<'_>) -> Result<Option<Inserted>> {
        let InsertWith { once, webhook, incarnation } = along;
        let job = &new.job;
        if once.is_none() && webhook.is_none() && incarnation.is_none() && job.spec.needs.is_empty() {
            // One statement is a transaction by itself.
            if !self.insert_rows(&self.pool, &[new]).await?.is_empty() {
                return Ok(Some(Inserted::Created(as_stored(job))));
            }
        }

        let mut tx = self.begin().await?;
        // The cluster cannot be deleted before the end of this transaction.
        if let Some(incarnation) = incarnation
            && !hold_incarnation(&mut tx, &job.cluster, incarnation).await?
        {
            return Ok(Some(Inserted::ClusterGone));
        }
        if self.insert_rows(&mut *tx, &[new]).await?.is_empty() {
            let same = sqlx::query_scalar!(
                r#"-- jobs::insert::insert same
                   select owner = $2 and request_hash = $3 as "same!" from jobs where id = $1"#,
                job.id.get(),
                job.owner.as_str(),
                &self.sealer.code(&new.request_hash)[..],
            )
            .fetch_optional(&mut *tx)
            .await?;
            if let (Some(true), Some(once)) = (same, once)
                && !self.keep_answer(&mut tx, once, job.id, 200).await?
            {
                return Ok(None);
            }
            tx.commit().await?;
            let stored = self.find_job(job.id, &Viewer::Owner(job.owner.clone())).await?;
            return Ok(Some(match (same, stored) {
                (Some(true), Some(stored)) => Inserted::Same(stored),
                _ => Inserted::Other,
            }));
        }
        // Dropping the transaction removes the job again.
        let unknown = needs::add(&mut tx, &[job]).await?;
        if !unknown.is_empty() {
            return Ok(Some(Inserted::NeedsUnknown(unknown.into_iter().map(|(_, place)| place).collect())));
        }
        if let Some(once) = once
            && !self.keep_answer(&mut tx, once, job.id, 201).await?
        {
            return Ok(None);
        }
        if let Some(webhook) = webhook {
            webhooks::add(&mut tx, &self.sealer, job, webhook).await?;
        }
        tx.commit().await?;
        Ok(Some(Inserted::Created(as_stored(job))))
    }

    /// Stores jobs and wakes the workers. Jobs whose ids are taken are missing from the result.
    pub(crate) async fn insert_rows(
        &self,
        db: impl PgExecutor<'_>,
        new: &[&NewJob],
    ) -> Result<HashSet<JobId>> {
        let rows = new.iter().map(|new| self.row(new)).collect::<Result<Vec<_>>>()?;
        let (channel, _) = listen::due(&new[0].job.cluster, None);
        let notices = new.iter().map(|new| {
            let (_, payload) = listen::due(&new.job.cluster, Some(Lane::of(new.job.phase)));
            (new.job.id.get(), payload)
        });
        let (ids, payloads): (Vec<_>, Vec<_>) = notices.unzip();
        let stored = sqlx::query!(
            r#"-- jobs::insert::insert_rows
               with stored as (
                   insert into jobs (id, owner, cluster, name, labels, network_arch, action, spec, request_hash, secrets,
                                     status, phase, message, source, created_at, last_modified, due_at, array_state, partition)
                   select u.id, u.owner, u.cluster, u.name, u.labels, u.network_arch, u.action, u.spec, u.request_hash, u.secrets,
                          u.status, u.phase, u.message, u.source, u.created_at, u.created_at, now(), u.array_state, u.partition
                   from jsonb_populate_recordset(null::jobs, $1) u
                   where not exists (select from deleted_jobs d where d.id = u.id)
                   on conflict (id) do nothing
                   returning id
               )
               select s.id as "id!", pg_notify($2, n.payload)
               from stored s join unnest($3::uuid[], $4::text[]) as n(id, payload) on n.id = s.id"#,
            Value::Array(rows),
            channel,
            &ids,
            &payloads,
        );
        Ok(stored.fetch_all(db).await?.into_iter().map(|row| JobId::new(row.id)).collect())
    }

    /// The columns of a new job.
    fn row(&self, NewJob { job, secrets, request_hash }: &NewJob) -> Result<Value> {
        let labels = job.spec.labels.iter().map(|(key, value)| (key.to_string(), value.as_str().into()));
        let labels: Value = labels.collect::<Map<_, _>>().into();
        let (network_arch, action) = match &job.spec.work {
            Work::Tao { network_arch, action, .. } => (Some(network_arch.as_str()), Some(action.as_str())),
            Work::Command { .. } | Work::Components { .. } => (None, None),
        };
        Ok(json!({
            "id": job.id,
            "owner": job.owner.as_str(),
            "cluster": job.cluster.as_str(),
            "name": job.spec.name.as_ref().map(domain::Label::as_str),
            "labels": labels,
            "network_arch": network_arch,
            "action": action,
            "spec": to_json("a specification", &job.spec)?,
            "request_hash": bytea(&self.sealer.code(request_hash)),
            "secrets": self.seal_secrets(job.id, secrets)?.as_deref().map(bytea),
            "status": job.status,
            "phase": job.phase,
            "message": job.message,
            "source": job.source,
            "created_at": exact(job.created_at),
            "partition": job.spec.partitions.as_ref().map(ToString::to_string),
            "array_state": job.array.as_ref().map(|array| to_json("the state of an array", array)).transpose()?,
        }))
    }

    pub(crate) fn seal_secrets(&self, id: JobId, secrets: &Secrets) -> Result<Option<Vec<u8>>> {
        if secrets.is_empty() {
            return Ok(None);
        }
        let plain = secrets.to_plain().map_err(|_| StoreError::Unstorable("secrets"))?;
        let plain = zeroize::Zeroizing::new(plain);
        self.sealer.seal(&plain, id.get().as_bytes()).map(Some)
    }
}

/// Bytes as Postgres reads them in JSON.
pub(crate) fn bytea(bytes: &[u8]) -> String {
    bytes.iter().fold("\\x".to_owned(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// A time with the precision of the database.
pub(crate) fn exact(at: Timestamp) -> Timestamp {
    at.trunc_subsecs(6)
}

/// A new job as a query would return it.
fn as_stored(job: &Job) -> Job {
    let created_at = exact(job.created_at);
    Job { created_at, last_modified: created_at, attempt: None, version: 1, ..job.clone() }
}

#[cfg(test)]
mod tests;

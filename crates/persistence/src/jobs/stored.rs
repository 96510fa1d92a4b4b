//! Accepting and finding jobs.

use std::collections::{BTreeMap, HashMap};

use chrono::SubsecRound;
use domain::{ClusterName, Job, JobId, Owner, Secrets, Timestamp, Webhook, Work};
use serde_json::Value;
use slurm::SlurmJobId;
use sqlx::PgExecutor;
use uuid::Uuid;

use crate::{
    again::again,
    callers::idempotency::Once,
    clusters::kept,
    error::StoreError,
    jobs::{leases::Lane, rows::select_jobs},
    listen,
    store::Store,
    webhooks,
};

/// Whose jobs a caller may see.
#[derive(Debug, Clone)]
pub enum Viewer {
    All,
    Owner(Owner),
}

impl Viewer {
    /// The owner to filter by; none for one who sees all.
    pub(crate) fn owner(&self) -> Option<&str> {
        match self {
            Self::All => None,
            Self::Owner(owner) => Some(owner.as_str()),
        }
    }
}

/// A validated job that nobody has stored yet.
#[derive(Debug)]
pub struct NewJob {
    pub job: Job,
    pub secrets: Secrets,
    /// SHA-256 of the request: the same id with another request is another job. It is never stored as it is, because
    /// the request may hold secrets that somebody could guess.
    pub request_hash: [u8; 32],
}

/// What became of a [`NewJob`].
#[derive(Debug)]
pub enum Inserted {
    Created(Job),
    /// The same owner sent the same request with the same id before.
    Same(Job),
    /// The id belongs to another request or another owner, or to a job that was deleted.
    Other,
    /// Its cluster is not kept any more, or is another one by now.
    ClusterGone,
}

/// What is stored in the transaction of a job.
#[derive(Debug, Clone, Copy, Default)]
pub struct Along<'a> {
    /// The key under which its request is carried out once.
    pub once: Option<&'a Once>,
    /// Who is told of its status from the first on.
    pub webhook: Option<&'a Webhook>,
    /// Which cluster the job's one is, if it is one that is kept in the database and not in the configuration file.
    pub incarnation: Option<i64>,
}

impl Store {
    /// Stores a job and wakes the workers. Durable when it returns.
    pub async fn insert_job(&self, new: &NewJob) -> Result<Inserted, StoreError> {
        let stored = self.insert_job_along(new, Along::default()).await?;
        // Without a key there is none to be taken.
        Ok(stored.unwrap_or(Inserted::Other))
    }

    /// The same with what belongs to its request. None when the request's key is known already, and then nothing was
    /// stored.
    pub async fn insert_job_along(
        &self,
        new: &NewJob,
        along: Along<'_>,
    ) -> Result<Option<Inserted>, StoreError> {
        let stored = again(|| self.insert(new, along)).await?;
        if let Some(once) = along.once {
            self.sweep_keys(once.keep).await?;
        }
        Ok(stored)
    }

    async fn insert(&self, new: &NewJob, along: Along<'_>) -> Result<Option<Inserted>, StoreError> {
        let Along { once, webhook, incarnation } = along;
        let job = &new.job;
        let row = self.new_row(new)?;
        if once.is_none() && webhook.is_none() && incarnation.is_none() {
            // Nothing goes along: one statement, which is a transaction by itself.
            if insert_row(&self.pool, job, &row).await? {
                return Ok(Some(Inserted::Created(as_stored(job))));
            }
        }

        let mut tx = self.pool.begin().await?;
        // Until the end of this transaction nobody can take the cluster away.
        let is_there = match incarnation {
            Some(incarnation) => kept::hold_incarnation(&mut tx, &job.cluster, incarnation).await?,
            None => true,
        };
        if !is_there {
            return Ok(Some(Inserted::ClusterGone));
        }
        if !insert_row(&mut *tx, job, &row).await? {
            let same = sqlx::query_scalar!(
                r#"-- jobs::insert_job same
                   select owner = $2 and request_hash = $3 as "same!" from jobs where id = $1"#,
                job.id.get(),
                job.owner.as_str(),
                &row.request_code[..],
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
        // A transaction that is dropped takes the job back.
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

    fn new_row(&self, new: &NewJob) -> Result<NewRow, StoreError> {
        let spec = &new.job.spec;
        let labels: BTreeMap<&str, &str> =
            spec.labels.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        Ok(NewRow {
            spec: serde_json::to_value(spec).map_err(|_| StoreError::Unstorable("its spec is no JSON"))?,
            labels: serde_json::to_value(labels)
                .map_err(|_| StoreError::Unstorable("its labels are no JSON"))?,
            request_code: self.sealer.code(&new.request_hash),
            secrets: self.seal_secrets(new.job.id, &new.secrets)?,
        })
    }

    pub async fn find_job(&self, id: JobId, viewer: &Viewer) -> Result<Option<Job>, StoreError> {
        let row = select_jobs!(
            "jobs::find_job",
            "where j.id = $1 and ($2::text is null or j.owner = $2) and j.desired_state <> 'delete'",
            id.get(),
            viewer.owner(),
        )
        .fetch_optional(&self.pool)
        .await?;
        row.map(Job::try_from).transpose()
    }

    /// The newest job whose specification names this directory for its results.
    pub async fn find_job_of_results_dir(
        &self,
        results_dir: &str,
        viewer: &Viewer,
    ) -> Result<Option<Job>, StoreError> {
        let row = select_jobs!(
            "jobs::find_job_of_results_dir",
            "where j.spec #>> '{work,specs,results_dir}' = $1 and ($2::text is null or j.owner = $2)
               and j.desired_state <> 'delete'
             order by j.created_at desc, j.id desc limit 1",
            results_dir,
            viewer.owner(),
        )
        .fetch_optional(&self.pool)
        .await?;
        row.map(Job::try_from).transpose()
    }

    /// The Slurm ids of the attempts before the newest, oldest first.
    pub async fn earlier_slurm_ids(&self, id: JobId) -> Result<Vec<SlurmJobId>, StoreError> {
        let ids = sqlx::query_scalar!(
            r#"-- jobs::earlier_slurm_ids
               select a.slurm_job_id as "id!" from slurm_metadata a join jobs j on j.id = a.job_id
               where a.job_id = $1 and a.attempt < j.attempt and a.slurm_job_id is not null order by a.attempt"#,
            id.get(),
        )
        .fetch_all(&self.pool)
        .await?;
        Ok(ids.into_iter().filter_map(|id| SlurmJobId::new(u32::try_from(id).ok()?)).collect())
    }

    /// Opens the secrets of jobs; those that have none, or have ended, are missing from the answer. Each opens or
    /// fails by itself, so that one that was sealed with a lost key holds up nobody else.
    pub async fn open_secrets(
        &self,
        jobs: &[JobId],
    ) -> Result<HashMap<JobId, Result<Secrets, StoreError>>, StoreError> {
        let ids: Vec<_> = jobs.iter().map(|id| id.get()).collect();
        let rows = sqlx::query!(
            r#"-- jobs::open_secrets
               select id, secrets as "secrets!" from jobs where id = any($1) and secrets is not null"#,
            &ids
        )
        .fetch_all(&self.pool)
        .await?;
        let open = |id: Uuid, sealed: &[u8]| {
            let corrupt = || StoreError::Corrupt { table: "jobs", column: "secrets", row: id.to_string() };
            let plain = self.sealer.open(sealed, id.as_bytes()).ok_or_else(corrupt)?;
            Secrets::from_plain(&plain).map_err(|_| corrupt())
        };
        Ok(rows.into_iter().map(|row| (JobId::new(row.id), open(row.id, &row.secrets))).collect())
    }

    /// How many jobs of each cluster have not ended: a cluster that is not configured any more strands them.
    pub async fn live_jobs_by_cluster(&self) -> Result<HashMap<ClusterName, u64>, StoreError> {
        let rows = sqlx::query!(
            r#"-- jobs::live_jobs_by_cluster
               select cluster, count(*) as "jobs!" from jobs where phase <> 'ended' group by cluster"#
        )
        .fetch_all(&self.pool)
        .await?;
        let pair = |cluster: &str, jobs: i64| Some((cluster.parse().ok()?, u64::try_from(jobs).ok()?));
        Ok(rows.iter().filter_map(|row| pair(&row.cluster, row.jobs)).collect())
    }

    pub(crate) fn seal_secrets(&self, id: JobId, secrets: &Secrets) -> Result<Option<Vec<u8>>, StoreError> {
        if secrets.is_empty() {
            return Ok(None);
        }
        let plain = zeroize::Zeroizing::new(
            secrets.to_plain().map_err(|_| StoreError::Unstorable("its secrets are no JSON"))?,
        );
        self.sealer.seal(&plain, id.get().as_bytes()).map(Some)
    }
}

/// What is stored of a new job in another form than it has.
struct NewRow {
    spec: Value,
    labels: Value,
    request_code: [u8; 32],
    secrets: Option<Vec<u8>>,
}

/// Stores a job and wakes the workers, unless its id is taken.
async fn insert_row<'c, E: PgExecutor<'c>>(db: E, job: &Job, row: &NewRow) -> Result<bool, StoreError> {
    let (network_arch, action) = match &job.spec.work {
        Work::Tao { network_arch, action, .. } => (Some(network_arch.as_str()), Some(action.as_str())),
        Work::Command { .. } => (None, None),
    };
    let (channel, payload) = listen::due(&job.cluster, Some(Lane::of(job.phase)));
    let told = sqlx::query!(
        "-- jobs::insert_job
         with stored as (
             insert into jobs (id, owner, cluster, name, labels, network_arch, action, spec, request_hash, secrets,
                               status, phase, message, source, created_at, last_modified, due_at)
             select $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $15, now()
             where not exists (select from deleted_jobs d where d.id = $1)
             on conflict (id) do nothing
             returning id
         )
         select pg_notify($16, $17) from stored",
        job.id.get(),
        job.owner.as_str(),
        job.cluster.as_str(),
        job.spec.name.as_ref().map(domain::Label::as_str),
        row.labels,
        network_arch,
        action,
        row.spec,
        &row.request_code[..],
        row.secrets,
        <&str>::from(job.status),
        <&str>::from(job.phase),
        job.message,
        <&str>::from(job.source),
        exact(job.created_at),
        channel,
        payload,
    )
    .fetch_optional(db)
    .await?;
    Ok(told.is_some())
}

/// A time as exactly as the database keeps it.
fn exact(at: Timestamp) -> Timestamp {
    at.trunc_subsecs(6)
}

/// A new job as it would be read.
fn as_stored(job: &Job) -> Job {
    let created_at = exact(job.created_at);
    Job { created_at, last_modified: created_at, attempt: None, version: 1, ..job.clone() }
}

/// A JSON document that labels of a stored job must contain.
pub(crate) fn label_filter(labels: &[(String, String)]) -> Value {
    labels
        .iter()
        .map(|(key, value)| (key.clone(), Value::String(value.clone())))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

#[cfg(test)]
mod tests;

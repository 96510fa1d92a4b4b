//! Jobs on a cluster that nothing watches: what the database says of them, and what was found.

use std::collections::HashMap;

use domain::{AttemptNo, ClusterName, Origin, Orphan, Record, Timestamp};
use serde_json::{Value, json};
use slurm::SlurmJobId;
use uuid::Uuid;

use crate::{error::StoreError, polls::turns::PollLease, store::Store};

/// What is remembered of a cluster. What cannot be read is found again by the next poll.
pub(crate) fn read(cluster: &ClusterName, stored: Value) -> Vec<Orphan> {
    serde_json::from_value(stored).unwrap_or_else(|error| {
        tracing::error!(cluster.name = %cluster, %error, "the orphans of a cluster cannot be read; they are looked for anew");
        Vec::new()
    })
}

impl Store {
    /// What is known of the jobs and conversions that Slurm jobs of this cluster say they belong to.
    pub async fn records_of(
        &self,
        cluster: &ClusterName,
        origins: &[Origin],
    ) -> Result<HashMap<Origin, Record>, StoreError> {
        let (mut jobs, mut conversions) = (Vec::new(), Vec::new());
        for origin in origins {
            match origin {
                Origin::Attempt { job, .. } => jobs.push(job.get()),
                Origin::Conversion { id, .. } => conversions.push(*id),
            }
        }
        let jobs = self.records_of_jobs(cluster, &jobs).await?;
        let conversions = self.records_of_conversions(cluster, &conversions).await?;
        let record = |origin: &Origin| match origin {
            Origin::Attempt { job, .. } => jobs.get(&job.get()),
            Origin::Conversion { id, .. } => conversions.get(id),
        };
        Ok(origins.iter().map(|origin| (*origin, record(origin).copied().unwrap_or(Record::None))).collect())
    }

    async fn records_of_jobs(
        &self,
        cluster: &ClusterName,
        ids: &[Uuid],
    ) -> Result<HashMap<Uuid, Record>, StoreError> {
        if ids.is_empty() {
            return Ok(HashMap::new());
        }
        let rows = sqlx::query!(
            r#"-- orphans::records_of_jobs
               select u.id as "id!", j.cluster as "cluster?", j.attempt as "newest?", a.slurm_job_id as "slurm_job_id?",
                      coalesce(j.phase <> 'ended' and a.concluded_at is null, false) as "open!"
               from (select distinct unnest($1::uuid[]) as id) u
               left join jobs j on j.id = u.id
               left join deleted_jobs d on d.id = u.id
               left join slurm_metadata a on a.job_id = j.id and a.attempt = j.attempt
               where j.id is not null or d.id is not null"#,
            ids,
        )
        .fetch_all(&self.pool)
        .await?;
        let record = |of: Option<String>, newest, open, slurm_id| match of {
            None => Record::Deleted,
            Some(of) if of != cluster.as_str() => Record::Elsewhere,
            Some(_) => known(newest, open, slurm_id),
        };
        Ok(rows
            .into_iter()
            .map(|row| (row.id, record(row.cluster, row.newest, row.open, row.slurm_job_id)))
            .collect())
    }

    async fn records_of_conversions(
        &self,
        cluster: &ClusterName,
        ids: &[Uuid],
    ) -> Result<HashMap<Uuid, Record>, StoreError> {
        if ids.is_empty() {
            return Ok(HashMap::new());
        }
        let rows = sqlx::query!(
            r#"-- orphans::records_of_conversions
               select id, cluster, run, slurm_job_id,
                      state in ('submitting', 'submit_uncertain', 'in_queue', 'running', 'finishing') as "open!"
               from image_conversions where id = any($1)"#,
            ids,
        )
        .fetch_all(&self.pool)
        .await?;
        let record = |of: &str, run, open, slurm_id| {
            if of == cluster.as_str() { known(Some(run), open, slurm_id) } else { Record::Elsewhere }
        };
        Ok(rows
            .into_iter()
            .map(|row| (row.id, record(&row.cluster, row.run, row.open, row.slurm_job_id)))
            .collect())
    }

    /// Remembers the orphans of a cluster until its next poll, and tells the jobs of those that are to be canceled.
    /// Only whoever has the right to poll may.
    pub async fn record_orphans(
        &self,
        lease: &PollLease,
        orphans: &[Orphan],
        condemned: &[SlurmJobId],
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let told = orphans.iter().filter(|orphan| condemned.contains(&orphan.slurm_id));
        let told: Vec<Value> = told.zip(1..).filter_map(|(orphan, ord)| told_of(orphan, ord)).collect();
        let orphans =
            serde_json::to_value(orphans).map_err(|_| StoreError::Unstorable("an orphan is no JSON"))?;
        let ours = sqlx::query_scalar!(
            r#"-- orphans::record_orphans
               with ours as (
                   update cluster_polls set orphans = $3
                   where cluster = $1 and lease_token = $2 and lease_expires_at > now()
                   returning cluster
               ), told as (
                   select t.job_id, t.data, row_number() over (partition by t.job_id order by t.ord) as nth
                   from jsonb_to_recordset($4) as t(job_id uuid, ord bigint, data jsonb)
               ), old as (
                   select j.id, j.events, j.attempt from jobs j
                   where j.id in (select job_id from told) and exists (select from ours)
                   for update of j
               ), counted as (
                   update jobs j set events = old.events + n.events, updated_by = 'record_orphans'
                   from old join (select job_id, count(*) as events from told group by job_id) n on n.job_id = old.id
                   where j.id = old.id
               ), said as (
                   insert into job_events (job_id, seq, at, kind, attempt, data)
                   select t.job_id, old.events + t.nth, $5, 'orphan', old.attempt, t.data
                   from told t join old on old.id = t.job_id
                   order by t.job_id, t.nth
               )
               select count(*) as "count!" from ours"#,
            lease.cluster.as_str(),
            lease.token,
            orphans,
            Value::from(told),
            now,
        )
        .fetch_one(&self.pool)
        .await?;
        if ours == 0 { Err(lease.lost()) } else { Ok(()) }
    }
}

fn known(newest: Option<i32>, open: bool, slurm_id: Option<i64>) -> Record {
    let newest = newest.and_then(|no| AttemptNo::new(u32::try_from(no).ok()?));
    let slurm_id = slurm_id.and_then(|id| SlurmJobId::new(u32::try_from(id).ok()?));
    Record::Known { newest, open, slurm_id }
}

/// The event of a job; a conversion has none.
fn told_of(orphan: &Orphan, ord: u32) -> Option<Value> {
    Some(json!({
        "job_id": orphan.job()?,
        "ord": ord,
        "data": {
            "orphan": orphan.kind, "slurm_job_id": orphan.slurm_id.to_string(), "slurm_job_name": orphan.name,
            "message": orphan.sentence(),
        },
    }))
}

#[cfg(test)]
mod tests;

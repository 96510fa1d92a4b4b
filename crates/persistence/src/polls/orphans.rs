//! Orphans: jobs on a cluster with our names that the service does not track.

use std::collections::HashMap;

use domain::{Ahead, AttemptNo, ClusterName, Origin, Orphan, Record, Timestamp};
use serde_json::{Value, json};
use slurm::SlurmJobId;

use crate::{
    error::Result,
    polls::turns::PollLease,
    store::{Call, Store},
    values::to_json,
};

/// Jobs on a cluster that the service does not track.
pub trait OrphanRecords {
    /// What is stored about the jobs that Slurm jobs of this cluster belong to by their names.
    fn records_of(&self, cluster: &ClusterName, origins: &[Origin]) -> impl Call<HashMap<Origin, Record>>;

    /// Stores the orphans of a cluster until its next poll. For those that are about to be canceled, adds an event to their
    /// jobs. Only the holder of the poll lease may call this.
    fn record_orphans(
        &self,
        lease: &PollLease,
        orphans: &[Orphan],
        condemned: &[SlurmJobId],
        now: Timestamp,
    ) -> impl Call<()>;
}

impl OrphanRecords for Store {
    async fn records_of(&self, cluster: &ClusterName, origins: &[Origin]) -> Result<HashMap<Origin, Record>> {
        if origins.is_empty() {
            return Ok(HashMap::new());
        }
        let jobs: Vec<_> = origins.iter().map(|origin| origin.job.get()).collect();
        let rows = sqlx::query!(
            r#"-- polls::orphans::records_of
               select u.id as "id!", j.cluster as "cluster?", j.attempt as "newest?", a.slurm_job_id,
                      coalesce(j.phase <> 'ended' and a.concluded_at is null, false) as "open!",
                      coalesce((j.spec -> 'restart' ->> 'prequeue')::boolean, false) as "queues_ahead!",
                      coalesce(j.phase in ('ended', 'paused'), false) as "goes_on_no_more!"
               from (select distinct unnest($1::uuid[]) as id) u
               left join jobs j on j.id = u.id
               left join deleted_jobs d on d.id = u.id
               left join slurm_metadata a on a.job_id = j.id and a.attempt = j.attempt
               where j.id is not null or d.id is not null"#,
            &jobs,
        )
        .fetch_all(&self.pool)
        .await?;
        let mut records = HashMap::new();
        for row in rows {
            let record = match row.cluster {
                None => Record::Deleted,
                Some(of) if of != cluster.as_str() => Record::Elsewhere,
                Some(_) => {
                    let ahead = match (row.queues_ahead, row.goes_on_no_more) {
                        (false, _) => Ahead::Never,
                        (true, false) => Ahead::Expected,
                        (true, true) => Ahead::Useless,
                    };
                    known(row.newest, row.open, row.slurm_job_id, ahead)
                }
            };
            records.insert(row.id, record);
        }
        let record = |origin: &Origin| records.get(&origin.job.get()).copied().unwrap_or(Record::None);
        Ok(origins.iter().map(|origin| (*origin, record(origin))).collect())
    }

    async fn record_orphans(
        &self,
        lease: &PollLease,
        orphans: &[Orphan],
        condemned: &[SlurmJobId],
        now: Timestamp,
    ) -> Result<()> {
        let doomed = orphans.iter().filter(|orphan| condemned.contains(&orphan.slurm_id));
        let events: Vec<Value> = doomed.zip(1..).filter_map(|(orphan, seq)| event(orphan, seq)).collect();
        let orphans = to_json("an orphan", &orphans)?;
        let condemned: Vec<i64> = condemned.iter().map(|id| id.get().into()).collect();
        let ours = sqlx::query_scalar!(
            r#"-- polls::orphans::record_orphans
               with ours as (
                   update cluster_polls set orphans = $3
                   where cluster = $1 and lease_token = $2 and lease_expires_at > now()
                   returning cluster
               ), new_events as (
                   select t.job_id, t.data, row_number() over (partition by t.job_id order by t.seq) as nth
                   from jsonb_populate_recordset(null::job_events, $4) t
               ), old as (
                   select j.id, j.events, j.attempt from jobs j
                   where j.id in (select job_id from new_events) and exists (select from ours)
                   for update of j
               ), counted as (
                   update jobs j set events = old.events + n.events, updated_by = 'record_orphans'
                   from old join (select job_id, count(*) as events from new_events group by job_id) n on n.job_id = old.id
                   where j.id = old.id
               ), added_events as (
                   insert into job_events (job_id, seq, at, kind, attempt, data)
                   select t.job_id, old.events + t.nth, $5, 'orphan', old.attempt, t.data
                   from new_events t join old on old.id = t.job_id
                   order by t.job_id, t.nth
               ), account_again as (
                   -- Its end changes.
                   update unaccounted set found = false, ask_at = least(ask_at, now() + interval '1 minute')
                   where cluster = $1 and slurm_job_id = any($6) and exists (select from ours)
               )
               select count(*) as "count!" from ours"#,
            lease.cluster.as_str(),
            lease.token,
            orphans,
            Value::from(events),
            now,
            &condemned,
        )
        .fetch_one(&self.pool)
        .await?;
        if ours == 0 { Err(lease.lost()) } else { Ok(()) }
    }
}

fn known(newest: Option<i32>, open: bool, slurm_id: Option<i64>, ahead: Ahead) -> Record {
    let newest = newest.and_then(|no| AttemptNo::new(u32::try_from(no).ok()?));
    let slurm_id = slurm_id.and_then(|id| SlurmJobId::new(u32::try_from(id).ok()?));
    Record::Known { newest, open, slurm_id, ahead }
}

/// The event of its job.
fn event(orphan: &Orphan, seq: u32) -> Option<Value> {
    Some(json!({
        "job_id": orphan.job()?,
        "seq": seq,
        "data": {
            "orphan": orphan.kind, "slurm_job_id": orphan.slurm_id.to_string(), "slurm_job_name": orphan.name,
            "message": orphan.sentence(),
        },
    }))
}

#[cfg(test)]
mod tests;

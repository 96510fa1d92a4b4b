//! What Slurm accounts for: each time that a Slurm job of ours held nodes.
//!
//! A trigger notes each Slurm job when it gets its id. It stays noted until accounting has told the end of all its runs, twice: accounting
//! may lag behind, and a run that it tells later would be missing.

use std::time::Duration;

use domain::{ClusterName, Origin};
use remote::{Accounted, AttemptKey};
use serde_json::{Value, json};
use slurm::{JobName, SlurmJobId, timestamp};

use crate::{
    error::Result,
    store::{Call, Store},
    values::{StoredRow, millis, to_json},
};

/// Slurm jobs whose allocations are to be read, and the answers.
pub trait AllocationRecords {
    /// The Slurm jobs to ask about: their attempts are concluded, or their jobs deleted. Another process takes them after `patience` if
    /// this one dies.
    fn take_unaccounted(
        &self,
        cluster: &ClusterName,
        most: u32,
        patience: Duration,
    ) -> impl Call<Vec<(SlurmJobId, AttemptKey)>>;

    /// Stores what accounting told of these jobs, in their order. A job that is over is asked about again `soon`, and once more when the
    /// first question is `late` ago; any other after a time that grows. After a week it is given up.
    fn record_allocations(
        &self,
        cluster: &ClusterName,
        jobs: &[(SlurmJobId, AttemptKey)],
        told: &[Accounted],
        soon: Duration,
        late: Duration,
    ) -> impl Call<()>;
}

impl AllocationRecords for Store {
    async fn take_unaccounted(
        &self,
        cluster: &ClusterName,
        most: u32,
        patience: Duration,
    ) -> Result<Vec<(SlurmJobId, AttemptKey)>> {
        let rows = sqlx::query!(
            r#"-- clusters::allocations::take_unaccounted
               with due as (
                   select u.token, u.slurm_job_id from unaccounted u
                   where u.cluster = $1 and u.ask_at <= now() and not exists (
                       select from slurm_metadata a join jobs j on j.id = a.job_id
                       where a.job_id = u.job_id and a.attempt = u.attempt and a.concluded_at is null and j.phase <> 'ended'
                   )
                   order by u.ask_at limit $2
                   for update of u skip locked
               )
               update unaccounted u
               set ask_at = now() + $3 * interval '1 millisecond', asked_since = coalesce(u.asked_since, now())
               from due where (u.token, u.slurm_job_id) = (due.token, due.slurm_job_id)
               returning u.slurm_job_id, u.token"#,
            cluster.as_str(),
            i64::from(most),
            millis(patience),
        )
        .fetch_all(&self.pool)
        .await?;
        let read = |(token, id): (String, i64)| {
            let row = StoredRow::of("unaccounted", &token);
            let id = row.slurm_id(Some(id))?.ok_or_else(|| row.corrupt("slurm_job_id"))?;
            let origin = Origin::of(&token).ok_or_else(|| row.corrupt("token"))?;
            Ok((id, AttemptKey { subject: origin.subject(), name: row.parse("token", &token)? }))
        };
        rows.into_iter().map(|row| read((row.token, row.slurm_job_id))).collect()
    }

    async fn record_allocations(
        &self,
        cluster: &ClusterName,
        jobs: &[(SlurmJobId, AttemptKey)],
        told: &[Accounted],
        soon: Duration,
        late: Duration,
    ) -> Result<()> {
        let told = || jobs.iter().map(|(_, key)| &key.name).zip(told);
        let rows: Vec<Value> = told().flat_map(|(name, told)| rows(name, told)).collect();
        let ids: Vec<i64> = jobs.iter().map(|(id, _)| i64::from(id.get())).collect();
        let (names, over): (Vec<String>, Vec<bool>) =
            told().map(|(name, told)| (name.to_string(), told.is_over())).unzip();
        self.run(sqlx::query!(
            "-- clusters::allocations::record_allocations
             with told as (
                 select * from unnest($3::text[], $6::bigint[], $4::bool[]) as t(token, slurm_job_id, over)
             ), known as (
                 select u.*, t.over, now() - u.asked_since as since,
                        t.over and u.found and u.asked_since <= now() - $7 * interval '1 millisecond'
                        or u.asked_since < now() - interval '7 days' as settled
                 from unaccounted u join told t using (token, slurm_job_id) where u.cluster = $1 for update of u
             ), stored as (
                 insert into allocations (cluster, slurm_job_id, started_at, elapsed, job_id, attempt, owner, labels, partition, state,
                                          gpus, cpus, nodes, cpu_seconds, most_memory)
                 select distinct on (r.slurm_job_id, r.started_at)
                        $1, r.slurm_job_id, r.started_at, r.elapsed, k.job_id, k.attempt, k.owner, k.labels, r.partition, r.state,
                        r.gpus, r.cpus, r.nodes, r.cpu_seconds, r.most_memory
                 from jsonb_to_recordset($2) as r(token text, slurm_job_id bigint, started_at timestamptz, elapsed bigint, partition text,
                                                  state text, gpus integer, cpus integer, nodes integer, cpu_seconds bigint, most_memory integer)
                 join (select distinct on (token) * from known) k using (token)
                 order by r.slurm_job_id, r.started_at, r.elapsed desc
                 on conflict (cluster, slurm_job_id, started_at) do update
                 set elapsed = excluded.elapsed, state = excluded.state, gpus = excluded.gpus, cpus = excluded.cpus,
                     nodes = excluded.nodes, partition = excluded.partition, cpu_seconds = excluded.cpu_seconds, most_memory = excluded.most_memory
             ), settled as (
                 delete from unaccounted u using known k
                 where (u.token, u.slurm_job_id) = (k.token, k.slurm_job_id) and k.settled
             )
             update unaccounted u
             set found = k.over,
                 ask_at = now() + case when k.over and k.found
                                           then greatest($7 * interval '1 millisecond' - k.since, $5 * interval '1 millisecond')
                                       when k.over then $5 * interval '1 millisecond'
                                       else least(greatest(k.since, interval '15 seconds'), interval '1 hour') end
             from known k
             where (u.token, u.slurm_job_id) = (k.token, k.slurm_job_id) and k.settled is not true",
            cluster.as_str(),
            to_json("allocations", &rows)?,
            &names,
            &over,
            millis(soon),
            &ids,
            millis(late),
        ))
        .await
    }
}

impl Store {
    /// Deletes allocations that are older than the longest window of figures.
    pub async fn delete_old_allocations(&self) -> Result<u64> {
        let deleted = sqlx::query!(
            "-- clusters::allocations::delete_old_allocations
             delete from allocations where started_at < now() - interval '401 days' - elapsed * interval '1 second'"
        );
        Ok(deleted.execute(&self.pool).await?.rows_affected())
    }
}

/// The rows of the runs that have ended and held nodes.
fn rows<'a>(name: &'a JobName, told: &'a Accounted) -> impl Iterator<Item = Value> + use<'a> {
    let held = told.runs.iter().filter(|run| run.is_over() && run.elapsed > 0);
    held.filter_map(move |run| {
        Some(json!({
            "token": name.as_str(),
            "slurm_job_id": run.id.get(),
            "started_at": timestamp(run.start)?,
            "elapsed": run.elapsed,
            "partition": run.partition,
            "state": run.state.as_str(),
            "gpus": run.gpus,
            "cpus": run.cpus,
            "nodes": run.nodes,
            "cpu_seconds": run.cpu_seconds,
            "most_memory": run.most_memory,
        }))
    })
}

#[cfg(test)]
mod tests;

//! How much work there is, for metrics.

use chrono::TimeDelta;
use domain::{ClusterName, Phase};

use crate::{error::Result, store::Store, values::count};

/// The jobs of one cluster in one phase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workload {
    pub cluster: ClusterName,
    pub phase: Phase,
    pub jobs: u64,
    /// How long the longest due job has waited for a worker; `None` when no job is due.
    pub overdue: Option<TimeDelta>,
}

/// The connections of this process to the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Connections {
    pub used: u32,
    pub idle: u32,
    pub limit: u32,
}

impl Store {
    /// Counts the jobs that are due for a step or that Slurm has. Both have an index, so the cost does not depend on how many
    /// jobs have ended or are paused.
    pub async fn workload(&self) -> Result<Vec<Workload>> {
        let rows = sqlx::query!(
            r#"-- workload::workload
               select cluster, phase, count(*) as "jobs!",
                      (extract(epoch from max(now() - due_at) filter (
                          where due_at <= now() and (lease_token is null or lease_expires_at <= now())
                      )) * 1000)::bigint as overdue
               from jobs
               where due_at is not null or phase in ('in_queue', 'running', 'suspended')
               group by cluster, phase"#
        )
        .fetch_all(&self.pool)
        .await?;
        let workload = rows.iter().filter_map(|row| {
            Some(Workload {
                cluster: row.cluster.parse().ok()?,
                phase: row.phase.parse().ok()?,
                jobs: count(row.jobs),
                overdue: row.overdue.map(TimeDelta::milliseconds),
            })
        });
        Ok(workload.collect())
    }

    pub fn connections(&self) -> Connections {
        let (open, idle) = (self.pool.size(), u32::try_from(self.pool.num_idle()).unwrap_or(u32::MAX));
        Connections {
            used: open.saturating_sub(idle),
            idle,
            limit: self.pool.options().get_max_connections(),
        }
    }
}

#[cfg(test)]
mod tests {
    use domain::{Secrets, Work};
    use sqlx::PgPool;
    use testkit::job_at;

    use super::*;
    use crate::{NewJob, Sealer};

    #[sqlx::test(migrator = "crate::MIGRATOR")]
    async fn a_due_job_without_a_worker_reports_how_long_and_paused_jobs_are_not_counted(pool: PgPool) {
        let store = Store::from_pool(pool.clone(), Sealer::from_key([7; 32]));
        for number in 1..=5 {
            let job = job_at(number, Work::Command { text: "true".to_owned() }, chrono::DateTime::UNIX_EPOCH);
            let new = NewJob { job, secrets: Secrets::default(), request_hash: [0; 32] };
            store.insert_job(&new).await.unwrap();
        }
        sqlx::raw_sql(
            "with numbered as (select id, row_number() over (order by id) as n from jobs)
             update jobs j set
                 due_at = case n when 1 then now() - interval '90 s' when 2 then now() - interval '1 h'
                                 when 3 then now() + interval '1 h' end,
                 lease_token = case n when 2 then gen_random_uuid() end,
                 lease_expires_at = case n when 2 then now() + interval '1 h' end,
                 phase = case n when 4 then 'running' when 5 then 'paused' else phase end
             from numbered where numbered.id = j.id",
        )
        .execute(&pool)
        .await
        .unwrap();
        let mut found = store.workload().await.unwrap();
        found.sort_by_key(|workload| workload.jobs);
        let [running, queued] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!((running.phase, running.jobs, running.overdue), (Phase::Running, 1, None));
        assert_eq!((queued.phase, queued.jobs), (Phase::Queued, 3));
        // A leased job is not overdue, however long ago it fell due.
        let overdue = queued.overdue.unwrap();
        assert!(overdue >= TimeDelta::seconds(90) && overdue < TimeDelta::minutes(30), "{overdue}");
    }
}

//! Jobs that wait for other jobs.

use std::collections::{HashMap, HashSet};

use domain::{Job, JobId, NeededJob, NeededTasks};
use slurm::TaskSet;
use sqlx::{PgExecutor, Postgres, Transaction};
use uuid::Uuid;

use crate::{
    error::Result,
    store::{Call, Store},
    values::StoredRow,
};

/// What jobs wait for.
pub trait Needs {
    /// The jobs that each of these needs, in the order of its needs. Jobs without needs are missing from the result.
    fn needed(&self, jobs: &[JobId]) -> impl Call<HashMap<JobId, Vec<NeededJob>>>;
}

impl Needs for Store {
    async fn needed(&self, jobs: &[JobId]) -> Result<HashMap<JobId, Vec<NeededJob>>> {
        let mut needed: HashMap<JobId, Vec<NeededJob>> = HashMap::new();
        if jobs.is_empty() {
            return Ok(needed);
        }
        let ids: Vec<_> = jobs.iter().map(|id| id.get()).collect();
        let rows = sqlx::query!(
            r#"-- jobs::needs::needed
               select n.job_id, n.met, j.status as "status?", j.started_at, a.job_dir as "job_dir?",
                      tasks.done, tasks.lost, j.array_state ->> 'dropped' as dropped
               from needs n
               join jobs d on d.id = n.job_id
               left join jobs j on j.id = n.needed and j.desired_state <> 'delete'
               left join slurm_metadata a on a.job_id = j.id and a.attempt = j.attempt
               left join lateral (
                   -- Of jobs with an array whose tasks are waited for one by one.
                   select coalesce(array_agg(task) filter (where outcome = 'done'), '{}') as done,
                          coalesce(array_agg(task) filter (where outcome in ('error', 'canceled')), '{}') as lost
                   from (select distinct on (task) task, outcome, superseded from runs where job_id = j.id
                         order by task, attempt desc) newest
                   where not superseded
               ) tasks on d.spec #>> array['needs', n.place::text, 'when'] = 'each' and j.array_state is not null
               -- That of an image is none of its specification.
               where n.job_id = any($1) and n.place >= 0
               order by n.job_id, n.place"#,
            &ids
        )
        .fetch_all(&self.pool)
        .await?;
        for row in rows {
            let stored = StoredRow::of("needs", &row.job_id);
            let tasks = match (row.done, row.lost) {
                (Some(done), Some(lost)) => {
                    // Those that it skips may go on yet.
                    let dropped: Option<TaskSet> = stored.parse_any("array_state", row.dropped.as_ref())?;
                    let lost = tasks(lost).union(&dropped.unwrap_or_default());
                    Some(NeededTasks { done: tasks(done), lost })
                }
                _ => None,
            };
            needed.entry(JobId::new(row.job_id)).or_default().push(NeededJob {
                status: stored.parse_any("status", row.status.as_ref())?,
                has_started: row.started_at.is_some(),
                job_dir: stored.parse_any("job_dir", row.job_dir.as_ref())?,
                was_met: row.met,
                tasks,
            });
        }
        Ok(needed)
    }
}

fn tasks(numbers: Vec<i32>) -> TaskSet {
    numbers.into_iter().filter_map(|task| u32::try_from(task).ok()).collect()
}

impl Store {
    /// The needs of a new job that name no job of its owner, by their places.
    pub async fn unknown_needs(&self, job: &Job) -> Result<Vec<usize>> {
        if job.spec.needs.is_empty() {
            return Ok(Vec::new());
        }
        let needed: Vec<_> = job.spec.needs.iter().map(|need| need.job).collect();
        let known = sqlx::query_scalar!(
            "-- jobs::needs::unknown_needs
             select id from jobs where id = any($1) and owner = $2 and desired_state <> 'delete'",
            &needed,
            job.owner.as_str(),
        );
        let known: HashSet<Uuid> = known.fetch_all(&self.pool).await?.into_iter().collect();
        let places = needed.iter().enumerate();
        Ok(places.filter(|(_, id)| !known.contains(id)).map(|(place, _)| place).collect())
    }

    /// A job that needs this one and has not ended: until then this one cannot be deleted.
    pub async fn needed_by(&self, id: JobId) -> Result<Option<JobId>> {
        needed_by(&self.pool, id).await
    }
}

/// A job that needs this one and has not ended.
pub(super) async fn needed_by(db: impl PgExecutor<'_>, id: JobId) -> Result<Option<JobId>> {
    let other = sqlx::query_scalar!(
        "-- jobs::needs::needed_by
         select d.id from needs n join jobs d on d.id = n.job_id where n.needed = $1 and d.phase <> 'ended' limit 1",
        id.get(),
    );
    Ok(other.fetch_optional(db).await?.map(JobId::new))
}

/// Stores the needs of new jobs, which are stored already. Returns those that name no job of the same owner, by job and place; then
/// the transaction has to be rolled back.
pub(crate) async fn add(tx: &mut Transaction<'_, Postgres>, jobs: &[&Job]) -> Result<Vec<(JobId, usize)>> {
    let (mut ids, mut places, mut needed, mut owners) = (vec![], vec![], vec![], vec![]);
    for job in jobs {
        for (need, place) in job.spec.needs.iter().zip(0_i32..) {
            ids.push(job.id.get());
            places.push(place);
            needed.push(need.job);
            owners.push(job.owner.to_string());
        }
    }
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    // The lock holds until the needs are visible to a deletion.
    let stored = sqlx::query!(
        "-- jobs::needs::add
         insert into needs (job_id, place, needed)
         select u.job_id, u.place, j.id
         from unnest($1::uuid[], $2::int[], $3::uuid[], $4::text[]) as u(job_id, place, needed, owner)
         join jobs j on j.id = u.needed and j.owner = u.owner and j.desired_state <> 'delete'
         for share of j
         returning job_id, place",
        &ids,
        &places,
        &needed,
        &owners,
    )
    .fetch_all(&mut **tx)
    .await?;
    let stored: HashSet<(Uuid, i32)> = stored.into_iter().map(|row| (row.job_id, row.place)).collect();
    let all = ids.into_iter().zip(places);
    let unknown = all.filter(|need| !stored.contains(need));
    Ok(unknown.map(|(job, place)| (JobId::new(job), usize::try_from(place).unwrap_or_default())).collect())
}

#[cfg(test)]
mod tests;

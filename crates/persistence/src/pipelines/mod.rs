//! Pipelines: jobs that are stored together, all or none.

use std::collections::HashMap;

use domain::{ClusterName, Job, JobId, Owner, Pipeline, PipelineCounts, PipelineId, Timestamp, Webhook};
use sqlx::{PgExecutor, Postgres, Transaction};

use crate::{
    callers::idempotency::Once,
    clusters::stored::hold_incarnation,
    error::{Result, StoreError},
    jobs::{
        insert::{NewJob, exact},
        lane::Lane,
        needs,
        queries::Viewer,
        rows::{self, select_jobs},
    },
    listen,
    statements::retry_rolled_back,
    store::Store,
    values::{StoredRow, count, to_json},
    webhooks,
};

/// A validated pipeline that is not stored yet.
#[derive(Debug)]
pub struct NewPipeline {
    pub pipeline: Pipeline,
    /// Its jobs; each names it in its specification.
    pub jobs: Vec<NewJob>,
    /// The receivers of status changes, by job.
    pub webhooks: Vec<(JobId, Webhook)>,
    /// The incarnations of those of its clusters that are in the database and not in the configuration file.
    pub incarnations: Vec<(ClusterName, i64)>,
    /// SHA-256 of the request, as of a job.
    pub request_hash: [u8; 32],
}

/// The result of an insert.
#[derive(Debug)]
pub enum InsertedPipeline {
    Created,
    /// The same owner has sent the same request with the same id before.
    Same,
    /// The id belongs to another request or another owner.
    Other,
    /// This job's id is taken.
    JobTaken(JobId),
    /// This cluster was deleted, or its name means another cluster now.
    ClusterGone(ClusterName),
    /// These needs, by job and place, name no job of the owner.
    NeedsUnknown(Vec<(JobId, usize)>),
    /// The idempotency key is already used.
    KeyUsed,
}

/// A page of pipelines, newest first.
#[derive(Debug)]
pub struct PipelinePage {
    pub pipelines: Vec<(Pipeline, PipelineCounts)>,
    /// The next page begins after this pipeline; `None` on the last page.
    pub next: Option<(Timestamp, PipelineId)>,
}

struct PipelineRow {
    id: uuid::Uuid,
    owner: String,
    name: Option<String>,
    labels: String,
    created_at: Timestamp,
}

impl TryFrom<PipelineRow> for Pipeline {
    type Error = StoreError;

    fn try_from(row: PipelineRow) -> Result<Self> {
        let stored = StoredRow::of("pipelines", &row.id);
        Ok(Self {
            id: PipelineId::new(row.id),
            owner: Owner::new(row.owner),
            name: stored.parse_any("name", row.name.as_ref())?,
            labels: stored.json("labels", &row.labels)?,
            created_at: row.created_at,
        })
    }
}

impl Store {
    /// Stores a pipeline with all its jobs, or nothing, and wakes the workers.
    pub async fn insert_pipeline(&self, new: &NewPipeline, once: Option<&Once>) -> Result<InsertedPipeline> {
        retry_rolled_back(|| async {
            let mut tx = self.begin().await?;
            let inserted = self.insert_in(&mut tx, new, once).await?;
            if matches!(inserted, InsertedPipeline::Created) {
                tx.commit().await?;
            }
            Ok(inserted)
        })
        .await
    }

    async fn insert_in(
        &self,
        tx: &mut Transaction<'_, Postgres>,
        new: &NewPipeline,
        once: Option<&Once>,
    ) -> Result<InsertedPipeline> {
        let NewPipeline { pipeline, jobs, webhooks, incarnations, request_hash } = new;
        let hash = self.sealer.code(request_hash);
        let stored = sqlx::query!(
            "-- pipelines::insert
             insert into pipelines (id, owner, name, labels, request_hash, created_at) values ($1, $2, $3, $4, $5, $6)
             on conflict (id) do nothing",
            pipeline.id.get(),
            pipeline.owner.as_str(),
            pipeline.name.as_ref().map(domain::Label::as_str),
            to_json("labels", &pipeline.labels)?,
            &hash[..],
            exact(pipeline.created_at),
        );
        if stored.execute(&mut **tx).await?.rows_affected() == 0 {
            let known = self.stored_before(&mut **tx, pipeline.id, &pipeline.owner, request_hash).await?;
            return Ok(known.unwrap_or(InsertedPipeline::Other));
        }
        for (cluster, incarnation) in incarnations {
            // The cluster cannot be deleted before the end of this transaction.
            if !hold_incarnation(tx, cluster, *incarnation).await? {
                return Ok(InsertedPipeline::ClusterGone(cluster.clone()));
            }
        }
        let rows: Vec<&NewJob> = jobs.iter().collect();
        let stored = self.insert_rows(&mut **tx, &rows).await?;
        if let Some(taken) = jobs.iter().find(|new| !stored.contains(&new.job.id)) {
            return Ok(InsertedPipeline::JobTaken(taken.job.id));
        }
        let jobs: Vec<&Job> = jobs.iter().map(|new| &new.job).collect();
        let unknown = needs::add(tx, &jobs).await?;
        if !unknown.is_empty() {
            return Ok(InsertedPipeline::NeedsUnknown(unknown));
        }
        for job in jobs {
            if let Some((_, webhook)) = webhooks.iter().find(|(id, _)| *id == job.id) {
                webhooks::add(tx, &self.sealer, job, webhook).await?;
            }
        }
        // The key stores the id of what its answer was about.
        if let Some(once) = once
            && !self.keep_answer(tx, once, JobId::new(pipeline.id.get()), 201).await?
        {
            return Ok(InsertedPipeline::KeyUsed);
        }
        Ok(InsertedPipeline::Created)
    }

    /// Whether this id is taken, by the same request or by another one.
    pub async fn known_pipeline(
        &self,
        id: PipelineId,
        owner: &Owner,
        request_hash: &[u8; 32],
    ) -> Result<Option<InsertedPipeline>> {
        self.stored_before(&self.pool, id, owner, request_hash).await
    }

    async fn stored_before(
        &self,
        db: impl PgExecutor<'_>,
        id: PipelineId,
        owner: &Owner,
        request_hash: &[u8; 32],
    ) -> Result<Option<InsertedPipeline>> {
        let same = sqlx::query_scalar!(
            r#"-- pipelines::stored_before
               select owner = $2 and request_hash = $3 as "same!" from pipelines where id = $1"#,
            id.get(),
            owner.as_str(),
            &self.sealer.code(request_hash)[..],
        );
        let same = same.fetch_optional(db).await?;
        Ok(same.map(|same| if same { InsertedPipeline::Same } else { InsertedPipeline::Other }))
    }

    /// One whose jobs are all deleted is gone.
    pub async fn find_pipeline(&self, id: PipelineId, viewer: &Viewer) -> Result<Option<Pipeline>> {
        let row = sqlx::query_as!(
            PipelineRow,
            r#"-- pipelines::find_pipeline
               select id, owner, name, labels::text as "labels!", created_at from pipelines
               where id = $1 and ($2::text is null or owner = $2)
                 and exists (select from jobs j where j.spec #>> '{pipeline,id}' = pipelines.id::text)"#,
            id.get(),
            viewer.owner(),
        );
        row.fetch_optional(&self.pool).await?.map(Pipeline::try_from).transpose()
    }

    /// The jobs of a pipeline that are not deleted, each after those that it needs.
    pub async fn pipeline_jobs(&self, id: PipelineId) -> Result<Vec<Job>> {
        // The order forces a plan from which the macro infers that the columns of jobs are not null.
        let rows = select_jobs!(
            "pipelines::pipeline_jobs",
            "where j.spec #>> '{pipeline,id}' = $1 and j.desired_state <> 'delete' order by j.id limit 10000",
            id.to_string(),
        );
        let mut jobs = rows::readable(rows.fetch_all(&self.pool).await?).0;
        jobs.sort_by_key(|job| job.spec.pipeline.as_ref().map(|member| member.place));
        Ok(jobs)
    }

    pub async fn list_pipelines(
        &self,
        viewer: &Viewer,
        before: Option<(Timestamp, PipelineId)>,
        limit: u32,
    ) -> Result<PipelinePage> {
        let (before_time, before_id) = before.map(|(time, id)| (time, id.get())).unzip();
        let rows = sqlx::query_as!(
            PipelineRow,
            r#"-- pipelines::list_pipelines
               select id, owner, name, labels::text as "labels!", created_at from pipelines
               where ($1::text is null or owner = $1)
                 and exists (select from jobs j where j.spec #>> '{pipeline,id}' = pipelines.id::text)
                 and ($2::timestamptz is null or (created_at, id) < ($2, $3::uuid))
               order by created_at desc, id desc limit $4"#,
            viewer.owner(),
            before_time,
            before_id,
            // One more than the page shows: its presence means that there is another page.
            i64::from(limit) + 1,
        );
        let mut pipelines = rows
            .fetch_all(&self.pool)
            .await?
            .into_iter()
            .map(Pipeline::try_from)
            .collect::<Result<Vec<_>>>()?;
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let more = pipelines.len() > limit;
        pipelines.truncate(limit);
        let next = pipelines.last().filter(|_| more).map(|last| (last.created_at, last.id));
        let ids: Vec<_> = pipelines.iter().map(|pipeline| pipeline.id).collect();
        let mut counts = self.pipeline_counts(&ids).await?;
        let counted = |pipeline: Pipeline| {
            let counts = counts.remove(&pipeline.id).unwrap_or_default();
            (pipeline, counts)
        };
        Ok(PipelinePage { pipelines: pipelines.into_iter().map(counted).collect(), next })
    }

    async fn pipeline_counts(&self, ids: &[PipelineId]) -> Result<HashMap<PipelineId, PipelineCounts>> {
        let texts: Vec<_> = ids.iter().map(ToString::to_string).collect();
        let rows = sqlx::query!(
            r#"-- pipelines::pipeline_counts
               select j.spec #>> '{pipeline,id}' as "pipeline!", j.status,
                      j.skipped,
                      j.started_at is not null as "begun!", count(*) as "jobs!"
               from jobs j
               where j.spec #>> '{pipeline,id}' = any($1) and j.desired_state <> 'delete'
               group by 1, 2, 3, 4"#,
            &texts,
        );
        let mut counts: HashMap<PipelineId, PipelineCounts> = HashMap::new();
        for row in rows.fetch_all(&self.pool).await? {
            let stored = StoredRow::of("jobs", &row.pipeline);
            let id = stored.parse("spec", &row.pipeline)?;
            let jobs = count(row.jobs);
            counts.entry(id).or_default().add(
                stored.parse("status", &row.status)?,
                row.skipped,
                row.begun,
                jobs,
            );
        }
        Ok(counts)
    }

    /// Requests to cancel all jobs of a pipeline that have not ended. Returns how many.
    pub async fn cancel_pipeline(&self, id: PipelineId, now: Timestamp) -> Result<usize> {
        retry_rolled_back(|| self.try_cancel_pipeline(id, now)).await
    }

    async fn try_cancel_pipeline(&self, id: PipelineId, now: Timestamp) -> Result<usize> {
        let mut tx = self.begin().await?;
        let canceled = sqlx::query!(
            "-- pipelines::cancel_pipeline
             update jobs
             set desired_state = 'cancel', status = 'Canceling', message = 'Canceling.', due_at = now(), last_modified = $2,
                 version = version + 1, updated_by = 'cancel_pipeline'
             where spec #>> '{pipeline,id}' = $1 and phase <> 'ended' and desired_state in ('run', 'pause')
             returning cluster, phase",
            id.to_string(),
            now,
        )
        .fetch_all(&mut *tx)
        .await?;
        let mut woken = Vec::new();
        for row in &canceled {
            let lane = row.phase.parse().ok().map(Lane::of);
            if !woken.contains(&(&row.cluster, lane)) {
                woken.push((&row.cluster, lane));
                if let Ok(cluster) = row.cluster.parse() {
                    listen::wake(&mut tx, &cluster, lane).await?;
                }
            }
        }
        tx.commit().await?;
        Ok(canceled.len())
    }

    /// Deletes the rows of pipelines whose jobs are all deleted.
    pub async fn delete_empty_pipelines(&self) -> Result<u64> {
        let deleted = sqlx::query!(
            "-- pipelines::delete_empty_pipelines
             delete from pipelines p
             where not exists (select from jobs j where j.spec #>> '{pipeline,id}' = p.id::text)",
        );
        Ok(deleted.execute(&self.pool).await?.rows_affected())
    }
}

#[cfg(test)]
mod tests;

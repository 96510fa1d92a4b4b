//! The runs of jobs with an array: a job may have thousands, and most of its tasks that wait have none.
//!
//! Polls write a run until it is over, and the step that concludes it after that (see [`steps`](super::steps)). A poll only makes the
//! job of a changed run due: its status follows from the counts in its next step.

use std::collections::HashMap;

use domain::{Attempt, AttemptNo, Job, JobId, Run, Timestamp};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::{
    error::Result,
    jobs::{
        documents::line_documents,
        rows::{self, select_attempts},
    },
    store::Store,
    values::StoredRow,
};

pub(crate) mod ended;
pub(crate) mod newest;
pub(crate) mod polled;

/// Selects whole runs; `$first` comes before the columns, and `$tail` is the rest of the statement.
///
/// A macro, because the checked SQL macros take literals only, and the list of columns is the same everywhere.
macro_rules! select_runs {
    ($name:literal, $first:literal, $tail:literal $(, $arg:expr)* $(,)?) => {
        sqlx::query_as!(
            $crate::jobs::tasks::RunRow,
            "-- " + $name + "
             select " + $first + " r.job_id, r.attempt, r.task, r.slurm_state, r.exit_code, r.exit_signal, r.nodes, r.reason, r.partition,
                    r.status_files::text as \"status_files!\", r.progress::text as \"progress!\", r.activity::text as activity,
                    r.usage::text as usage, r.kill_reason, r.queued_since, r.estimated_start, r.started_at, r.ended_at, r.missing_since,
                    r.requeues, r.ran_before, r.waits_again, r.source, r.over, r.over_since
             from runs r " + $tail
            $(, $arg)*
        )
    };
}
use select_runs;

struct RunRow {
    job_id: Uuid,
    attempt: i32,
    task: i32,
    slurm_state: Option<String>,
    exit_code: Option<i16>,
    exit_signal: Option<i16>,
    nodes: Option<String>,
    reason: Option<String>,
    partition: Option<String>,
    status_files: String,
    progress: String,
    activity: Option<String>,
    usage: Option<String>,
    kill_reason: Option<String>,
    queued_since: Option<Timestamp>,
    estimated_start: Option<Timestamp>,
    started_at: Option<Timestamp>,
    ended_at: Option<Timestamp>,
    missing_since: Option<Timestamp>,
    requeues: i32,
    ran_before: Option<i32>,
    waits_again: bool,
    source: Option<String>,
    over: bool,
    over_since: Option<Timestamp>,
}

impl RunRow {
    fn read(self) -> Result<(JobId, AttemptNo, Run, Option<Timestamp>)> {
        let key = format!("{}/{}/{}", self.job_id, self.attempt, self.task);
        let stored = StoredRow::of("runs", &key);
        let run = Run {
            task: stored.number("task", self.task)?,
            state: stored.parse_any("slurm_state", self.slurm_state.as_ref())?,
            exit: stored.exit(self.exit_code, self.exit_signal)?,
            nodes: self.nodes,
            reason: self.reason,
            partition: self.partition,
            status: stored.json("status_files", &self.status_files)?,
            progress: stored.json("progress", &self.progress)?,
            activity: self.activity.and_then(|text| serde_json::from_str(&text).ok()),
            usage: self.usage.and_then(|text| serde_json::from_str(&text).ok()),
            kill_reason: self.kill_reason,
            queued_since: self.queued_since,
            estimated_start: self.estimated_start,
            started_at: self.started_at,
            ended_at: self.ended_at,
            missing_since: self.missing_since,
            requeues: stored.number("requeues", self.requeues)?,
            ran_before: stored.number("ran_before", self.ran_before.unwrap_or_default())?,
            waits_again: self.waits_again,
            source: stored.parse_any("source", self.source.as_ref())?,
            is_over: self.over,
            failure: None,
            results: None,
        };
        Ok((JobId::new(self.job_id), stored.attempt_no(self.attempt)?, run, self.over_since))
    }
}

/// The runs that can be read: one that cannot does not hold up the others.
fn readable(rows: Vec<RunRow>) -> impl Iterator<Item = (JobId, AttemptNo, Run, Option<Timestamp>)> {
    rows.into_iter().filter_map(|row| {
        row.read()
            .inspect_err(|error| tracing::error!(%error, "a stored run cannot be read; it is skipped"))
            .ok()
    })
}

impl Store {
    /// Loads the attempts in Slurm before the newest one of each job with an array.
    pub(crate) async fn attach_earlier(&self, jobs: &mut [Job]) -> Result<()> {
        let ids: Vec<Uuid> = jobs.iter().filter(|job| job.array.is_some()).map(|job| job.id.get()).collect();
        if ids.is_empty() {
            return Ok(());
        }
        let rows = select_attempts!(
            "jobs::tasks::attach_earlier",
            "a.outcome is null and a.attempt <> j.attempt and a.slurm_job_id is not null",
            "where j.id = any($1) and a.attempt is not null order by a.attempt",
            &ids,
        )
        .fetch_all(&self.pool)
        .await?;
        let mut earlier: HashMap<JobId, Vec<Attempt>> = HashMap::new();
        for job in rows::readable(rows).0 {
            if let Some(attempt) = job.attempt {
                earlier.entry(job.id).or_default().push(attempt);
            }
        }
        for job in jobs {
            if let Some(array) = &mut job.array {
                array.earlier = earlier.remove(&job.id).unwrap_or_default();
            }
        }
        Ok(())
    }
}

/// The events of several runs of each job, numbered from 1 for each job.
fn lines<'a>(runs: impl Iterator<Item = (JobId, AttemptNo, &'a Run)>) -> Vec<Value> {
    let mut numbers: HashMap<JobId, u64> = HashMap::new();
    let mut lines = Vec::new();
    for (job, attempt, run) in runs {
        for mut line in line_documents(job, attempt, run) {
            let number = numbers.entry(job).or_default();
            *number += 1;
            line["seq"] = json!(number);
            lines.push(line);
        }
    }
    lines
}

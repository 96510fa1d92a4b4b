//! Rows to domain values.

use std::str::FromStr;

use domain::{
    Attempt, AttemptNo, Job, JobId, LaunchImage, Owner, StatusFiles, SubmitFence, Timestamp, Verdict,
};
use slurm::{ExitCode, NodeName, SlurmJobId};
use uuid::Uuid;

use crate::error::StoreError;

/// Selects whole jobs, each with its newest attempt; `$tail` is the rest of the statement.
///
/// A macro because the checked SQL macros take literals only, and this list must not be written four times.
macro_rules! select_jobs {
    ($name:literal, $tail:literal $(, $arg:expr)* $(,)?) => {
        $crate::jobs::rows::select_attempts!($name, "a.attempt = j.attempt", $tail $(, $arg)*)
    };
}
pub(crate) use select_jobs;

/// The same with those of its attempts that `$which` names, each in a row of its own.
macro_rules! select_attempts {
    ($name:literal, $which:literal, $tail:literal $(, $arg:expr)* $(,)?) => {
        sqlx::query_as!(
            $crate::jobs::rows::JobRow,
            "-- " + $name + "
             select j.id, j.owner, j.cluster, j.spec::text as \"spec!\", j.desired_state, j.status, j.phase, j.message, j.pending_reason,
                    j.retry_count, j.failures::text as \"failures!\", j.progress::text as \"progress!\", j.activity::text as activity, j.kill_reason, j.missing_since, j.finishing_since, j.created_at, j.submitted_at, j.started_at,
                    j.finished_at, j.last_modified, j.observed_at, j.source, j.version,
                    a.attempt as \"attempt?\", a.token as \"token?\", a.job_dir as \"job_dir?\", a.slurm_job_id, a.slurm_state, a.exit_code,
                    a.exit_signal, a.nodes, a.reason, a.partition, a.status_files::text as \"status_files?\",
                    a.intended_at as \"intended_at?\", a.submit_fence as \"submit_fence?\",
                    a.submit_fence_cleared as \"submit_fence_cleared?\", a.submit_fence_shut_at,
                    a.submitted_at as attempt_submitted_at,
                    a.queued_since, a.estimated_start, a.started_at as attempt_started_at, a.ended_at,
                    a.setbacks as \"setbacks?\", a.absent_at, a.excluded_nodes as \"excluded_nodes?\",
                    a.requeues as \"requeues?\", a.requeue_unexplained as \"requeue_unexplained?\",
                    a.concluded_at, a.outcome, a.why, a.rule, a.matched_line, a.image, a.image_note
             from jobs j left join slurm_metadata a on a.job_id = j.id and " + $which + "
             " + $tail
            $(, $arg)*
        )
    };
}
pub(crate) use select_attempts;

/// A job and its newest attempt, as they are stored.
#[derive(Debug)]
pub(crate) struct JobRow {
    pub(crate) id: Uuid,
    pub(crate) owner: String,
    pub(crate) cluster: String,
    /// As text: a document that cannot be read must cost its own row, not the whole statement.
    pub(crate) spec: String,
    pub(crate) desired_state: String,
    pub(crate) status: String,
    pub(crate) phase: String,
    pub(crate) message: String,
    pub(crate) pending_reason: Option<String>,
    pub(crate) retry_count: i32,
    pub(crate) failures: String,
    pub(crate) progress: String,
    pub(crate) activity: Option<String>,
    pub(crate) kill_reason: Option<String>,
    pub(crate) missing_since: Option<Timestamp>,
    pub(crate) finishing_since: Option<Timestamp>,
    pub(crate) created_at: Timestamp,
    pub(crate) submitted_at: Option<Timestamp>,
    pub(crate) started_at: Option<Timestamp>,
    pub(crate) finished_at: Option<Timestamp>,
    pub(crate) last_modified: Timestamp,
    pub(crate) observed_at: Option<Timestamp>,
    pub(crate) source: String,
    pub(crate) version: i64,
    pub(crate) attempt: Option<i32>,
    pub(crate) token: Option<String>,
    pub(crate) job_dir: Option<String>,
    pub(crate) slurm_job_id: Option<i64>,
    pub(crate) slurm_state: Option<String>,
    pub(crate) exit_code: Option<i16>,
    pub(crate) exit_signal: Option<i16>,
    pub(crate) nodes: Option<String>,
    pub(crate) reason: Option<String>,
    pub(crate) partition: Option<String>,
    pub(crate) status_files: Option<String>,
    pub(crate) intended_at: Option<Timestamp>,
    pub(crate) submit_fence: Option<i32>,
    pub(crate) submit_fence_cleared: Option<i32>,
    pub(crate) submit_fence_shut_at: Option<Timestamp>,
    pub(crate) attempt_submitted_at: Option<Timestamp>,
    pub(crate) queued_since: Option<Timestamp>,
    pub(crate) estimated_start: Option<Timestamp>,
    pub(crate) attempt_started_at: Option<Timestamp>,
    pub(crate) ended_at: Option<Timestamp>,
    pub(crate) setbacks: Option<i32>,
    pub(crate) absent_at: Option<Timestamp>,
    pub(crate) excluded_nodes: Option<Vec<String>>,
    pub(crate) requeues: Option<i32>,
    pub(crate) requeue_unexplained: Option<bool>,
    pub(crate) concluded_at: Option<Timestamp>,
    pub(crate) outcome: Option<String>,
    pub(crate) why: Option<String>,
    pub(crate) rule: Option<String>,
    pub(crate) matched_line: Option<String>,
    pub(crate) image: Option<String>,
    pub(crate) image_note: Option<String>,
}

/// Names the cell that could not be read.
pub(crate) struct Cell {
    pub(crate) table: &'static str,
    pub(crate) row: Uuid,
}

impl Cell {
    pub(crate) fn corrupt(&self, column: &'static str) -> StoreError {
        StoreError::Corrupt { table: self.table, column, row: self.row.to_string() }
    }

    pub(crate) fn parse<T: FromStr>(&self, column: &'static str, text: &str) -> Result<T, StoreError> {
        text.parse().map_err(|_| self.corrupt(column))
    }

    pub(crate) fn number<T: TryFrom<i64>>(
        &self,
        column: &'static str,
        number: impl Into<i64>,
    ) -> Result<T, StoreError> {
        T::try_from(number.into()).map_err(|_| self.corrupt(column))
    }
}

impl TryFrom<JobRow> for Job {
    type Error = StoreError;

    fn try_from(row: JobRow) -> Result<Self, StoreError> {
        let cell = Cell { table: "jobs", row: row.id };
        Ok(Self {
            id: JobId::new(row.id),
            cluster: cell.parse("cluster", &row.cluster)?,
            spec: serde_json::from_str(&row.spec).map_err(|_| cell.corrupt("spec"))?,
            desired: cell.parse("desired_state", &row.desired_state)?,
            status: cell.parse("status", &row.status)?,
            phase: cell.parse("phase", &row.phase)?,
            retry_count: cell.number("retry_count", row.retry_count)?,
            failures: serde_json::from_str(&row.failures).map_err(|_| cell.corrupt("failures"))?,
            progress: serde_json::from_str(&row.progress).map_err(|_| cell.corrupt("progress"))?,
            // What cannot be read of it is seen anew.
            activity: row.activity.as_deref().and_then(|text| serde_json::from_str(text).ok()),
            source: cell.parse("source", &row.source)?,
            attempt: attempt(&row)?,
            owner: Owner::new(row.owner),
            message: row.message,
            pending_reason: row.pending_reason,
            kill_reason: row.kill_reason,
            missing_since: row.missing_since,
            finishing_since: row.finishing_since,
            created_at: row.created_at,
            submitted_at: row.submitted_at,
            started_at: row.started_at,
            finished_at: row.finished_at,
            last_modified: row.last_modified,
            observed_at: row.observed_at,
            version: row.version,
        })
    }
}

fn attempt(row: &JobRow) -> Result<Option<Attempt>, StoreError> {
    let cell = Cell { table: "slurm_metadata", row: row.id };
    let (Some(no), Some(token), Some(job_dir), Some(intended_at)) =
        (row.attempt, &row.token, &row.job_dir, row.intended_at)
    else {
        return Ok(None);
    };
    let slurm_id = match row.slurm_job_id {
        Some(id) => Some(slurm_id(&cell, id)?),
        None => None,
    };
    let status = match &row.status_files {
        Some(text) => serde_json::from_str(text).map_err(|_| cell.corrupt("status_files"))?,
        None => StatusFiles::default(),
    };
    let exit = match (row.exit_code, row.exit_signal) {
        (Some(code), Some(signal)) => Some(ExitCode {
            code: cell.number("exit_code", code)?,
            signal: cell.number("exit_signal", signal)?,
        }),
        _ => None,
    };
    Ok(Some(Attempt {
        no: AttemptNo::new(cell.number("attempt", no)?).ok_or_else(|| cell.corrupt("attempt"))?,
        token: cell.parse("token", token)?,
        job_dir: cell.parse("job_dir", job_dir)?,
        slurm_id,
        slurm_state: row.slurm_state.as_deref().map(|text| cell.parse("slurm_state", text)).transpose()?,
        exit,
        nodes: row.nodes.clone(),
        reason: row.reason.clone(),
        partition: row.partition.clone(),
        status,
        intended_at,
        fence: SubmitFence {
            newest: cell.number("submit_fence", row.submit_fence.unwrap_or_default())?,
            cleared: cell.number("submit_fence_cleared", row.submit_fence_cleared.unwrap_or_default())?,
            shut_at: row.submit_fence_shut_at,
            absent_at: row.absent_at,
        },
        submitted_at: row.attempt_submitted_at,
        queued_since: row.queued_since,
        estimated_start: row.estimated_start,
        started_at: row.attempt_started_at,
        ended_at: row.ended_at,
        setbacks: cell.number("setbacks", row.setbacks.unwrap_or_default())?,
        excluded: excluded(&cell, row.excluded_nodes.as_deref().unwrap_or_default())?,
        requeues: cell.number("requeues", row.requeues.unwrap_or_default())?,
        requeue_unexplained: row.requeue_unexplained.unwrap_or_default(),
        verdict: verdict(&cell, row)?,
        image: match &row.image {
            Some(text) => {
                Some(LaunchImage { image: cell.parse("image", text)?, note: row.image_note.clone() })
            }
            None => None,
        },
    }))
}

fn excluded(cell: &Cell, names: &[String]) -> Result<Vec<NodeName>, StoreError> {
    names.iter().map(|name| cell.parse("excluded_nodes", name)).collect()
}

fn verdict(cell: &Cell, row: &JobRow) -> Result<Option<Verdict>, StoreError> {
    let (Some(at), Some(outcome)) = (row.concluded_at, &row.outcome) else { return Ok(None) };
    Ok(Some(Verdict {
        at,
        outcome: cell.parse("outcome", outcome)?,
        why: row.why.clone().unwrap_or_default(),
        rule: row.rule.clone(),
        line: row.matched_line.clone(),
    }))
}

pub(crate) fn slurm_id(cell: &Cell, id: i64) -> Result<SlurmJobId, StoreError> {
    SlurmJobId::new(cell.number("slurm_job_id", id)?).ok_or_else(|| cell.corrupt("slurm_job_id"))
}

/// The jobs that can be read, and the ids of the rows that cannot: one bad row must not hold up the others.
pub(crate) fn readable(rows: Vec<JobRow>) -> (Vec<Job>, Vec<Uuid>) {
    let (mut jobs, mut corrupt) = (Vec::with_capacity(rows.len()), Vec::new());
    for row in rows {
        let id = row.id;
        match Job::try_from(row) {
            Ok(job) => jobs.push(job),
            Err(error) => {
                tracing::error!(job.id = %id, error = %error, "a stored job cannot be read; it is left alone");
                corrupt.push(id);
            }
        }
    }
    (jobs, corrupt)
}

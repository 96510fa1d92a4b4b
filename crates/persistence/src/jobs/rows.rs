//! Rows of jobs, attempts and runs to domain values.

use domain::{ArrayState, Attempt, Failure, Job, JobId, Owner, Run, Timestamp, Verdict};
use uuid::Uuid;

use crate::{
    error::{Result, StoreError},
    values::StoredRow,
};

/// Selects whole jobs, each with its newest attempt and run; `$tail` is the rest of the statement, in one piece or several.
///
/// A macro, because the checked SQL macros take literals only, and the list of columns is the same everywhere.
macro_rules! select_jobs {
    ($name:literal, $($tail:literal)+ $(, $arg:expr)* $(,)?) => {
        $crate::jobs::rows::select_attempts!($name, "a.attempt = j.attempt", $($tail)+ $(, $arg)*)
    };
}
pub(crate) use select_jobs;

/// Selects whole jobs, with one row for each attempt that meets the condition `$which`. The failure of an array is that of its first task
/// that failed.
macro_rules! select_attempts {
    ($name:literal, $which:literal, $($tail:literal)+ $(, $arg:expr)* $(,)?) => {
        sqlx::query_as!(
            $crate::jobs::rows::JobRow,
            "-- " + $name + "
             select j.id, j.owner, j.cluster, j.spec::text as \"spec!\", j.desired_state, j.status, j.phase, j.message,
                    j.pending_reason, j.retry_count, j.failures::text as \"failures!\", j.finishing_since, j.created_at,
                    j.submitted_at, j.started_at, j.finished_at, j.last_modified, j.observed_at, j.source, j.version, j.array_state::text as array_state, j.canceled_tasks,
                    j.skipped,
                    a.attempt as \"attempt?\", a.token as \"token?\", a.job_dir as \"job_dir?\", a.tasks as \"tasks?\", a.base as \"base?\",
                    a.slurm_job_id, a.intended_at as \"intended_at?\",
                    a.submit_fence as \"submit_fence?\", a.submit_fence_cleared as \"submit_fence_cleared?\",
                    a.submit_fence_shut_at, a.absent_at, a.failed_submissions as \"failed_submissions?\",
                    a.submitted_at as attempt_submitted_at,
                    a.excluded_nodes as \"excluded_nodes?\", a.explained_requeues as \"explained_requeues?\",
                    a.ahead_closed as \"ahead_closed?\",
                    a.concluded_at, a.outcome, a.why, a.rule, a.matched_line, a.images::text as \"images?\",
                    r.slurm_state, r.exit_code, r.exit_signal, r.nodes, r.reason, r.partition,
                    r.status_files::text as \"status_files?\", r.progress::text as \"progress?\",
                    r.activity::text as activity, r.usage::text as usage, r.kill_reason, r.queued_since, r.estimated_start,
                    r.started_at as run_started_at, r.ended_at, r.missing_since, r.requeues as \"requeues?\",
                    r.ran_before, r.waits_again as \"waits_again?\", r.source as run_source, r.over as \"over?\",
                    (case when j.array_state is null then r.failure
                          when j.status = 'Error'
                          then (select f.failure from runs f
                                where f.job_id = j.id and f.outcome = 'error' and not f.superseded and f.failure is not null
                                order by f.task limit 1) end)::text as failure
             from jobs j left join slurm_metadata a on a.job_id = j.id and " + $which + "
             left join runs r on r.job_id = j.id and r.attempt = a.attempt and r.task = 0
             " $(+ $tail)+
            $(, $arg)*
        )
    };
}
pub(crate) use select_attempts;

/// A job, one attempt and its run, as they are stored.
#[derive(Debug)]
pub(crate) struct JobRow {
    pub(crate) id: Uuid,
    pub(crate) owner: String,
    pub(crate) cluster: String,
    /// Documents are text: one that cannot be read fails its own row, not the whole statement.
    pub(crate) spec: String,
    pub(crate) desired_state: String,
    pub(crate) status: String,
    pub(crate) phase: String,
    pub(crate) message: String,
    pub(crate) pending_reason: Option<String>,
    pub(crate) retry_count: i32,
    pub(crate) failures: String,
    pub(crate) finishing_since: Option<Timestamp>,
    pub(crate) created_at: Timestamp,
    pub(crate) submitted_at: Option<Timestamp>,
    pub(crate) started_at: Option<Timestamp>,
    pub(crate) finished_at: Option<Timestamp>,
    pub(crate) last_modified: Timestamp,
    pub(crate) observed_at: Option<Timestamp>,
    pub(crate) source: String,
    pub(crate) version: i64,
    pub(crate) array_state: Option<String>,
    pub(crate) canceled_tasks: String,
    pub(crate) skipped: bool,
    pub(crate) attempt: Option<i32>,
    pub(crate) token: Option<String>,
    pub(crate) job_dir: Option<String>,
    pub(crate) tasks: Option<String>,
    pub(crate) base: Option<i32>,
    pub(crate) slurm_job_id: Option<i64>,
    pub(crate) intended_at: Option<Timestamp>,
    pub(crate) submit_fence: Option<i32>,
    pub(crate) submit_fence_cleared: Option<i32>,
    pub(crate) submit_fence_shut_at: Option<Timestamp>,
    pub(crate) attempt_submitted_at: Option<Timestamp>,
    pub(crate) failed_submissions: Option<i32>,
    pub(crate) absent_at: Option<Timestamp>,
    pub(crate) excluded_nodes: Option<Vec<String>>,
    pub(crate) explained_requeues: Option<i32>,
    pub(crate) ahead_closed: Option<bool>,
    pub(crate) concluded_at: Option<Timestamp>,
    pub(crate) outcome: Option<String>,
    pub(crate) why: Option<String>,
    pub(crate) rule: Option<String>,
    pub(crate) matched_line: Option<String>,
    pub(crate) images: Option<String>,
    pub(crate) slurm_state: Option<String>,
    pub(crate) exit_code: Option<i16>,
    pub(crate) exit_signal: Option<i16>,
    pub(crate) nodes: Option<String>,
    pub(crate) reason: Option<String>,
    pub(crate) partition: Option<String>,
    pub(crate) status_files: Option<String>,
    pub(crate) progress: Option<String>,
    pub(crate) activity: Option<String>,
    pub(crate) usage: Option<String>,
    pub(crate) kill_reason: Option<String>,
    pub(crate) queued_since: Option<Timestamp>,
    pub(crate) estimated_start: Option<Timestamp>,
    pub(crate) run_started_at: Option<Timestamp>,
    pub(crate) ended_at: Option<Timestamp>,
    pub(crate) missing_since: Option<Timestamp>,
    pub(crate) requeues: Option<i32>,
    pub(crate) ran_before: Option<i32>,
    pub(crate) waits_again: Option<bool>,
    pub(crate) run_source: Option<String>,
    pub(crate) over: Option<bool>,
    pub(crate) failure: Option<String>,
}

impl JobRow {
    /// Takes the failure out of the row. One that cannot be read is not shown; the verdict stands.
    fn failure(&mut self) -> Option<Failure> {
        serde_json::from_str(&self.failure.take()?).ok()
    }
}

impl TryFrom<JobRow> for Job {
    type Error = StoreError;

    fn try_from(mut row: JobRow) -> Result<Self> {
        let id = row.id;
        let stored = StoredRow::of("jobs", &id);
        Ok(Self {
            attempt: attempt(&mut row)?,
            run: if row.array_state.is_some() { Run::default() } else { run(&mut row)? },
            array: array(&mut row)?,
            id: JobId::new(id),
            owner: Owner::new(row.owner),
            cluster: stored.parse("cluster", &row.cluster)?,
            spec: stored.json("spec", &row.spec)?,
            desired: stored.parse("desired_state", &row.desired_state)?,
            status: stored.parse("status", &row.status)?,
            phase: stored.parse("phase", &row.phase)?,
            message: row.message,
            pending_reason: row.pending_reason,
            retry_count: stored.number("retry_count", row.retry_count)?,
            failures: stored.json("failures", &row.failures)?,
            is_skipped: row.skipped,
            finishing_since: row.finishing_since,
            created_at: row.created_at,
            submitted_at: row.submitted_at,
            started_at: row.started_at,
            finished_at: row.finished_at,
            last_modified: row.last_modified,
            observed_at: row.observed_at,
            source: stored.parse("source", &row.source)?,
            version: row.version,
        })
    }
}

/// The state of the job's array; `None` when it has none.
fn array(row: &mut JobRow) -> Result<Option<ArrayState>> {
    let id = row.id;
    let stored = StoredRow::of("jobs", &id);
    let Some(state) = row.array_state.take() else { return Ok(None) };
    let failure = row.failure();
    let withdrawn = stored.parse("canceled_tasks", &row.canceled_tasks)?;
    Ok(Some(ArrayState { withdrawn, failure, ..stored.json("array_state", &state)? }))
}

/// Takes the attempt out of the row; `None` when the row has none.
fn attempt(row: &mut JobRow) -> Result<Option<Attempt>> {
    let id = row.id;
    let stored = StoredRow::of("slurm_metadata", &id);
    let (Some(no), Some(token), Some(job_dir), Some(tasks), Some(intended_at)) =
        (row.attempt, &row.token, &row.job_dir, &row.tasks, row.intended_at)
    else {
        return Ok(None);
    };
    let number = |column, number: Option<i32>| stored.number(column, number.unwrap_or_default());
    let excluded = row.excluded_nodes.take().unwrap_or_default();
    let images = row.images.as_deref().map(|text| stored.json("images", text)).transpose()?;
    Ok(Some(Attempt {
        no: stored.attempt_no(no)?,
        token: stored.parse("token", token)?,
        job_dir: stored.parse("job_dir", job_dir)?,
        slurm_id: stored.slurm_id(row.slurm_job_id)?,
        tasks: stored.parse("tasks", tasks)?,
        base: number("base", row.base)?,
        intended_at,
        fence: stored.fence(
            row.submit_fence.unwrap_or_default(),
            row.submit_fence_cleared.unwrap_or_default(),
            row.submit_fence_shut_at,
            row.absent_at,
        )?,
        submitted_at: row.attempt_submitted_at,
        setbacks: number("failed_submissions", row.failed_submissions)?,
        excluded: excluded.iter().map(|name| stored.parse("excluded_nodes", name)).collect::<Result<_>>()?,
        explained_requeues: number("explained_requeues", row.explained_requeues)?,
        ahead_closed: row.ahead_closed.unwrap_or_default(),
        verdict: match row.concluded_at.zip(row.outcome.as_ref()) {
            Some((at, outcome)) => Some(Verdict {
                at,
                outcome: stored.parse("outcome", outcome)?,
                why: row.why.take().unwrap_or_default(),
                rule: row.rule.take(),
                line: row.matched_line.take(),
            }),
            None => None,
        },
        images: images.unwrap_or_default(),
    }))
}

/// Takes the run out of the row. One without a row has not been seen.
fn run(row: &mut JobRow) -> Result<Run> {
    let id = row.id;
    let stored = StoredRow::of("runs", &id);
    let (Some(status), Some(progress)) = (&row.status_files, &row.progress) else {
        return Ok(Run::default());
    };
    Ok(Run {
        task: 0,
        state: stored.parse_any("slurm_state", row.slurm_state.as_ref())?,
        exit: stored.exit(row.exit_code, row.exit_signal)?,
        nodes: row.nodes.take(),
        reason: row.reason.take(),
        partition: row.partition.take(),
        status: stored.json("status_files", status)?,
        progress: stored.json("progress", progress)?,
        // An activity that cannot be read is observed again.
        activity: row.activity.take().and_then(|text| serde_json::from_str(&text).ok()),
        usage: row.usage.take().and_then(|text| serde_json::from_str(&text).ok()),
        kill_reason: row.kill_reason.take(),
        queued_since: row.queued_since,
        estimated_start: row.estimated_start,
        started_at: row.run_started_at,
        ended_at: row.ended_at,
        missing_since: row.missing_since,
        requeues: stored.number("requeues", row.requeues.unwrap_or_default())?,
        ran_before: stored.number("ran_before", row.ran_before.unwrap_or_default())?,
        waits_again: row.waits_again.unwrap_or_default(),
        source: stored.parse_any("source", row.run_source.as_ref())?,
        is_over: row.over.unwrap_or_default(),
        failure: row.failure(),
        results: None,
    })
}

/// The jobs that can be read, and the ids of the rows that cannot: one bad row does not hold up the others.
pub(crate) fn readable(rows: Vec<JobRow>) -> (Vec<Job>, Vec<Uuid>) {
    let (mut jobs, mut corrupt) = (Vec::with_capacity(rows.len()), Vec::new());
    for row in rows {
        let id = row.id;
        match Job::try_from(row) {
            Ok(job) => jobs.push(job),
            Err(error) => {
                tracing::error!(job.id = %id, error = %error, "a stored job cannot be read; it is skipped");
                corrupt.push(id);
            }
        }
    }
    (jobs, corrupt)
}

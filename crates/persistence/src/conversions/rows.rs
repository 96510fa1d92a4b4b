//! Rows to conversions, and changed conversions to documents for the statements.

use domain::{AttemptNo, Conversion, ConversionRun, Timestamp};
use serde_json::{Value, json};
use slurm::{RemotePath, SlurmJobId, SlurmState};
use uuid::Uuid;

use crate::{
    error::{Result, StoreError},
    values::StoredRow,
};

/// Selects conversions; `$tail` is the rest of the statement.
macro_rules! select_conversions {
    ($name:literal, $tail:literal $(, $arg:expr)* $(,)?) => {
        sqlx::query_as!(
            $crate::conversions::rows::ConversionRow,
            "-- " + $name + "
             select c.id, c.cluster, c.cache_path, c.image, c.state, c.message, c.file, c.file_seen_at, c.file_began_at,
                    c.damaged_files, c.damaged_at, c.error, c.failures, c.infrastructure_failures, c.retry_at, c.abandoned, c.run, c.token, c.state_dir,
                    c.target, c.slurm_job_id, c.slurm_state, c.exit_code, c.exit_signal, c.intended_at, c.submit_fence,
                    c.submit_fence_cleared, c.submit_fence_shut_at, c.absent_at, c.failed_submissions, c.submitted_at,
                    c.queued_since, c.began_at, c.finishing_since, c.missing_since, c.version
             from image_conversions c
             " + $tail
            $(, $arg)*
        )
    };
}
pub(crate) use select_conversions;

/// A conversion as it is stored.
#[derive(Debug)]
pub(crate) struct ConversionRow {
    pub(crate) id: Uuid,
    pub(crate) cluster: String,
    pub(crate) cache_path: String,
    pub(crate) image: String,
    pub(crate) state: String,
    pub(crate) message: String,
    pub(crate) file: Option<String>,
    pub(crate) file_seen_at: Option<Timestamp>,
    pub(crate) file_began_at: Option<Timestamp>,
    pub(crate) damaged_files: Vec<String>,
    pub(crate) damaged_at: Option<Timestamp>,
    pub(crate) error: Option<String>,
    pub(crate) failures: i32,
    pub(crate) retry_at: Option<Timestamp>,
    pub(crate) infrastructure_failures: i32,
    pub(crate) abandoned: Option<String>,
    pub(crate) run: i32,
    pub(crate) token: Option<String>,
    pub(crate) state_dir: Option<String>,
    pub(crate) target: Option<String>,
    pub(crate) slurm_job_id: Option<i64>,
    pub(crate) slurm_state: Option<String>,
    pub(crate) exit_code: Option<i16>,
    pub(crate) exit_signal: Option<i16>,
    pub(crate) intended_at: Option<Timestamp>,
    pub(crate) submit_fence: i32,
    pub(crate) submit_fence_cleared: i32,
    pub(crate) submit_fence_shut_at: Option<Timestamp>,
    pub(crate) submitted_at: Option<Timestamp>,
    pub(crate) queued_since: Option<Timestamp>,
    pub(crate) began_at: Option<Timestamp>,
    pub(crate) finishing_since: Option<Timestamp>,
    pub(crate) missing_since: Option<Timestamp>,
    pub(crate) failed_submissions: i32,
    pub(crate) absent_at: Option<Timestamp>,
    pub(crate) version: i64,
}

impl TryFrom<ConversionRow> for Conversion {
    type Error = StoreError;

    fn try_from(row: ConversionRow) -> Result<Self> {
        let stored = StoredRow::of("image_conversions", &row.id);
        Ok(Self {
            id: row.id,
            cluster: stored.parse("cluster", &row.cluster)?,
            cache_path: stored.parse("cache_path", &row.cache_path)?,
            image: stored.parse("image", &row.image)?,
            state: stored.parse("state", &row.state)?,
            file: stored.parse_any("file", row.file.as_ref())?,
            damaged_files: row
                .damaged_files
                .iter()
                .map(|file| stored.parse("damaged_files", file))
                .collect::<Result<_>>()?,
            failures: stored.number("failures", row.failures)?,
            mishaps: stored.number("infrastructure_failures", row.infrastructure_failures)?,
            abandoned: stored.parse_any("abandoned", row.abandoned.as_ref())?,
            run: run(&row)?,
            message: row.message,
            file_seen_at: row.file_seen_at,
            file_began_at: row.file_began_at,
            damaged_at: row.damaged_at,
            error: row.error,
            retry_at: row.retry_at,
            version: row.version,
        })
    }
}

fn run(row: &ConversionRow) -> Result<Option<ConversionRun>> {
    let stored = StoredRow::of("image_conversions", &row.id);
    let (Some(no), Some(token), Some(state_dir), Some(target), Some(intended_at)) = (
        AttemptNo::new(stored.number("run", row.run)?),
        &row.token,
        &row.state_dir,
        &row.target,
        row.intended_at,
    ) else {
        return Ok(None);
    };
    let (newest, cleared) = (row.submit_fence, row.submit_fence_cleared);
    Ok(Some(ConversionRun {
        no,
        token: stored.parse("token", token)?,
        state_dir: stored.parse("state_dir", state_dir)?,
        target: stored.parse("target", target)?,
        slurm_id: stored.slurm_id(row.slurm_job_id)?,
        slurm_state: stored.parse_any("slurm_state", row.slurm_state.as_ref())?,
        exit: stored.exit(row.exit_code, row.exit_signal)?,
        intended_at,
        fence: stored.fence(newest, cleared, row.submit_fence_shut_at, row.absent_at)?,
        submitted_at: row.submitted_at,
        queued_since: row.queued_since,
        began_at: row.began_at,
        finishing_since: row.finishing_since,
        missing_since: row.missing_since,
        setbacks: stored.number("failed_submissions", row.failed_submissions)?,
    }))
}

/// The conversions that can be read, and the ids of the rows that cannot: one bad row does not hold up the others.
pub(crate) fn readable(rows: Vec<ConversionRow>) -> (Vec<Conversion>, Vec<Uuid>) {
    let (mut conversions, mut corrupt) = (Vec::with_capacity(rows.len()), Vec::new());
    for row in rows {
        let id = row.id;
        match Conversion::try_from(row) {
            Ok(conversion) => conversions.push(conversion),
            Err(error) => {
                tracing::error!(conversion.id = %id, error = %error, "a stored conversion cannot be read; it is skipped");
                corrupt.push(id);
            }
        }
    }
    (conversions, corrupt)
}

/// The columns that may change, as `jsonb_populate_recordset` reads them.
pub(crate) fn document(conversion: &Conversion, due_at: Option<Timestamp>) -> Value {
    let run = conversion.run.as_ref();
    let exit = run.and_then(|run| run.exit);
    let fence = run.map(|run| run.fence).unwrap_or_default();
    json!({
        "id": conversion.id,
        "version": conversion.version,
        "state": <&str>::from(conversion.state),
        "message": conversion.message,
        "file": conversion.file.as_ref().map(RemotePath::as_str),
        "file_seen_at": conversion.file_seen_at,
        "file_began_at": conversion.file_began_at,
        "damaged_files": conversion.damaged_files,
        "damaged_at": conversion.damaged_at,
        "error": conversion.error,
        "failures": conversion.failures,
        "infrastructure_failures": conversion.mishaps,
        "retry_at": conversion.retry_at,
        "abandoned": conversion.abandoned.map(<&str>::from),
        "run": run.map_or(0, |run| run.no.get()),
        "token": run.map(|run| run.token.as_str()),
        "state_dir": run.map(|run| run.state_dir.as_str()),
        "target": run.map(|run| run.target.as_str()),
        "slurm_job_id": run.and_then(|run| run.slurm_id).map(SlurmJobId::get),
        "slurm_state": run.and_then(|run| run.slurm_state.as_ref()).map(SlurmState::as_str),
        "exit_code": exit.map(|exit| exit.code),
        "exit_signal": exit.map(|exit| exit.signal),
        "intended_at": run.map(|run| run.intended_at),
        "submit_fence": fence.newest,
        "submit_fence_cleared": fence.cleared,
        "submit_fence_shut_at": fence.shut_at,
        "absent_at": fence.absent_at,
        "failed_submissions": run.map_or(0, |run| run.setbacks),
        "submitted_at": run.and_then(|run| run.submitted_at),
        "queued_since": run.and_then(|run| run.queued_since),
        "began_at": run.and_then(|run| run.began_at),
        "finishing_since": run.and_then(|run| run.finishing_since),
        "missing_since": run.and_then(|run| run.missing_since),
        "due_at": due_at,
    })
}

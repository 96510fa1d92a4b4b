//! Rows to conversions, and changed conversions to rows.

use domain::{AttemptNo, Conversion, ConversionRun, SubmitFence, Timestamp};
use serde::Serialize;
use slurm::{ExitCode, SlurmJobId, SlurmState};
use uuid::Uuid;

use crate::{
    error::StoreError,
    jobs::rows::{Cell, slurm_id},
};

/// Selects conversions; `$tail` is the rest of the statement.
macro_rules! select_conversions {
    ($name:literal, $tail:literal $(, $arg:expr)* $(,)?) => {
        sqlx::query_as!(
            $crate::conversions::rows::ConversionRow,
            "-- " + $name + "
             select c.id, c.cluster, c.cache_path, c.image, c.state, c.message, c.file, c.file_seen_at, c.file_began_at,
                    c.error, c.failures, c.retry_at, c.mishaps, c.abandoned, c.run, c.token, c.state_dir, c.target,
                    c.slurm_job_id, c.slurm_state, c.exit_code, c.exit_signal, c.intended_at, c.submit_fence,
                    c.submit_fence_cleared, c.submit_fence_shut_at,
                    c.submitted_at, c.queued_since, c.began_at, c.finishing_since, c.missing_since, c.setbacks, c.absent_at,
                    c.version
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
    pub(crate) error: Option<String>,
    pub(crate) failures: i32,
    pub(crate) retry_at: Option<Timestamp>,
    pub(crate) mishaps: i32,
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
    pub(crate) setbacks: i32,
    pub(crate) absent_at: Option<Timestamp>,
    pub(crate) version: i64,
}

impl TryFrom<ConversionRow> for Conversion {
    type Error = StoreError;

    fn try_from(row: ConversionRow) -> Result<Self, StoreError> {
        let cell = Cell { table: "image_conversions", row: row.id };
        Ok(Self {
            id: row.id,
            cluster: cell.parse("cluster", &row.cluster)?,
            cache_path: cell.parse("cache_path", &row.cache_path)?,
            image: cell.parse("image", &row.image)?,
            state: cell.parse("state", &row.state)?,
            file: row.file.as_deref().map(|text| cell.parse("file", text)).transpose()?,
            failures: cell.number("failures", row.failures)?,
            mishaps: cell.number("mishaps", row.mishaps)?,
            abandoned: row.abandoned.as_deref().map(|text| cell.parse("abandoned", text)).transpose()?,
            run: run(&row, &cell)?,
            message: row.message,
            file_seen_at: row.file_seen_at,
            file_began_at: row.file_began_at,
            error: row.error,
            retry_at: row.retry_at,
            version: row.version,
        })
    }
}

fn run(row: &ConversionRow, cell: &Cell) -> Result<Option<ConversionRun>, StoreError> {
    let (Some(no), Some(token), Some(state_dir), Some(target), Some(intended_at)) = (
        AttemptNo::new(cell.number("run", row.run)?),
        &row.token,
        &row.state_dir,
        &row.target,
        row.intended_at,
    ) else {
        return Ok(None);
    };
    let exit = match (row.exit_code, row.exit_signal) {
        (Some(code), Some(signal)) => Some(ExitCode {
            code: cell.number("exit_code", code)?,
            signal: cell.number("exit_signal", signal)?,
        }),
        _ => None,
    };
    Ok(Some(ConversionRun {
        no,
        token: cell.parse("token", token)?,
        state_dir: cell.parse("state_dir", state_dir)?,
        target: cell.parse("target", target)?,
        slurm_id: row.slurm_job_id.map(|id| slurm_id(cell, id)).transpose()?,
        slurm_state: row.slurm_state.as_deref().map(|text| cell.parse("slurm_state", text)).transpose()?,
        exit,
        intended_at,
        fence: SubmitFence {
            newest: cell.number("submit_fence", row.submit_fence)?,
            cleared: cell.number("submit_fence_cleared", row.submit_fence_cleared)?,
            shut_at: row.submit_fence_shut_at,
            absent_at: row.absent_at,
        },
        submitted_at: row.submitted_at,
        queued_since: row.queued_since,
        began_at: row.began_at,
        finishing_since: row.finishing_since,
        missing_since: row.missing_since,
        setbacks: cell.number("setbacks", row.setbacks)?,
    }))
}

/// The conversions that can be read, and the ids of the rows that cannot: one bad row must not hold up the others.
pub(crate) fn readable(rows: Vec<ConversionRow>) -> (Vec<Conversion>, Vec<Uuid>) {
    let (mut conversions, mut corrupt) = (Vec::with_capacity(rows.len()), Vec::new());
    for row in rows {
        let id = row.id;
        match Conversion::try_from(row) {
            Ok(conversion) => conversions.push(conversion),
            Err(error) => {
                tracing::error!(conversion.id = %id, error = %error, "a stored conversion cannot be read; it is left alone");
                corrupt.push(id);
            }
        }
    }
    (conversions, corrupt)
}

/// What may change of a conversion, as `jsonb_populate_recordset` reads it.
#[derive(Debug, Serialize)]
pub(crate) struct ConversionChange<'a> {
    id: Uuid,
    version: i64,
    state: &'static str,
    message: &'a str,
    file: Option<&'a str>,
    file_seen_at: Option<Timestamp>,
    file_began_at: Option<Timestamp>,
    error: Option<&'a str>,
    failures: u32,
    retry_at: Option<Timestamp>,
    mishaps: u32,
    abandoned: Option<&'static str>,
    run: u32,
    token: Option<&'a str>,
    state_dir: Option<&'a str>,
    target: Option<&'a str>,
    slurm_job_id: Option<u32>,
    slurm_state: Option<&'a str>,
    exit_code: Option<u8>,
    exit_signal: Option<u8>,
    intended_at: Option<Timestamp>,
    submit_fence: u32,
    submit_fence_cleared: u32,
    submit_fence_shut_at: Option<Timestamp>,
    submitted_at: Option<Timestamp>,
    queued_since: Option<Timestamp>,
    began_at: Option<Timestamp>,
    finishing_since: Option<Timestamp>,
    missing_since: Option<Timestamp>,
    setbacks: u32,
    absent_at: Option<Timestamp>,
    due_at: Option<Timestamp>,
}

impl<'a> ConversionChange<'a> {
    pub(crate) fn new(conversion: &'a Conversion, due_at: Option<Timestamp>) -> Self {
        let run = conversion.run.as_ref();
        let exit = run.and_then(|run| run.exit);
        Self {
            id: conversion.id,
            version: conversion.version,
            state: conversion.state.into(),
            message: &conversion.message,
            file: conversion.file.as_ref().map(slurm::RemotePath::as_str),
            file_seen_at: conversion.file_seen_at,
            file_began_at: conversion.file_began_at,
            error: conversion.error.as_deref(),
            failures: conversion.failures,
            retry_at: conversion.retry_at,
            mishaps: conversion.mishaps,
            abandoned: conversion.abandoned.map(Into::into),
            run: run.map_or(0, |run| run.no.get()),
            token: run.map(|run| run.token.as_str()),
            state_dir: run.map(|run| run.state_dir.as_str()),
            target: run.map(|run| run.target.as_str()),
            slurm_job_id: run.and_then(|run| run.slurm_id).map(SlurmJobId::get),
            slurm_state: run.and_then(|run| run.slurm_state.as_ref()).map(SlurmState::as_str),
            exit_code: exit.map(|exit| exit.code),
            exit_signal: exit.map(|exit| exit.signal),
            intended_at: run.map(|run| run.intended_at),
            submit_fence: run.map_or(0, |run| run.fence.newest),
            submit_fence_cleared: run.map_or(0, |run| run.fence.cleared),
            submit_fence_shut_at: run.and_then(|run| run.fence.shut_at),
            submitted_at: run.and_then(|run| run.submitted_at),
            queued_since: run.and_then(|run| run.queued_since),
            began_at: run.and_then(|run| run.began_at),
            finishing_since: run.and_then(|run| run.finishing_since),
            missing_since: run.and_then(|run| run.missing_since),
            setbacks: run.map_or(0, |run| run.setbacks),
            absent_at: run.and_then(|run| run.fence.absent_at),
            due_at,
        }
    }
}

//! Attempts, and the remote commands for a job.

use serde::Deserialize;

use super::{Moment, Text};

#[derive(Debug, Deserialize)]
pub(crate) struct AttemptList {
    pub(crate) attempts: Vec<Attempt>,
}

/// An attempt to run a job.
#[derive(Debug, Deserialize)]
pub(crate) struct Attempt {
    pub(crate) number: u32,
    pub(crate) slurm_job_id: Option<Text>,
    pub(crate) slurm_state: Option<Text>,
    pub(crate) exit_code: Option<u8>,
    pub(crate) exit_signal: Option<u8>,
    pub(crate) nodes: Vec<Text>,
    pub(crate) partition: Option<Text>,
    pub(crate) created_on: Moment,
    pub(crate) submitted_on: Option<Moment>,
    pub(crate) started_on: Option<Moment>,
    pub(crate) ended_on: Option<Moment>,
    pub(crate) requeues: u32,
    pub(crate) excluded_nodes: Vec<Text>,
    pub(crate) outcome: Option<Text>,
    pub(crate) concluded_on: Option<Moment>,
    pub(crate) outcome_reason: Option<Text>,
    pub(crate) rule: Option<Text>,
    pub(crate) matched_line: Option<Text>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Timeline {
    pub(crate) entries: Vec<Entry>,
    pub(crate) next_page_token: Option<String>,
}

/// A remote command.
#[derive(Debug, Deserialize)]
pub(crate) struct Entry {
    pub(crate) class: Text,
    pub(crate) attempt: Option<u32>,
    pub(crate) host: Option<Text>,
    pub(crate) started_on: Moment,
    pub(crate) duration_ms: u64,
    pub(crate) result: Text,
    pub(crate) bytes: Option<u64>,
    pub(crate) jobs: u32,
    pub(crate) outcome: Option<Text>,
}

//! The tasks of an array, and their results.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::{Moment, Text};

/// How many tasks are in which state.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(crate) struct TaskCounts {
    pub(crate) total: u32,
    pub(crate) pending: u32,
    pub(crate) running: u32,
    pub(crate) done: u32,
    pub(crate) error: u32,
    pub(crate) canceled: u32,
}

#[derive(Debug, Deserialize)]
pub(crate) struct TaskList {
    pub(crate) tasks: Vec<Task>,
    pub(crate) next_page_token: Option<String>,
}

#[derive(Debug, Deserialize)]
#[expect(clippy::struct_field_names, reason = "the names of the API")]
pub(crate) struct Task {
    pub(crate) task: u32,
    pub(crate) status: Text,
    pub(crate) parameters: Map<String, Value>,
    pub(crate) attempt: Option<u32>,
    pub(crate) slurm_job_id: Option<Text>,
    pub(crate) nodes: Vec<Text>,
    pub(crate) exit_code: Option<u8>,
    pub(crate) message: Option<Text>,
    pub(crate) started_on: Option<Moment>,
    pub(crate) ended_on: Option<Moment>,
}

/// What was found for a result of a task.
#[derive(Debug, Deserialize)]
pub(crate) struct ResultValue {
    pub(crate) task: u32,
    pub(crate) name: Text,
    pub(crate) value: Value,
    pub(crate) problem: Option<Text>,
}

//! Pipelines.

use serde::Deserialize;

use super::{Moment, Text};

#[derive(Debug, Deserialize)]
pub(crate) struct PipelineList {
    pub(crate) pipelines: Vec<PipelineSummary>,
    pub(crate) next_page_token: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct PipelineSummary {
    pub(crate) id: String,
    pub(crate) name: Option<Text>,
    pub(crate) owner: Text,
    pub(crate) status: Text,
    pub(crate) jobs_by_status: PipelineCounts,
    pub(crate) created_on: Moment,
}

#[derive(Debug, Deserialize)]
pub(crate) struct PipelineCounts {
    pub(crate) total: u32,
    pub(crate) pending: u32,
    pub(crate) running: u32,
    pub(crate) done: u32,
    pub(crate) error: u32,
    pub(crate) canceled: u32,
    pub(crate) skipped: u32,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Pipeline {
    pub(crate) id: String,
    pub(crate) name: Option<Text>,
    pub(crate) owner: Text,
    pub(crate) status: Text,
    pub(crate) jobs_by_status: PipelineCounts,
    pub(crate) created_on: Moment,
    pub(crate) jobs: Vec<PipelineJob>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct PipelineJob {
    pub(crate) name: Text,
    pub(crate) id: String,
    pub(crate) status: Text,
    pub(crate) message: Text,
    pub(crate) skipped: bool,
    pub(crate) needs: Vec<Need>,
    pub(crate) started_on: Option<Moment>,
    pub(crate) finished_on: Option<Moment>,
}

/// A job that another one waits for.
#[derive(Debug, Deserialize)]
pub(crate) struct Need {
    pub(crate) name: Text,
    pub(crate) job: String,
    pub(crate) when: Text,
}

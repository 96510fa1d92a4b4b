//! The few fields of the API's answers that pages show. A field that is not optional is in every answer.

mod access;
mod attempt;
mod cluster;
mod diagnosis;
mod job;
mod log_search;
mod metrics;
mod partition;
mod pipeline;
mod stats;
mod task;
mod text;
mod usage;
mod webhook;

pub(crate) use access::{Caller, NewToken, TokenList, Who};
pub(crate) use attempt::{Attempt, AttemptList, Entry, Timeline};
pub(crate) use cluster::{Cluster, ClusterList, LoginHost, Poll, Preflight};
pub(crate) use diagnosis::{Diagnosis, JobFailure};
#[cfg(test)]
pub(crate) use job::JobDetails;
pub(crate) use job::{
    Component, Event, EventList, Facet, Facets, Job, JobList, JobStatus, JobSummary, Live, Note, Pending,
    Progress, Ready, Validation,
};
pub(crate) use log_search::{LogHit, LogSearch};
pub(crate) use metrics::{MetricSeries, Metrics};
pub(crate) use partition::{Partition, PartitionList};
pub(crate) use pipeline::{Need, Pipeline, PipelineCounts, PipelineJob, PipelineList};
pub(crate) use stats::{Bucket, Figures, Stats};
pub(crate) use task::{ResultValue, Task, TaskCounts, TaskList};
pub(crate) use text::{Text, push_visible, visible};
pub(crate) use usage::{Accounted, Gpu, Measured, Usage};
pub(crate) use webhook::Webhook;

/// A moment.
pub(crate) type Moment = chrono::DateTime<chrono::Utc>;

//! Views: what answers contain. They show secret variables by name only, and no credentials.

mod attempt;
mod cluster;
mod cluster_defaults;
mod cluster_polls;
mod component;
mod event;
mod job;
mod job_summary;
mod login_host;
mod need;
mod options;
mod orphan;
mod partition;
mod pending;
mod pipeline;
mod result;
mod status;
mod task;
mod timeline;
mod token;
mod webhook;

pub(crate) use attempt::{AttemptListView, AttemptView};
pub(crate) use cluster::{ClusterFacts, ClusterList, ClusterView, PreflightView, UnusableClusterView};
pub(crate) use event::{EventListView, EventPageView, EventView};
pub(crate) use job::JobView;
pub(crate) use job_summary::{FacetsView, JobList, JobSummary, Surroundings};
pub(crate) use options::{PlacementView, QueueView};
pub(crate) use partition::PartitionList;
pub(crate) use pending::PendingView;
pub(crate) use pipeline::{PipelineList, PipelineSummary, PipelineView};
pub(crate) use result::{ResultView, table_row};
pub(crate) use status::{Freshness, StatusView, is_watched};
pub(crate) use task::{TaskListView, TaskView};
pub(crate) use timeline::{TimelineEntryView, TimelineView};
pub(crate) use token::{CallerView, NewTokenView, ScopeName, SecretText, TokenListView, TokenView};
pub(crate) use webhook::{DeadLetterListView, DeadLetterView, WebhookView};

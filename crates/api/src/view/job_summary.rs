//! A job in a list: its status, and where it runs.

use std::collections::BTreeMap;

use domain::{Cluster, Job, Usage, Work};
use persistence::{FacetCount, JobFacet};
use serde::Serialize;
use slurm::SlurmJobId;
use utoipa::ToSchema;

use super::{
    options::QueueView,
    status::{Freshness, StatusView},
};

/// A page of jobs, newest first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct JobList {
    /// The jobs of this page.
    pub jobs: Vec<JobSummary>,
    /// The value of `page_token` for the next page; null on the last one.
    pub next_page_token: Option<String>,
    /// The counts that `facets` asked for; null without it.
    pub facets: Option<FacetsView>,
}

/// The most frequent values of fields and their jobs; empty for a field that was not asked for.
#[derive(Debug, Default, Serialize, ToSchema)]
pub(crate) struct FacetsView {
    /// By status.
    pub status: Vec<FacetView>,
    /// By cluster.
    pub cluster: Vec<FacetView>,
    /// By owner.
    pub owner: Vec<FacetView>,
    /// By partition. A job that may run in several counts for each.
    pub partition: Vec<FacetView>,
    /// By the rule of `failure`.
    pub rule: Vec<FacetView>,
}

/// How many jobs have a value.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FacetView {
    /// The value, such as `Running`.
    pub value: String,
    /// How many jobs have it.
    pub jobs: u64,
}

impl FacetsView {
    /// The counts of these fields.
    pub(crate) fn new(fields: &[JobFacet], counts: Vec<FacetCount>) -> Self {
        let mut facets = Self::default();
        for FacetCount { facet, value, jobs } in
            counts.into_iter().filter(|count| fields.contains(&count.facet))
        {
            let values = match facet {
                JobFacet::Status => &mut facets.status,
                JobFacet::Cluster => &mut facets.cluster,
                JobFacet::Owner => &mut facets.owner,
                JobFacet::Partition => &mut facets.partition,
                JobFacet::Rule => &mut facets.rule,
            };
            values.push(FacetView { value, jobs });
        }
        facets
    }
}

/// A job in a list: its status, and the fields that filters use.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct JobSummary {
    /// The job's status.
    #[serde(flatten)]
    pub status: StatusView,
    /// The job's owner.
    pub owner: String,
    /// The labels from the request.
    pub labels: BTreeMap<String, String>,
    /// The container image in Pyxis syntax.
    pub image: Option<String>,
    /// The GPUs of all nodes together; of an array, those of one task.
    pub gpus: u32,
    /// The mean utilization of its GPUs in its newest run, in percent; null without a measurement, and of an array.
    pub gpu_percent: Option<f64>,
    /// TAO's network architecture; null for a `command`.
    pub network_arch: Option<String>,
    /// TAO's action; null for a `command`.
    pub action: Option<String>,
    /// The job's location in TAO's format.
    pub backend_details: BackendDetailsView,
}

/// TAO's `backend_details`.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct BackendDetailsView {
    /// Always `slurm`.
    pub backend_type: BackendTypeView,
    /// The partitions that the job may run in.
    pub partition: Option<String>,
    /// The cluster's name in the service's configuration.
    pub cluster_name: String,
    /// Account, QOS and other options.
    #[serde(flatten)]
    pub queue: QueueView,
    /// The earliest start; null for none.
    pub begin: Option<String>,
    /// The latest end; null for none.
    pub deadline: Option<String>,
    /// The job in Slurm. Read-only.
    #[schema(read_only)]
    pub slurm_metadata: SlurmMetadataView,
}

/// The backend of this service.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum BackendTypeView {
    /// Slurm.
    Slurm,
}

/// TAO's `slurm_metadata`.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SlurmMetadataView {
    /// The newest attempt's Slurm id.
    pub slurm_job_id: Option<String>,
    /// The directory on the cluster for specifications, logs and results; null if the cluster no longer exists.
    pub job_dir: Option<String>,
    /// How often the job was retried.
    pub retry_count: u32,
    /// The Slurm ids of the earlier attempts, oldest first.
    pub failed_slurm_job_ids: Vec<String>,
}

/// What a job's view shows beside the job itself.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Surroundings<'a> {
    pub(crate) cluster: Option<&'a Cluster>,
    pub(crate) freshness: Freshness,
    pub(crate) earlier: &'a [SlurmJobId],
}

impl JobSummary {
    pub(crate) fn new(job: &Job, around: Surroundings<'_>) -> Self {
        let (network_arch, action) = match &job.spec.work {
            Work::Tao { network_arch, action, .. } => {
                (Some(network_arch.to_string()), Some(action.to_string()))
            }
            Work::Command { .. } | Work::Components { .. } => (None, None),
        };
        let slurm_metadata = SlurmMetadataView {
            slurm_job_id: job.attempt.as_ref().and_then(|a| a.slurm_id).map(|id| id.to_string()),
            job_dir: match (&job.attempt, around.cluster) {
                (Some(attempt), _) => Some(attempt.job_dir.to_string()),
                (None, cluster) => cluster.map(|cluster| cluster.base_dir.to_string()),
            },
            retry_count: job.retry_count,
            failed_slurm_job_ids: around.earlier.iter().map(ToString::to_string).collect(),
        };
        Self {
            status: StatusView::new(job, around.freshness),
            owner: job.owner.to_string(),
            labels: texts(&job.spec.labels),
            image: job.spec.image.as_ref().map(ToString::to_string),
            gpus: job.spec.resources.total_gpus(),
            gpu_percent: job.run.usage.as_ref().and_then(Usage::mean_percent),
            network_arch,
            action,
            backend_details: BackendDetailsView {
                backend_type: BackendTypeView::Slurm,
                partition: job.spec.partitions.as_ref().map(ToString::to_string),
                cluster_name: job.cluster.to_string(),
                queue: QueueView::from(&job.spec.options),
                begin: job.spec.begin.map(|moment| moment.to_string()),
                deadline: job.spec.deadline.map(|moment| moment.to_string()),
                slurm_metadata,
            },
        }
    }
}

pub(super) fn texts(map: &BTreeMap<impl ToString, impl ToString>) -> BTreeMap<String, String> {
    map.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect()
}

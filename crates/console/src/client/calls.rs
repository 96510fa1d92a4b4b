//! The calls of the API that pages use.

use loopback::{Document, calls};
use serde::de::IgnoredAny;
use serde_json::Value;

use crate::model::{
    AttemptList, Caller, Cluster, ClusterList, Diagnosis, EventList, Job, JobList, JobStatus, LogSearch,
    Metrics, NewToken, PartitionList, Pipeline, PipelineList, Preflight, ResultValue, Stats, TaskList,
    Timeline, TokenList, Usage, Validation, Webhook,
};
#[cfg(test)]
use crate::model::{JobDetails, JobSummary};

calls! {
    ME: Caller = GET "/me";
    LIST_TOKENS: TokenList = GET "/tokens";
    CREATE_TOKEN: NewToken = POST "/tokens";
    REVOKE_TOKEN: IgnoredAny = DELETE "/tokens/{token}";
    LIST_JOBS: JobList = GET "/jobs";
    CREATE_JOB: CreatedJob = POST "/jobs";
    VALIDATE_JOB: Validation = POST "/jobs/validate";
    GET_JOB: Job, is JobSummary, JobDetails = GET "/jobs/{id}";
    GET_JOB_AS_IT_IS: Value, is () = GET "/jobs/{id}";
    DELETE_JOB: IgnoredAny = DELETE "/jobs/{id}";
    JOB_DIAGNOSIS: Diagnosis = GET "/jobs/{id}/diagnosis";
    JOB_EVENTS: EventList = GET "/jobs/{id}/events";
    JOB_ATTEMPTS: AttemptList = GET "/jobs/{id}/attempts";
    JOB_TASKS: TaskList = GET "/jobs/{id}/tasks";
    JOB_TIMELINE: Timeline = GET "/jobs/{id}/timeline";
    JOB_RESULTS: Vec<ResultValue> = GET "/jobs/{id}/results";
    JOB_SCRIPT: Document, is () = GET "/jobs/{id}/script";
    JOB_LOGS: Document, is () = GET "/jobs/{id}/logs";
    SEARCH_LOGS: LogSearch = GET "/jobs/{id}/logs/search";
    JOB_METRICS: Metrics = GET "/jobs/{id}/metrics";
    JOB_USAGE: Usage = GET "/jobs/{id}/usage";
    CANCEL_JOB: JobStatus = POST "/jobs/{id}/cancel";
    PAUSE_JOB: JobStatus = POST "/jobs/{id}/pause";
    RESUME_JOB: JobStatus = POST "/jobs/{id}/resume";
    RETRY_JOB: JobStatus = POST "/jobs/{id}/retry";
    JOB_WEBHOOK: Webhook = GET "/jobs/{id}/webhook";
    REDELIVER: IgnoredAny = POST "/jobs/{id}/webhook/redeliver";
    ALL_EVENTS: Document, is () = GET "/events";
    STATS: Stats = GET "/stats";
    LIST_PIPELINES: PipelineList = GET "/pipelines";
    GET_PIPELINE: Pipeline = GET "/pipelines/{id}";
    CANCEL_PIPELINE: IgnoredAny = POST "/pipelines/{id}/cancel";
    RETRY_PIPELINE: IgnoredAny = POST "/pipelines/{id}/retry";
    LIST_CLUSTERS: ClusterList = GET "/clusters";
    GET_CLUSTER: Cluster = GET "/clusters/{name}";
    LIST_PARTITIONS: PartitionList = GET "/clusters/{name}/partitions";
    PREFLIGHT: Preflight = POST "/clusters/{name}/preflight";
}

/// The job that was created.
#[derive(Debug, serde::Deserialize)]
pub(crate) struct CreatedJob {
    pub(crate) id: String,
}

//! The calls of the API that tools use.

use loopback::{Document, calls};
use serde::de::IgnoredAny;
use serde_json::Value;

use super::answers::{
    ClusterList, Diagnosis, Job, JobList, JobStatus, LogSearch, PartitionList, Preflight, Usage, Validation,
};

calls! {
    ME: IgnoredAny = GET "/me";
    LIST_JOBS: JobList = GET "/jobs";
    CREATE_JOB: Job = POST "/jobs";
    VALIDATE_JOB: Validation = POST "/jobs/validate";
    GET_JOB: Value, is Job = GET "/jobs/{id}";
    JOB_STATUS: JobStatus = GET "/jobs/{id}/status";
    JOB_DIAGNOSIS: Diagnosis = GET "/jobs/{id}/diagnosis";
    JOB_USAGE: Usage = GET "/jobs/{id}/usage";
    JOB_LOGS: Document, is () = GET "/jobs/{id}/logs";
    SEARCH_LOGS: LogSearch = GET "/jobs/{id}/logs/search";
    CANCEL_JOB: JobStatus = POST "/jobs/{id}/cancel";
    RETRY_JOB: JobStatus = POST "/jobs/{id}/retry";
    LIST_CLUSTERS: ClusterList = GET "/clusters";
    LIST_PARTITIONS: PartitionList = GET "/clusters/{name}/partitions";
    PREFLIGHT: Preflight = POST "/clusters/{name}/preflight";
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_call_and_every_field_that_tools_read_is_in_the_apis_document() {
        let missing = loopback::document::lacking(super::all());
        assert!(missing.is_empty(), "the document lacks {missing:#?}");
    }
}

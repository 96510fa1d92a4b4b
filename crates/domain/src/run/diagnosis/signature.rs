//! What the signature of a diagnosis says to people.

use super::rule_with_id;
use crate::job::failure::FailureCategory;

/// The kind of a failure with this signature, and what to do about it.
pub(crate) fn explanation(signature: &str) -> (FailureCategory, &'static str) {
    if let Some(rule) = rule_with_id(signature) {
        return (rule.category, rule.advice);
    }
    match signature {
        "out_of_memory" => {
            (FailureCategory::HostMemory, "Request more memory, or use fewer data loader workers.")
        }
        "deadline" => (FailureCategory::TimeLimit, "Give the job a later deadline."),
        "service-failed" => (FailureCategory::Unknown, "Read the log of the service."),
        "no-marks" | "env-file-missing" | "log-unopened" => (
            FailureCategory::Storage,
            "Run the job again. If this persists, report the shared file system of the node.",
        ),
        "no-rendezvous" => (FailureCategory::Network, "Check how the nodes resolve their own names."),
        _ => (FailureCategory::Slurm, "Run the job again. If this persists, report the node."),
    }
}

//! The metrics of a cluster, shown as 0 from the start, so that the first increase is visible.

use domain::{ClusterName, Job, OrphanKind, Phase, Status, Timestamp};
use metrics::{counter, histogram};

/// The commands that dashboards query by name. Others appear when they are first sent.
const COMMANDS: [&str; 6] = ["submit", "locate", "poll", "conclude", "cancel", "partitions"];
const OUTCOMES: [&str; 4] = ["ok", "not_sent", "auth_required", "lost"];

/// Makes the metrics of a cluster appear.
pub(crate) fn show(cluster: &ClusterName) {
    for outcome in ["answered", "unanswered"] {
        counter!("tao_slurm_polls_total", "cluster" => cluster.to_string(), "outcome" => outcome)
            .increment(0);
    }
    for command in COMMANDS {
        let _ = histogram!("tao_slurm_command_duration_seconds", "cluster" => cluster.to_string(), "command" => command);
        for outcome in OUTCOMES {
            counter!(
                "tao_slurm_commands_total",
                "cluster" => cluster.to_string(), "command" => command, "outcome" => outcome
            )
            .increment(0);
        }
        for name in ["tao_slurm_rpcs_total", "tao_slurm_rpc_waits_total"] {
            counter!(name, "cluster" => cluster.to_string(), "command" => command).increment(0);
        }
    }
    for status in [Status::Done, Status::Error, Status::Canceled] {
        counter!("tao_slurm_jobs_finished_total", "cluster" => cluster.to_string(), "outcome" => status.to_string())
            .increment(0);
    }
    for kind in [
        OrphanKind::Superseded,
        OrphanKind::Copy,
        OrphanKind::Deleted,
        OrphanKind::Newer,
        OrphanKind::Unknown,
    ] {
        for name in ["tao_slurm_orphans_found_total", "tao_slurm_orphans_canceled_total"] {
            counter!(name, "cluster" => cluster.to_string(), "kind" => <&str>::from(kind)).increment(0);
        }
    }
    for name in [
        "tao_slurm_jobs_submitted_total",
        "tao_slurm_submit_uncertain_total",
        "tao_slurm_submit_duplicates_detected_total",
        "tao_slurm_purges_given_up_total",
        "tao_slurm_rate_limited_total",
    ] {
        counter!(name, "cluster" => cluster.to_string()).increment(0);
    }
    let _ = histogram!("tao_slurm_job_submission_wait_seconds", "cluster" => cluster.to_string());
}

/// Counts the results of submissions: jobs in Slurm's queue, and uncertain submissions.
pub(crate) fn submissions<'a>(cluster: &ClusterName, jobs: impl Iterator<Item = &'a Job>, now: Timestamp) {
    for job in jobs {
        match job.phase {
            Phase::InQueue => {
                counter!("tao_slurm_jobs_submitted_total", "cluster" => cluster.to_string()).increment(1);
                // Only the first attempt measures the wait since the request.
                if job.attempt.as_ref().is_some_and(|attempt| attempt.no.get() == 1) {
                    let waited = (now - job.created_at).as_seconds_f64().max(0.0);
                    histogram!("tao_slurm_job_submission_wait_seconds", "cluster" => cluster.to_string())
                        .record(waited);
                }
            }
            Phase::SubmitUncertain => {
                counter!("tao_slurm_submit_uncertain_total", "cluster" => cluster.to_string()).increment(1);
            }
            _ => {}
        }
    }
}

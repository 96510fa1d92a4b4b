//! The HELP text of each metric. docs/operations/monitoring.md says what to watch.

use metrics::{describe_counter, describe_gauge, describe_histogram};

const COUNTERS: [(&str, &str); 19] = [
    ("tao_slurm_commands_total", "Remote commands by outcome."),
    ("tao_slurm_jobs_deleted_total", "Finished jobs that were deleted because of their age."),
    ("tao_slurm_jobs_finished_total", "Finished jobs by final status."),
    ("tao_slurm_jobs_submitted_total", "Attempts that reached Slurm's queue."),
    ("tao_slurm_jwks_reads_total", "Reads of the issuer's public keys by outcome."),
    ("tao_slurm_orphans_canceled_total", "Orphans that the worker canceled."),
    ("tao_slurm_orphans_found_total", "Slurm jobs of this service that belong to no current attempt."),
    ("tao_slurm_outbox_reads_total", "Reads of new events from the database."),
    ("tao_slurm_polls_total", "Polls of a cluster by outcome."),
    ("tao_slurm_purges_given_up_total", "Deleted jobs whose files on the cluster could not be removed."),
    ("tao_slurm_rate_limited_total", "Answers of Slurm that there are too many requests."),
    ("tao_slurm_rpc_waits_total", "Remote commands that had to wait for the RPC budget of a cluster."),
    ("tao_slurm_rpcs_total", "Requests of Slurm's daemons by the command that made them."),
    ("tao_slurm_ssh_connects_total", "Connections that were opened to login hosts."),
    (
        "tao_slurm_submit_duplicates_detected_total",
        "Attempts with two Slurm jobs. The second one does no work.",
    ),
    ("tao_slurm_submit_uncertain_total", "Submissions whose reply was lost."),
    ("tao_slurm_timeline_commands_lost_total", "Remote commands that are missing in the timelines of jobs."),
    ("tao_slurm_trace_exports_total", "Exports of traces by outcome."),
    ("tao_slurm_webhook_deliveries_total", "Deliveries of webhook messages by outcome."),
];

const GAUGES: [(&str, &str); 13] = [
    ("tao_slurm_clock_offset_seconds", "The difference between this machine's clock and the server clock."),
    ("tao_slurm_db_pool_connections", "Database connections of this process by state."),
    ("tao_slurm_db_pool_connections_limit", "The most database connections of this process."),
    (
        "tao_slurm_jobs_in_phase",
        "Unfinished jobs by phase, without paused ones. All processes report the same.",
    ),
    ("tao_slurm_jobs_overdue_seconds", "How long the oldest due job has waited for a worker."),
    ("tao_slurm_log_followers", "Open streams of job logs."),
    ("tao_slurm_outbox_lag_seconds", "The age of the newest event when this process read it."),
    ("tao_slurm_rpc_tokens", "What is left of the RPC budget of a cluster."),
    ("tao_slurm_ssh_hosts", "Login hosts by state."),
    ("tao_slurm_ssh_sessions", "Open SSH sessions."),
    ("tao_slurm_streams_limit", "The most open streams by kind."),
    ("tao_slurm_watchers", "Open event streams and waiting requests by kind."),
    ("tao_slurm_worker_loops_stuck", "Worker loops that make no progress."),
];

const HISTOGRAMS: [(&str, &str); 4] = [
    ("tao_slurm_command_duration_seconds", "How long a remote command took."),
    ("tao_slurm_http_server_request_duration_seconds", "How long a request to the API took."),
    (
        "tao_slurm_job_submission_wait_seconds",
        "The time from the acceptance of a job to Slurm's queue, for first attempts.",
    ),
    ("tao_slurm_webhook_delivery_duration_seconds", "How long a delivery of a webhook message took."),
];

/// Gives each metric of this process its HELP text.
pub(super) fn describe() {
    for (name, help) in COUNTERS {
        describe_counter!(name, help);
    }
    for (name, help) in GAUGES {
        describe_gauge!(name, help);
    }
    for (name, help) in HISTOGRAMS {
        describe_histogram!(name, help);
    }
}

//! Clusters and their health.

use serde::Deserialize;

use super::{Moment, Text};

#[derive(Debug, Deserialize)]
pub(crate) struct ClusterList {
    pub(crate) clusters: Vec<Cluster>,
    pub(crate) unusable: Vec<UnusableCluster>,
}

/// A stored cluster with invalid settings.
#[derive(Debug, Deserialize)]
pub(crate) struct UnusableCluster {
    pub(crate) name: Text,
    pub(crate) reason: Text,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Cluster {
    pub(crate) name: Text,
    pub(crate) is_default: bool,
    pub(crate) state: Text,
    pub(crate) unavailable: Option<Text>,
    pub(crate) user: Text,
    pub(crate) login_hosts: Vec<LoginHost>,
    pub(crate) breaker: Text,
    pub(crate) base_results_dir: Text,
    pub(crate) poll: Option<Poll>,
    pub(crate) rpc_budget: Option<RpcBudget>,
    pub(crate) orphans: Orphans,
    pub(crate) ssh: SshUse,
}

#[derive(Debug, Deserialize)]
pub(crate) struct LoginHost {
    pub(crate) host: Text,
    pub(crate) state: Text,
    pub(crate) since: Option<Moment>,
    pub(crate) last_error: Option<Text>,
    pub(crate) next_attempt_on: Option<Moment>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Poll {
    pub(crate) polled_on: Option<Moment>,
    pub(crate) interval_seconds: f64,
    pub(crate) failures: u32,
    pub(crate) error: Option<Text>,
    pub(crate) active_jobs: u64,
    pub(crate) missing_jobs: u64,
    pub(crate) stale: bool,
}

#[derive(Debug, Deserialize)]
pub(crate) struct RpcBudget {
    pub(crate) burst: u32,
    pub(crate) per_minute: u32,
    pub(crate) left: i64,
    pub(crate) spent_total: u64,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Orphans {
    pub(crate) count: usize,
    pub(crate) jobs: Vec<Orphan>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Orphan {
    pub(crate) slurm_job_id: Text,
    pub(crate) slurm_job_name: Text,
    pub(crate) slurm_state: Text,
    pub(crate) first_seen_on: Moment,
    pub(crate) message: Text,
}

#[derive(Debug, Deserialize)]
pub(crate) struct SshUse {
    pub(crate) sessions_open: usize,
    pub(crate) connects_total: u64,
    pub(crate) commands_total: u64,
    pub(crate) failures_total: u64,
}

/// The result of a preflight.
#[derive(Debug, Deserialize)]
pub(crate) struct Preflight {
    pub(crate) outcome: Text,
    pub(crate) checked_on: Moment,
    pub(crate) checks: Vec<Check>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Check {
    pub(crate) id: Text,
    pub(crate) subject: Option<Text>,
    pub(crate) outcome: Text,
    pub(crate) observed: Text,
    pub(crate) fix: Option<Text>,
}

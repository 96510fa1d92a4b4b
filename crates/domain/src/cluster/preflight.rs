//! The preflight checks of a cluster: each reports what was seen and how to fix it.

mod access;
mod containers;
mod scheduler;
mod storage;

use remote::PreflightAnswer;
use serde::Serialize;
use utoipa::ToSchema;

use crate::cluster::target::Cluster;

/// The result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// Nothing is wrong.
    Pass,
    /// Jobs can run, but an administrator should look at it.
    Warn,
    /// Jobs will fail, or cannot be submitted.
    Fail,
    /// The check could not run, or does not apply.
    Skipped,
}

/// A check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = CheckView)]
pub struct Check {
    /// The stable, machine-readable name of the check.
    pub id: &'static str,
    /// The checked login host or partition; null for the whole cluster.
    pub subject: Option<String>,
    /// The result.
    pub outcome: Outcome,
    /// What the check observed.
    #[serde(rename = "observed")]
    pub seen: String,
    /// How to fix it; null when nothing is wrong.
    #[serde(rename = "fix")]
    pub mend: Option<String>,
}

/// The result for one login host.
#[derive(Debug, Clone)]
pub struct HostFinding {
    /// `host`, or `host:port` when the port is not 22.
    pub host: String,
    /// The facts found there, or the obstacle.
    pub found: Result<PreflightAnswer, Obstacle>,
}

/// Why a login host could not be checked. The texts come from the connection.
#[derive(Debug, Clone)]
pub struct Obstacle {
    /// The step that failed.
    pub kind: ObstacleKind,
    /// What was seen.
    pub seen: String,
    /// How to fix it.
    pub mend: String,
}

/// The step of the connection that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObstacleKind {
    /// The service has no usable key.
    NoKey,
    /// The host does not answer.
    Unreachable,
    /// The service rejected the host key.
    HostKey,
    /// The host rejected the service's key.
    Login,
    /// The login succeeded, but the reply was missing or malformed.
    Command,
}

/// The service's private key.
#[derive(Debug, Clone)]
pub struct KeyFinding {
    /// Its path; absent if only an agent has keys.
    pub path: Option<String>,
    /// Why it cannot be used, and how to fix it.
    pub unusable: Option<(String, String)>,
    /// Its permission bits, if they could be read.
    pub mode: Option<u32>,
}

/// All checks of a cluster, in the order in which problems are fixed.
pub fn judge(cluster: &Cluster, key: &KeyFinding, hosts: &[HostFinding]) -> Vec<Check> {
    let mut checks = vec![access::account(cluster, hosts), access::key(key)];
    checks.extend(hosts.iter().flat_map(access::host));
    checks.extend(hosts.iter().map(scheduler::commands));
    let deep = hosts.iter().find_map(|host| host.found.as_ref().ok()?.deep.as_ref());
    checks.extend(scheduler::controller(deep));
    checks.extend(scheduler::partitions(cluster, deep));
    checks.extend(scheduler::association(cluster, deep));
    checks.extend(hosts.iter().map(|host| storage::base_dir(cluster, host)));
    checks.extend(storage::space(cluster, hosts));
    checks.extend(storage::quota(deep));
    checks.extend(containers::pyxis(deep));
    checks.extend(containers::enroot(cluster, hosts));
    checks.extend(containers::credentials(deep));
    checks
}

/// The overall outcome: the worst of all checks. Skipped checks do not count.
pub fn verdict(checks: &[Check]) -> Outcome {
    let is = |outcome| checks.iter().any(|check| check.outcome == outcome);
    if is(Outcome::Fail) {
        Outcome::Fail
    } else if is(Outcome::Warn) {
        Outcome::Warn
    } else {
        Outcome::Pass
    }
}

impl Check {
    fn new(id: &'static str, outcome: Outcome, seen: impl Into<String>) -> Self {
        Self { id, subject: None, outcome, seen: seen.into(), mend: None }
    }

    fn of(self, subject: &str) -> Self {
        Self { subject: Some(subject.to_owned()), ..self }
    }

    fn fixed_by(self, mend: impl Into<String>) -> Self {
        Self { mend: Some(mend.into()), ..self }
    }
}

/// The skipped check when no login host could be reached.
fn unreached(id: &'static str) -> Vec<Check> {
    vec![Check::new(id, Outcome::Skipped, "no login host could be reached")]
}

#[cfg(test)]
mod tests;

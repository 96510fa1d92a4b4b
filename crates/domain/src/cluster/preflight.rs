//! What keeps a cluster from being worked with: facts become checks, each with what was seen and how to mend it.

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

/// What came of a login host.
#[derive(Debug, Clone)]
pub struct HostFinding {
    /// `host`, or `host:port` when the port is not 22.
    pub host: String,
    /// What was found there, or what kept us from it.
    pub found: Result<PreflightAnswer, Obstacle>,
}

/// What kept us from a login host. The texts are those of the connection itself.
#[derive(Debug, Clone)]
pub struct Obstacle {
    /// How far we came.
    pub kind: ObstacleKind,
    /// What was seen.
    pub seen: String,
    /// What to do about it.
    pub mend: String,
}

/// How far we came on the way to a login host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObstacleKind {
    /// There is no usable key on this side.
    NoKey,
    /// It does not answer.
    Unreachable,
    /// We refused its host key.
    HostKey,
    /// It refused our key.
    Login,
    /// We were logged in, and the answer did not come or was not understood.
    Command,
}

/// The private key on this side.
#[derive(Debug, Clone)]
pub struct KeyFinding {
    /// Where it is; none when only an agent has keys.
    pub path: Option<String>,
    /// Why it cannot be used, and what to do.
    pub unusable: Option<(String, String)>,
    /// Its permission bits, when it could be looked at.
    pub mode: Option<u32>,
}

/// All checks of a cluster, in the order in which they are mended.
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

/// What all checks come to: the worst of them, where a skipped one says nothing.
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

    fn mended_by(self, mend: impl Into<String>) -> Self {
        Self { mend: Some(mend.into()), ..self }
    }
}

/// A check for which nobody could be asked.
fn unasked(id: &'static str) -> Vec<Check> {
    vec![Check::new(id, Outcome::Skipped, "no login host could be asked")]
}

#[cfg(test)]
mod tests;

//! Access to the cluster: user, hosts, key, host keys, logins.

use super::{Check, HostFinding, KeyFinding, ObstacleKind, Outcome};
use crate::cluster::target::Cluster;

pub(super) fn account(cluster: &Cluster, hosts: &[HostFinding]) -> Check {
    let names: Vec<&str> = hosts.iter().map(|host| host.host.as_str()).collect();
    if names.is_empty() {
        return Check::new("user_and_hosts", Outcome::Fail, "no login host is configured")
            .fixed_by("List the login hosts in `hosts` (SLURM_HOSTNAME).");
    }
    Check::new("user_and_hosts", Outcome::Pass, format!("{} at {}", cluster.user, names.join(", ")))
}

/// ssh(1) rejects a key that others can read, so the check reports it too.
pub(super) fn key(key: &KeyFinding) -> Check {
    let id = "private_key";
    let Some(path) = &key.path else {
        return Check::new(id, Outcome::Skipped, "no key file is configured; the keys are in an agent");
    };
    if let Some((why, mend)) = &key.unusable {
        return Check::new(id, Outcome::Fail, why.clone()).fixed_by(mend.clone());
    }
    match key.mode {
        Some(mode) if mode & 0o077 != 0 => Check::new(
            id,
            Outcome::Fail,
            format!("{path} has mode {mode:04o}: users other than its owner can access it"),
        )
        .fixed_by(format!("Run: chmod 600 {path}")),
        Some(mode) => Check::new(id, Outcome::Pass, format!("{path} has mode {mode:04o}")),
        None => Check::new(id, Outcome::Skipped, format!("the mode of {path} could not be read")),
    }
}

/// Two checks of one login host: its key is known, and the login needs no interaction.
pub(super) fn host(finding: &HostFinding) -> [Check; 2] {
    let host = &finding.host;
    let (known, login) = match &finding.found {
        Ok(_) => (
            Check::new("host_key", Outcome::Pass, "the host key is known"),
            Check::new("login", Outcome::Pass, "logged in with a key, without a prompt"),
        ),
        Err(obstacle) => {
            let failed =
                |id| Check::new(id, Outcome::Fail, obstacle.seen.clone()).fixed_by(obstacle.mend.clone());
            match obstacle.kind {
                ObstacleKind::HostKey => (
                    failed("host_key"),
                    Check::new("login", Outcome::Skipped, "not tried: the host key is not known"),
                ),
                ObstacleKind::Unreachable => {
                    (Check::new("host_key", Outcome::Skipped, "the host did not answer"), failed("login"))
                }
                ObstacleKind::NoKey => (
                    Check::new("host_key", Outcome::Skipped, "there is no private key to log in with"),
                    failed("login"),
                ),
                ObstacleKind::Login => {
                    (Check::new("host_key", Outcome::Pass, "the host key is known"), failed("login"))
                }
                ObstacleKind::Command => (
                    Check::new("host_key", Outcome::Pass, "the host key is known"),
                    Check::new("login", Outcome::Warn, format!("logged in, but: {}", obstacle.seen))
                        .fixed_by(obstacle.mend.clone()),
                ),
            }
        }
    };
    [known.of(host), login.of(host)]
}

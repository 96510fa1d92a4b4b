//! Whether we get in: user, hosts, key, host keys, logins.

use super::{Check, HostFinding, KeyFinding, ObstacleKind, Outcome};
use crate::cluster::target::Cluster;

pub(super) fn account(cluster: &Cluster, hosts: &[HostFinding]) -> Check {
    let names: Vec<&str> = hosts.iter().map(|host| host.host.as_str()).collect();
    if names.is_empty() {
        return Check::new("user_and_hosts", Outcome::Fail, "no login host is configured")
            .mended_by("List the login hosts under hosts (SLURM_HOSTNAME).");
    }
    Check::new("user_and_hosts", Outcome::Pass, format!("{} at {}", cluster.user, names.join(", ")))
}

/// ssh(1) refuses a key that others may read; a service that does not leaves it lying open.
pub(super) fn key(key: &KeyFinding) -> Check {
    let id = "private_key";
    let Some(path) = &key.path else {
        return Check::new(id, Outcome::Skipped, "no key file is configured; an agent has the keys");
    };
    if let Some((why, mend)) = &key.unusable {
        return Check::new(id, Outcome::Fail, why.clone()).mended_by(mend.clone());
    }
    match key.mode {
        Some(mode) if mode & 0o077 != 0 => Check::new(
            id,
            Outcome::Fail,
            format!("{path} has mode {mode:04o}: others than its owner may use it"),
        )
        .mended_by(format!("Run: chmod 600 {path}")),
        Some(mode) => Check::new(id, Outcome::Pass, format!("{path} has mode {mode:04o}")),
        None => Check::new(id, Outcome::Skipped, format!("{path} could not be looked at")),
    }
}

/// Three checks of one login host: it answers with a known key, and lets us in without a question.
pub(super) fn host(finding: &HostFinding) -> [Check; 2] {
    let host = &finding.host;
    let (known, login) = match &finding.found {
        Ok(_) => (
            Check::new("host_key", Outcome::Pass, "its key is a known one"),
            Check::new("login", Outcome::Pass, "logged in with a key, without a question"),
        ),
        Err(obstacle) => {
            let failed =
                |id| Check::new(id, Outcome::Fail, obstacle.seen.clone()).mended_by(obstacle.mend.clone());
            match obstacle.kind {
                ObstacleKind::HostKey => (
                    failed("host_key"),
                    Check::new("login", Outcome::Skipped, "not tried, because its key is not a known one"),
                ),
                ObstacleKind::Unreachable => {
                    (Check::new("host_key", Outcome::Skipped, "the host did not answer"), failed("login"))
                }
                ObstacleKind::NoKey => (
                    Check::new("host_key", Outcome::Skipped, "there is no key to log in with"),
                    failed("login"),
                ),
                ObstacleKind::Login => {
                    (Check::new("host_key", Outcome::Pass, "its key is a known one"), failed("login"))
                }
                ObstacleKind::Command => (
                    Check::new("host_key", Outcome::Pass, "its key is a known one"),
                    Check::new("login", Outcome::Warn, format!("logged in, but: {}", obstacle.seen))
                        .mended_by(obstacle.mend.clone()),
                ),
            }
        }
    };
    [known.of(host), login.of(host)]
}

//! Whether containers can be run and their images pulled.

use remote::DeepFacts;

use super::{Check, HostFinding, Outcome, scheduler::said, unasked};
use crate::cluster::target::Cluster;

pub(super) fn pyxis(deep: Option<&DeepFacts>) -> Vec<Check> {
    let id = "pyxis";
    let Some((known, help)) = deep.and_then(|deep| deep.pyxis.as_ref()) else { return unasked(id) };
    vec![if *known {
        Check::new(id, Outcome::Pass, "srun knows --container-image")
    } else if help.code == 0 {
        Check::new(id, Outcome::Fail, "srun --help does not list --container-image").mended_by(
            "Ask the site to install Pyxis and to name it in plugstack.conf on login hosts, too; until then only \
             commands without an image run.",
        )
    } else {
        Check::new(id, Outcome::Skipped, said(help, "srun --help"))
    }]
}

/// Images are converted by a job of its own, so a login host without enroot does no harm.
pub(super) fn enroot(cluster: &Cluster, hosts: &[HostFinding]) -> Vec<Check> {
    let id = "enroot";
    let mut answers = hosts.iter().filter_map(|host| host.found.as_ref().ok()).peekable();
    if answers.peek().is_none() {
        return unasked(id);
    }
    let partition = &cluster.images.conversion_partition;
    vec![if answers.all(|answer| answer.enroot) {
        Check::new(id, Outcome::Pass, "enroot is on PATH")
    } else {
        Check::new(
            id,
            Outcome::Skipped,
            format!("not on PATH of a login host; images are converted by jobs in partition {partition}"),
        )
    }]
}

pub(super) fn credentials(deep: Option<&DeepFacts>) -> Vec<Check> {
    let id = "enroot_credentials";
    let file = "~/.config/enroot/.credentials";
    let Some(deep) = deep else { return unasked(id) };
    let install = "PUT /clusters/{name}/enroot-credentials installs them; images of nvcr.io need an entry for nvcr.io and \
                   one for authn.nvidia.com, both with the login $oauthtoken.";
    vec![match deep.credentials_mode {
        None => Check::new(
            id,
            Outcome::Warn,
            format!("{file} is not there: only images that need no login can be pulled"),
        )
        .mended_by(install),
        Some(mode) if mode & 0o077 != 0 => Check::new(
            id,
            Outcome::Fail,
            format!("{file} has mode {mode:04o}: others may read the passwords in it"),
        )
        .mended_by(format!("Run on the cluster: chmod 600 {file}")),
        Some(_) if deep.machines.is_empty() => {
            Check::new(id, Outcome::Warn, format!("{file} names no machine")).mended_by(install)
        }
        Some(mode) => {
            Check::new(id, Outcome::Pass, format!("mode {mode:04o}; for {}", deep.machines.join(", ")))
        }
    }]
}

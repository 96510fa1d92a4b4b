//! Whether containers can run and images can be pulled.

use remote::DeepFacts;

use super::{Check, HostFinding, Outcome, scheduler::said, unreached};
use crate::cluster::target::Cluster;

pub(super) fn pyxis(deep: Option<&DeepFacts>) -> Vec<Check> {
    let id = "pyxis";
    let Some((known, help)) = deep.and_then(|deep| deep.pyxis.as_ref()) else { return unreached(id) };
    vec![if *known {
        Check::new(id, Outcome::Pass, "srun supports --container-image")
    } else if help.code == 0 {
        Check::new(id, Outcome::Fail, "srun --help does not list --container-image").fixed_by(
            "Ask the site to install Pyxis and to list it in plugstack.conf, also on the login hosts. Until then only \
             commands without an image can run.",
        )
    } else {
        Check::new(id, Outcome::Skipped, said(help, "srun --help"))
    }]
}

/// A Slurm job converts images, so login hosts do not need enroot.
pub(super) fn enroot(cluster: &Cluster, hosts: &[HostFinding]) -> Vec<Check> {
    let id = "enroot";
    let mut answers = hosts.iter().filter_map(|host| host.found.as_ref().ok()).peekable();
    if answers.peek().is_none() {
        return unreached(id);
    }
    let partition = &cluster.images.conversion_partition;
    vec![if answers.all(|answer| answer.enroot) {
        Check::new(id, Outcome::Pass, "enroot is on PATH")
    } else {
        Check::new(
            id,
            Outcome::Skipped,
            format!("not on PATH of a login host; Slurm jobs in partition {partition} convert images"),
        )
    }]
}

pub(super) fn credentials(deep: Option<&DeepFacts>) -> Vec<Check> {
    let id = "enroot_credentials";
    let file = "~/.config/enroot/.credentials";
    let Some(deep) = deep else { return unreached(id) };
    let install = "Install them with PUT /clusters/{name}/enroot-credentials. Images of nvcr.io need an entry for nvcr.io and \
                   one for authn.nvidia.com, both with the login $oauthtoken.";
    vec![match deep.credentials_mode {
        None => {
            Check::new(id, Outcome::Warn, format!("{file} does not exist: only public images can be pulled"))
                .fixed_by(install)
        }
        Some(mode) if mode & 0o077 != 0 => Check::new(
            id,
            Outcome::Fail,
            format!("{file} has mode {mode:04o}: other users can read the passwords in it"),
        )
        .fixed_by(format!("Run on the cluster: chmod 600 {file}")),
        Some(_) if deep.machines.is_empty() => {
            Check::new(id, Outcome::Warn, format!("{file} has no machine entry")).fixed_by(install)
        }
        Some(mode) => {
            Check::new(id, Outcome::Pass, format!("mode {mode:04o}; for {}", deep.machines.join(", ")))
        }
    }]
}

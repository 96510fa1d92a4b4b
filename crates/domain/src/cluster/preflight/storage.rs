//! Whether jobs can store their files.

use remote::{BaseDir, BaseState, DeepFacts};

use super::{Check, HostFinding, Outcome, unreached};
use crate::cluster::target::Cluster;

const GIB: u64 = 1 << 30;
/// Less than a checkpoint of a large model. It is a warning only if more than half is in use: in a small file system that
/// is nearly empty there is nothing to remove.
const LITTLE: u64 = 20 * GIB;
/// With at most a fiftieth free, a file system is nearly full for all its users, unless this much is free.
const PLENTY: u64 = 1024 * GIB;
/// Too little even for logs and specs.
const TOO_LITTLE: u64 = GIB / 4;
const FEW_INODES: u64 = 10_000;

pub(super) fn base_dir(cluster: &Cluster, finding: &HostFinding) -> Check {
    let id = "base_directory";
    let dir = &cluster.base_dir;
    let check = match &finding.found {
        Err(_) => Check::new(id, Outcome::Skipped, "the host could not be reached"),
        Ok(answer) => {
            let BaseDir { state, said, .. } = &answer.base;
            let failed = |seen: String| {
                Check::new(id, Outcome::Fail, seen).fixed_by(format!(
                    "Make {dir} a directory that {} can write to on all login hosts and compute nodes, or configure another \
                     base_results_dir (SLURM_BASE_RESULTS_DIR).",
                    cluster.user
                ))
            };
            match state {
                BaseState::Writable => Check::new(id, Outcome::Pass, format!("{dir} is writable")),
                BaseState::Creatable => {
                    Check::new(id, Outcome::Pass, format!("{dir} does not exist yet, and can be created"))
                }
                BaseState::Unwritable => failed(format!("{dir} is not writable: {said}")),
                BaseState::Uncreatable => failed(format!("{dir} cannot be created: {said}")),
                BaseState::Silent => failed(format!("the file system of {dir} did not answer within 10 s")),
            }
        }
    };
    check.of(&finding.host)
}

/// The file system is shared, so the report of one host holds for all.
pub(super) fn space(cluster: &Cluster, hosts: &[HostFinding]) -> Vec<Check> {
    let id = "free_space";
    let mut answers = hosts.iter().filter_map(|host| host.found.as_ref().ok());
    let Some((free, all, inodes)) =
        answers.find_map(|answer| answer.base.space.map(|(free, all)| (free, all, answer.base.free_inodes)))
    else {
        return unreached(id);
    };
    let seen = format!("{} of {} GiB are free below {}", free / GIB, all / GIB, cluster.base_dir);
    let mend = "Remove files there, or configure another base_results_dir (SLURM_BASE_RESULTS_DIR).";
    // Some file systems do not count inodes and report 0.
    let few = inodes.is_some_and(|inodes| (1..FEW_INODES).contains(&inodes));
    let is_low = (free < LITTLE && free < all / 2) || (free <= all / 50 && free < PLENTY);
    vec![if free < TOO_LITTLE {
        Check::new(id, Outcome::Fail, seen).fixed_by(mend)
    } else if few {
        let seen = format!("{seen}, but only {} inodes", inodes.unwrap_or(0));
        Check::new(id, Outcome::Warn, seen).fixed_by(mend)
    } else if is_low {
        Check::new(id, Outcome::Warn, seen).fixed_by(mend)
    } else {
        Check::new(id, Outcome::Pass, seen)
    }]
}

/// Both `quota -w` and `lfs quota` mark a number above its limit with an asterisk.
pub(super) fn quota(deep: Option<&DeepFacts>) -> Vec<Check> {
    let id = "quota";
    let Some(deep) = deep else { return unreached(id) };
    let Some(said) = &deep.quota else {
        return vec![Check::new(id, Outcome::Skipped, "neither `lfs quota` nor `quota` is on PATH")];
    };
    let is_marked = |word: &str| word.len() > 1 && word.ends_with('*') && word.as_bytes()[0].is_ascii_digit();
    vec![if said.text.split_whitespace().any(is_marked) {
        Check::new(id, Outcome::Fail, said.text.clone())
            .fixed_by("The quota is exceeded: remove files, or ask the site for more.")
    } else if said.code != 0 {
        Check::new(id, Outcome::Skipped, super::scheduler::said(said, "quota"))
    } else if said.text.is_empty() {
        Check::new(id, Outcome::Pass, "no quota is set")
    } else {
        Check::new(id, Outcome::Pass, said.text.clone())
    }]
}

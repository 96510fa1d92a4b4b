//! Words that a cluster must know: types of GPUs, resources, features, accounts and QOS.

use std::collections::BTreeSet;

use slurm::{Associations, Constraint, NodeGroup, PartitionInfo};

use super::{
    ReportedLimits,
    hardware::{most_of, requested},
    names,
};
use crate::{request::spec::JobSpec, violation::Violation};

/// A word that the cluster did not report.
pub(super) struct UnknownWord {
    pub(super) violation: Violation,
    /// Whether the report is complete, so that Slurm would refuse the job.
    pub(super) is_certain: bool,
}

/// The most known words that an error lists.
const MOST_LISTED: usize = 30;

impl ReportedLimits {
    pub(super) fn unknown_words(&self, spec: &JobSpec, chosen: &[&PartitionInfo]) -> Vec<UnknownWord> {
        if chosen.is_empty() {
            return Vec::new();
        }
        let mut found = self.unknown_resources(spec, chosen);
        found.extend(
            spec.options.constraint.as_ref().into_iter().flat_map(|c| self.unknown_features(c, chosen)),
        );
        found.extend(self.unknown_account(spec, chosen));
        found
    }

    fn unknown_resources(&self, spec: &JobSpec, chosen: &[&PartitionInfo]) -> Vec<UnknownWord> {
        let missing = requested(spec).into_iter().filter(|(_, gres)| most_of(gres, chosen) == Some(0));
        let word = |(pointer, gres): (String, slurm::Gres)| {
            let shown = match &gres.kind {
                Some(kind) => format!("{}:{kind}", gres.name),
                None => gres.name.to_string(),
            };
            let groups = chosen.iter().flat_map(|partition| &partition.nodes);
            let known: BTreeSet<&str> = groups
                .filter_map(|group| group.gres.as_ref())
                .flat_map(|gres| gres.keys())
                .map(String::as_str)
                .collect();
            let detail = self.not_there("resource", &shown, chosen, &known);
            let code = if pointer.ends_with("gpu_type") { "unknown_gpu_type" } else { "unknown_gres" };
            UnknownWord { violation: Violation::new(pointer, code, detail), is_certain: self.fresh }
        };
        missing.map(word).collect()
    }

    fn unknown_features(&self, constraint: &Constraint, chosen: &[&PartitionInfo]) -> Vec<UnknownWord> {
        let groups: Vec<&NodeGroup> =
            chosen.iter().flat_map(|partition| &partition.nodes).filter(|group| group.count > 0).collect();
        let is_certain = self.fresh && groups.iter().all(|group| group.features.is_some());
        let known: BTreeSet<&str> =
            groups.iter().filter_map(|group| group.features.as_ref()).flatten().map(String::as_str).collect();
        let unknown = constraint.features().into_iter().filter(|feature| !known.contains(feature));
        let word = |feature: &str| {
            let detail = self.not_there("feature", feature, chosen, &known);
            let violation = Violation::new("/resources/constraint", "unknown_feature", detail);
            UnknownWord { violation, is_certain }
        };
        unknown.map(word).collect()
    }

    /// An account or a QOS that the user has in none of the partitions.
    fn unknown_account(&self, spec: &JobSpec, chosen: &[&PartitionInfo]) -> Option<UnknownWord> {
        let all: Vec<&Associations> =
            chosen.iter().map(|partition| partition.associations.as_ref()).collect::<Option<_>>()?;
        let account = spec.options.account.as_ref().filter(|_| !spec.options.drops("account"));
        if let Some(account) = account
            && !all.iter().any(|associations| associations.accounts.contains_key(account.as_str()))
        {
            let known: BTreeSet<&str> =
                all.iter().flat_map(|one| one.accounts.keys()).map(String::as_str).collect();
            let detail = self.not_the_users("account", account.as_str(), &known);
            let violation = Violation::new("/backend_details/account", "unknown_account", detail);
            return Some(UnknownWord {
                violation,
                is_certain: self.fresh && all.iter().all(|one| one.enforced),
            });
        }
        let qos = spec.options.qos.as_ref().filter(|_| !spec.options.drops("qos"))?;
        let is_used = |name: &&String| account.is_none_or(|account| account.as_str() == name.as_str());
        let lists: Vec<&BTreeSet<String>> = all
            .iter()
            .flat_map(|one| one.accounts.iter().filter(|(name, _)| is_used(name)).map(|(_, qos)| qos))
            .collect();
        // An account with an empty list has its QOS from elsewhere.
        if lists.iter().any(|list| list.is_empty() || list.contains(qos.as_str())) {
            return None;
        }
        let known: BTreeSet<&str> = lists.into_iter().flatten().map(String::as_str).collect();
        let detail = self.not_the_users("QOS", qos.as_str(), &known);
        let violation = Violation::new("/backend_details/qos", "unknown_qos", detail);
        Some(UnknownWord { violation, is_certain: self.fresh && all.iter().all(|one| one.qos_enforced) })
    }

    fn not_there(&self, what: &str, word: &str, chosen: &[&PartitionInfo], known: &BTreeSet<&str>) -> String {
        let names = names(chosen.iter().copied());
        format!("no node of {names} has the {what} `{word}` (sinfo, {}); {}", self.said(), list(known))
    }

    fn not_the_users(&self, what: &str, word: &str, known: &BTreeSet<&str>) -> String {
        format!(
            "the service's user has no {what} `{word}` there (sacctmgr, {}); {}",
            self.said(),
            list(known)
        )
    }
}

fn list(known: &BTreeSet<&str>) -> String {
    if known.is_empty() {
        return "there is none of that kind".to_owned();
    }
    let mut shown: Vec<String> = known.iter().take(MOST_LISTED).map(|word| format!("`{word}`")).collect();
    if known.len() > MOST_LISTED {
        shown.push("…".to_owned());
    }
    format!("known are {}", shown.join(", "))
}

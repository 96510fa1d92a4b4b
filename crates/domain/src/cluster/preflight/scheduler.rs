//! Whether Slurm is there, answers, and takes jobs of this user.

use remote::{DeepFacts, Said};

use super::{Check, HostFinding, Outcome, unasked};
use crate::cluster::target::Cluster;

pub(super) fn commands(finding: &HostFinding) -> Check {
    let id = "scheduler_commands";
    let check = match &finding.found {
        Err(_) => Check::new(id, Outcome::Skipped, "the host could not be asked"),
        Ok(answer) if answer.missing_commands.is_empty() => {
            Check::new(id, Outcome::Pass, "sbatch, squeue, sacct, scancel, scontrol, sinfo, srun and tar are on PATH")
        }
        Ok(answer) => {
            Check::new(id, Outcome::Fail, format!("not on PATH: {}", answer.missing_commands.join(", "))).mended_by(
                "Put Slurm's bin directory on the PATH of non-interactive logins, in what the login shell reads for \
                 them or with SetEnv of sshd; ~/.bashrc often ends early for them.",
            )
        }
    };
    check.of(&finding.host)
}

pub(super) fn controller(deep: Option<&DeepFacts>) -> Vec<Check> {
    let id = "controller";
    let Some(ping) = deep.and_then(|deep| deep.ping.as_ref()) else { return unasked(id) };
    let cluster = deep.and_then(|deep| deep.cluster_name.as_deref()).unwrap_or("not known");
    vec![if ping.code == 0 {
        Check::new(id, Outcome::Pass, format!("{} (ClusterName {cluster})", ping.text))
    } else {
        Check::new(id, Outcome::Fail, said(ping, "scontrol ping")).mended_by(
            "Ask the site's administrators: the Slurm controller does not answer its own login host.",
        )
    }]
}

/// One trial a partition, with the configured account: `sbatch --test-only` is the word of Slurm itself.
pub(super) fn partitions(cluster: &Cluster, deep: Option<&DeepFacts>) -> Vec<Check> {
    let id = "partition";
    let Some(deep) = deep else { return unasked(id) };
    let names = cluster.partitions.iter().flat_map(slurm::PartitionList::iter).map(|name| name.to_string());
    let subjects = names.map(Some).chain(std::iter::once(None).filter(|_| cluster.partitions.is_none()));
    let account =
        cluster.account.as_ref().map_or("the default account".to_owned(), |name| format!("account {name}"));
    let judge = |(subject, trial): (Option<String>, &Said)| {
        let check = if trial.code == 0 {
            Check::new(
                id,
                Outcome::Pass,
                format!("takes a job of {} on {account}: {}", cluster.user, trial.text),
            )
        } else {
            Check::new(id, Outcome::Fail, said(trial, "sbatch --test-only")).mended_by(format!(
                "Configure partitions (SLURM_PARTITION) that {} may use with {account}; `sinfo` and `scontrol show \
                 partition` on the login host tell which, and GET /clusters/{}/partitions what there is.",
                cluster.user, cluster.name
            ))
        };
        Check { subject, ..check }
    };
    subjects.zip(&deep.trials).map(judge).collect()
}

pub(super) fn association(cluster: &Cluster, deep: Option<&DeepFacts>) -> Vec<Check> {
    let id = "account";
    let Some((deep, accounting)) = deep.and_then(|deep| Some((deep, deep.accounting.as_ref()?))) else {
        return unasked(id);
    };
    if accounting.code != 0 {
        // 127: sacctmgr is not installed.
        let off = slurm::classify(&accounting.text).is_accounting_disabled() || accounting.code == 127;
        return vec![if off {
            Check::new(id, Outcome::Skipped, "the site keeps no accounting")
        } else {
            Check::new(id, Outcome::Warn, said(accounting, "sacctmgr"))
                .mended_by("Ask the site's administrators: the accounting database does not answer, so ended jobs may be lost sight of.")
        }];
    }
    let here =
        |name: &str| deep.cluster_name.as_deref().is_none_or(|cluster| cluster.eq_ignore_ascii_case(name));
    let mut accounts: Vec<&str> =
        deep.associations.iter().filter(|one| here(&one.cluster)).map(|one| one.account.as_str()).collect();
    accounts.sort_unstable();
    accounts.dedup();
    let list = if accounts.is_empty() { "none".to_owned() } else { accounts.join(", ") };
    let user = &cluster.user;
    let known =
        |account: &slurm::Account| accounts.iter().any(|one| one.eq_ignore_ascii_case(account.as_str()));
    vec![match &cluster.account {
        Some(account) if known(account) => {
            Check::new(id, Outcome::Pass, format!("{user} may use {account} (its accounts: {list})"))
        }
        Some(account) => Check::new(
            id,
            Outcome::Fail,
            format!("{user} has no association with {account}; its accounts: {list}"),
        )
        .mended_by(format!(
            "Configure account (SLURM_ACCOUNT) as one of them, or ask the site to add {user} to {account}."
        )),
        None if accounts.is_empty() => Check::new(id, Outcome::Warn, format!("{user} has no account"))
            .mended_by(format!("Ask the site to give {user} an account, unless it runs jobs without one.")),
        None => Check::new(
            id,
            Outcome::Pass,
            format!("none is configured, so Slurm takes its own default of: {list}"),
        ),
    }]
}

/// What a command said, or how it ended when it said nothing.
pub(super) fn said(said: &Said, command: &str) -> String {
    match (said.code, said.text.as_str()) {
        (124 | 137, _) => format!("{command} did not answer within 10 s"),
        (127, _) => format!("{command}: there is no such command on PATH"),
        (code, "") => format!("{command} ended with {code} and said nothing"),
        (_, text) => text.to_owned(),
    }
}

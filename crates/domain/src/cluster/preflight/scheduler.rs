//! Whether Slurm answers and accepts jobs of this user.

use remote::{DeepFacts, Said};

use super::{Check, HostFinding, Outcome, unreached};
use crate::cluster::target::Cluster;

pub(super) fn commands(finding: &HostFinding) -> Check {
    let id = "scheduler_commands";
    let check = match &finding.found {
        Err(_) => Check::new(id, Outcome::Skipped, "the host could not be reached"),
        Ok(answer) if answer.missing_commands.is_empty() => {
            Check::new(id, Outcome::Pass, "sbatch, squeue, sacct, scancel, scontrol, sinfo, srun and tar are on PATH")
        }
        Ok(answer) => {
            Check::new(id, Outcome::Fail, format!("not on PATH: {}", answer.missing_commands.join(", "))).fixed_by(
                "Add Slurm's bin directory to the PATH of non-interactive logins: in a startup file that the login shell \
                 reads for them (~/.bashrc often returns early), or with SetEnv of sshd.",
            )
        }
    };
    check.of(&finding.host)
}

pub(super) fn controller(deep: Option<&DeepFacts>) -> Vec<Check> {
    let id = "controller";
    let Some(ping) = deep.and_then(|deep| deep.ping.as_ref()) else { return unreached(id) };
    let cluster = deep.and_then(|deep| deep.cluster_name.as_deref()).unwrap_or("unknown");
    vec![if ping.code == 0 {
        Check::new(id, Outcome::Pass, format!("{} (ClusterName {cluster})", ping.text))
    } else {
        Check::new(id, Outcome::Fail, said(ping, "scontrol ping"))
            .fixed_by("Ask the site's administrators: the Slurm controller does not answer its login host.")
    }]
}

/// One trial per partition with the configured account: `sbatch --test-only` gives Slurm's own decision.
pub(super) fn partitions(cluster: &Cluster, deep: Option<&DeepFacts>) -> Vec<Check> {
    let id = "partition";
    let Some(deep) = deep else { return unreached(id) };
    let names = cluster.partitions.iter().flat_map(slurm::PartitionList::iter).map(|name| name.to_string());
    let subjects = names.map(Some).chain(std::iter::once(None).filter(|_| cluster.partitions.is_none()));
    let account =
        cluster.account.as_ref().map_or("the default account".to_owned(), |name| format!("account {name}"));
    let judge = |(subject, trial): (Option<String>, &Said)| {
        let check = if trial.code == 0 {
            Check::new(
                id,
                Outcome::Pass,
                format!("accepts jobs of {} on {account}: {}", cluster.user, trial.text),
            )
        } else {
            Check::new(id, Outcome::Fail, said(trial, "sbatch --test-only")).fixed_by(format!(
                "Configure partitions (SLURM_PARTITION) that {} may use with {account}. GET /clusters/{}/partitions lists \
                 all; `scontrol show partition` on the login host shows their rules.",
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
        return unreached(id);
    };
    if accounting.code != 0 {
        // 127: sacctmgr is not installed.
        let off = slurm::classify(&accounting.text).is_accounting_disabled() || accounting.code == 127;
        return vec![if off {
            Check::new(id, Outcome::Skipped, "the site has no accounting")
        } else {
            Check::new(id, Outcome::Warn, said(accounting, "sacctmgr"))
                .fixed_by("Ask the site's administrators: the accounting database does not answer, so the outcome of finished jobs may be lost.")
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
        .fixed_by(format!(
            "Set account (SLURM_ACCOUNT) to one of them, or ask the site to add {user} to {account}."
        )),
        None if accounts.is_empty() => Check::new(id, Outcome::Warn, format!("{user} has no account"))
            .fixed_by(format!("Ask the site to give {user} an account, unless jobs run without one.")),
        None => Check::new(
            id,
            Outcome::Pass,
            format!("no account is configured, so Slurm uses the default of: {list}"),
        ),
    }]
}

/// A command's output, or how it failed if it printed nothing.
pub(super) fn said(said: &Said, command: &str) -> String {
    match (said.code, said.text.as_str()) {
        (124 | 137, _) => format!("{command} did not answer within 10 s"),
        (127, _) => format!("{command}: command not found on PATH"),
        (code, "") => format!("{command} exited with code {code} and printed nothing"),
        (_, text) => text.to_owned(),
    }
}

//! `clusters` and `preflight`: the state of the clusters, and what is wrong with one.

use std::process::ExitCode;

use anyhow::Context;
use serde::Deserialize;

use super::output::Output;
use crate::{
    cli::{PreflightArgs, ServerArgs},
    client::{Client, on_one_line, table},
};

#[derive(Deserialize)]
struct Clusters {
    clusters: Vec<Cluster>,
    unusable: Vec<Unusable>,
}

#[derive(Deserialize)]
struct Unusable {
    name: String,
    reason: String,
}

#[derive(Deserialize)]
struct Cluster {
    name: String,
    is_default: bool,
    state: String,
    user: String,
    login_hosts: Vec<Host>,
    partition: Option<String>,
    unavailable: Option<String>,
    poll: Option<Poll>,
}

#[derive(Deserialize)]
struct Host {
    host: String,
    state: String,
}

#[derive(Deserialize)]
struct Poll {
    active_jobs: u64,
    error: Option<String>,
}

pub(super) fn list(server: &ServerArgs) -> anyhow::Result<ExitCode> {
    let answer = Client::new(server).get("/clusters")?;
    Output::new().show(server, &answer, |found: Clusters| {
        let headers = ["NAME", "STATE", "USER", "LOGIN HOSTS", "PARTITION", "ACTIVE JOBS", "ERROR"];
        let unusable = found.unusable.into_iter().map(|Unusable { name, reason }| {
            let [user, hosts, partition, active] = [const { String::new() }; 4];
            [name, "unusable".to_owned(), user, hosts, partition, active, reason]
        });
        table(headers, found.clusters.into_iter().map(row).chain(unusable))
    })
}

fn row(cluster: Cluster) -> [String; 7] {
    let hosts = cluster.login_hosts.iter().map(|host| format!("{} {}", host.host, host.state));
    let hosts = hosts.collect::<Vec<_>>().join(", ");
    let (active, error) = cluster.poll.map_or((0, None), |poll| (poll.active_jobs, poll.error));
    [
        cluster.name,
        cluster.state,
        cluster.user,
        hosts,
        cluster.partition.unwrap_or_default(),
        active.to_string(),
        cluster.unavailable.or(error).unwrap_or_default(),
    ]
}

#[derive(Deserialize)]
struct Preflight {
    cluster: String,
    outcome: String,
    checks: Vec<Check>,
}

#[derive(Deserialize)]
struct Check {
    id: String,
    subject: Option<String>,
    outcome: String,
    observed: String,
    fix: Option<String>,
}

pub(super) fn preflight(args: &PreflightArgs) -> anyhow::Result<ExitCode> {
    let client = Client::new(&args.server);
    let name = match &args.cluster {
        Some(name) => name.to_string(),
        None => default_cluster(&client)?,
    };
    let answer = client.post(&format!("/clusters/{name}/preflight"), b"")?;
    let failed = answer.document::<Preflight>()?.outcome == "fail";
    Output::new().show(&args.server, &answer, |found: Preflight| report(&found))?;
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn default_cluster(client: &Client) -> anyhow::Result<String> {
    let Clusters { clusters, .. } = client.get("/clusters")?.document()?;
    let default = clusters.into_iter().find(|cluster| cluster.is_default).context(
        "the service has no default cluster; name a cluster, or set SLURM_USER and SLURM_HOSTNAME (or add a [[clusters]] \
         table) and restart the service",
    )?;
    Ok(default.name)
}

/// A table of all checks, then how to fix each one that did not pass.
fn report(found: &Preflight) -> String {
    let row = |check: &Check| {
        let subject = check.subject.clone().unwrap_or_default();
        [check.id.clone(), subject, check.outcome.clone(), check.observed.clone()]
    };
    let mut text = table(["CHECK", "SUBJECT", "OUTCOME", "FOUND"], found.checks.iter().map(row));
    for check in &found.checks {
        let Some(fix) = &check.fix else { continue };
        let subject = check.subject.as_ref().map(|subject| format!(" ({subject})")).unwrap_or_default();
        let lines = [
            format!("{}: {}{subject}", check.outcome, check.id),
            format!("  found: {}", check.observed),
            format!("  fix: {fix}"),
        ];
        text.push('\n');
        text.extend(lines.map(|line| on_one_line(&line) + "\n"));
    }
    text + &on_one_line(&format!("\u{2014} {}: {}", found.cluster, found.outcome)) + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_failed_check_is_listed_below_the_table_with_its_fix() {
        let json = r#"{"cluster": "dgx", "outcome": "fail", "checks": [
            {"id": "login", "subject": "login1", "outcome": "pass", "observed": "logged in", "fix": null},
            {"id": "private_key", "subject": null, "outcome": "fail", "observed": "mode 0644\u001b[2J", "fix": "chmod 600 key"}]}"#;
        let expected = "\
CHECK        SUBJECT  OUTCOME  FOUND
login        login1   pass     logged in
private_key           fail     mode 0644\u{241b}[2J

fail: private_key
  found: mode 0644\u{241b}[2J
  fix: chmod 600 key
\u{2014} dgx: fail
";
        assert_eq!(report(&serde_json::from_str(json).unwrap()), expected);
    }
}

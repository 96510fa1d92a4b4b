//! `cluster` and `preflight`: the clusters, their partitions, and what is wrong with one.

use std::process::ExitCode;

use anyhow::Context;
use domain::ClusterName;
use serde::Deserialize;

use serde_json::{Map, Value};

use super::{output::Output, request_file};
use crate::{
    cli::{ClusterAddArgs, ClusterCommand, OfClusterArgs, ServerArgs},
    client::{Client, on_one_line, table},
};

pub(super) fn run(command: &ClusterCommand) -> anyhow::Result<ExitCode> {
    match command {
        ClusterCommand::List(args) => list(args),
        ClusterCommand::Partitions(args) => partitions(args),
        ClusterCommand::Add(args) => add(args),
    }
}

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

fn list(server: &ServerArgs) -> anyhow::Result<ExitCode> {
    let answer = Client::new(server)?.get("/clusters")?;
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
struct Partitions {
    partitions: Vec<Partition>,
}

#[derive(Deserialize)]
struct Partition {
    name: String,
    is_default: bool,
    availability: String,
    time_limit: Option<String>,
    nodes: u32,
    nodes_by_state: Map<String, Value>,
    gpus_per_node: Option<u32>,
    #[serde(default)]
    gpu_types: Vec<String>,
}

fn partitions(args: &OfClusterArgs) -> anyhow::Result<ExitCode> {
    let client = Client::new(&args.server)?;
    let name = named(&client, args.cluster.as_ref())?;
    let answer = client.get(&format!("/clusters/{name}/partitions"))?;
    Output::new().show(&args.server, &answer, |found: Partitions| partition_table(found.partitions))
}

fn partition_table(partitions: Vec<Partition>) -> String {
    let headers = ["PARTITION", "STATE", "TIME LIMIT", "NODES", "GPUS PER NODE", "NODE STATES"];
    let row = |partition: Partition| {
        let default = if partition.is_default { " (default)" } else { "" };
        let states = partition.nodes_by_state.iter().map(|(state, nodes)| format!("{nodes} {state}"));
        let types = if partition.gpu_types.is_empty() {
            String::new()
        } else {
            format!(" {}", partition.gpu_types.join("|"))
        };
        [
            partition.name + default,
            partition.availability,
            partition.time_limit.unwrap_or_default(),
            partition.nodes.to_string(),
            partition.gpus_per_node.map(|gpus| format!("{gpus}{types}")).unwrap_or_default(),
            states.collect::<Vec<_>>().join(", "),
        ]
    };
    table(headers, partitions.into_iter().map(row))
}

/// Stores a cluster in the database of the service.
fn add(args: &ClusterAddArgs) -> anyhow::Result<ExitCode> {
    let mut settings: Map<String, Value> = match &args.file {
        Some(file) => serde_json::from_slice(&request_file::read(file, "a cluster")?)?,
        None => Map::new(),
    };
    let mut set = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            settings.insert(key.to_owned(), value);
        }
    };
    let given = |list: &[String]| (!list.is_empty()).then(|| list.into());
    set("name", Some(args.name.to_string().into()));
    set("user", args.user.clone().map(Value::from));
    set("hosts", given(&args.host));
    set("ssh_key", args.ssh_key.clone().map(Value::from));
    set("partitions", given(&args.partition));
    set("account", args.account.clone().map(Value::from));
    set("base_results_dir", args.base_results_dir.clone().map(Value::from));
    if let Some(file) = &args.host_keys {
        let keys =
            std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
        let is_key = |line: &&str| !line.trim().is_empty() && !line.starts_with('#');
        set("host_keys", Some(keys.lines().filter(is_key).collect()));
    }
    let answer = Client::new(&args.server)?.post("/clusters", &serde_json::to_vec(&settings)?)?;
    Output::new().show(&args.server, &answer, |_: Value| {
        format!("{} is stored; check it with `tao-slurm preflight {}`.\n", args.name, args.name)
    })
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

pub(super) fn preflight(args: &OfClusterArgs) -> anyhow::Result<ExitCode> {
    let client = Client::new(&args.server)?;
    let name = named(&client, args.cluster.as_ref())?;
    let answer = client.post(&format!("/clusters/{name}/preflight"), b"")?;
    let failed = answer.document::<Preflight>()?.outcome == "fail";
    Output::new().show(&args.server, &answer, |found: Preflight| report(&found))?;
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// The cluster with this name, else the service's default cluster.
fn named(client: &Client, cluster: Option<&ClusterName>) -> anyhow::Result<String> {
    if let Some(name) = cluster {
        return Ok(name.to_string());
    }
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
    use anstream::adapter::strip_str;

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
        assert_eq!(strip_str(&report(&serde_json::from_str(json).unwrap())).to_string(), expected);
    }

    #[test]
    fn a_partition_is_one_line() {
        let json = r#"{"partitions": [{"name": "polar", "is_default": true, "availability": "up", "time_limit": "4:00:00", "nodes": 4,
            "nodes_by_state": {"idle": 3, "mixed": 1}, "gpus_per_node": 8, "gpu_types": ["a100"]}]}"#;
        let Partitions { partitions } = serde_json::from_str(json).unwrap();
        let expected = "\
PARTITION        STATE  TIME LIMIT  NODES  GPUS PER NODE  NODE STATES
polar (default)  up     4:00:00     4      8 a100         3 idle, 1 mixed
";
        assert_eq!(strip_str(&partition_table(partitions)).to_string(), expected);
    }
}

//! `tao-slurm clusters`: the clusters as a table.

use std::process::ExitCode;

use serde::Deserialize;

use super::output::Output;
use crate::{
    cli::ClustersArgs,
    client::{Client, columns},
};

#[derive(Deserialize)]
struct Answer {
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

pub(super) fn run(args: &ClustersArgs) -> anyhow::Result<ExitCode> {
    let client = Client::new(&args.server);
    let answer = client.get("/clusters", None)?;
    let mut output = Output::new();
    if args.server.json {
        output.document(&answer.body)?;
        return Ok(ExitCode::SUCCESS);
    }
    let Answer { clusters, unusable } = client.document(&answer.body)?;
    let head = ["NAME", "STATE", "USER", "LOGIN HOSTS", "PARTITION", "ACTIVE", "ERROR"].map(str::to_owned);
    let rows: Vec<_> = std::iter::once(head)
        .chain(clusters.into_iter().map(row))
        .chain(unusable.into_iter().map(unusable_row))
        .collect();
    output.bytes(columns(&rows).as_bytes())?;
    Ok(ExitCode::SUCCESS)
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

fn unusable_row(cluster: Unusable) -> [String; 7] {
    let [user, hosts, partition, active] = [const { String::new() }; 4];
    [cluster.name, "unusable".to_owned(), user, hosts, partition, active, cluster.reason]
}

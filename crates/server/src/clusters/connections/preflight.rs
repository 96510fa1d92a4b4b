//! A preflight: one command on each login host, all at the same time. One of the hosts also checks the cluster.

use domain::preflight::{Check, HostFinding, KeyFinding, Obstacle, ObstacleKind, judge};
use futures_util::future::join_all;
use remote::{Preflight, RemoteCommand as _};
use ssh::{HostPort, SshConfig, SshError, SshPool};

use worker::{CallError, SshLink};

use crate::config::ClusterConfig;

/// Checks everything anew, over connections of its own and without the pauses after earlier failures. Returns also the most requests that it
/// made of Slurm.
pub(super) async fn run(config: &ClusterConfig) -> (Vec<Check>, u32) {
    let key = key(&config.ssh);
    let start = |host: &HostPort| {
        let alone = SshConfig { hosts: vec![host.clone()], sessions: 1, ..config.ssh.clone() };
        SshLink::new(config.cluster.name.clone(), SshPool::start(alone))
    };
    let links: Vec<SshLink> = config.ssh.hosts.iter().map(start).collect();
    // The preferred host checks the cluster, and another one only if it cannot.
    let commands: Vec<_> = (0..links.len()).map(|index| command(config, index == 0)).collect();
    let mut rpcs = commands.iter().map(Preflight::rpcs).sum();
    let mut found = join_all(links.iter().zip(&commands).map(|(link, command)| link.try_call(command))).await;
    if !found.iter().flatten().any(|answer| answer.deep.is_some())
        && let Some(index) = found.iter().position(Result::is_ok)
    {
        let again = command(config, true);
        rpcs += again.rpcs();
        found[index] = links[index].try_call(&again).await;
    }
    join_all(links.into_iter().map(|link| link.pool().clone().close())).await;
    let finding = |(host, found): (&HostPort, Result<_, CallError>)| HostFinding {
        host: host.to_string(),
        found: found.map_err(|error| obstacle(&error)),
    };
    let findings: Vec<_> = config.ssh.hosts.iter().zip(found).map(finding).collect();
    (judge(&config.cluster, &key, &findings), rpcs)
}

fn command(config: &ClusterConfig, deep: bool) -> Preflight {
    let cluster = &config.cluster;
    Preflight {
        deep,
        base_dir: cluster.base_dir.clone(),
        account: cluster.account.clone(),
        partitions: cluster.partitions.clone(),
        gpus: cluster.resources.gpus_per_node.min(1),
    }
}

fn key(ssh: &SshConfig) -> KeyFinding {
    let Some(path) = &ssh.key_path else {
        return KeyFinding { path: None, unusable: None, mode: None };
    };
    let inspected = ssh::inspect_key(path);
    KeyFinding {
        path: Some(path.display().to_string()),
        mode: inspected.as_ref().ok().copied(),
        unusable: inspected.err().map(|error| (error.to_string(), error.advice())),
    }
}

fn obstacle(error: &CallError) -> Obstacle {
    let error = match error {
        CallError::Ssh(error) => error,
        CallError::Answer(error) => {
            return Obstacle {
                kind: ObstacleKind::Command,
                seen: error.to_string(),
                mend: "Run `ssh HOST bash -c true`: bash must work in a non-interactive login, and the login must print nothing"
                    .to_owned(),
            };
        }
    };
    let kind = match error {
        SshError::HostKeyUnknown { .. } | SshError::HostKeyChanged { .. } => ObstacleKind::HostKey,
        SshError::AuthRefused { .. } => ObstacleKind::Login,
        SshError::KeyUnreadable { .. } | SshError::NoKey => ObstacleKind::NoKey,
        SshError::OutcomeUnknown { .. } | SshError::OutputTooLarge { .. } => ObstacleKind::Command,
        SshError::Unreachable { .. } | SshError::NotSent { .. } | SshError::Closed => {
            ObstacleKind::Unreachable
        }
    };
    Obstacle { kind, seen: error.to_string(), mend: error.advice() }
}

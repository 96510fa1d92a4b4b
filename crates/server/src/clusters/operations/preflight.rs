//! A preflight: one command on each login host at the same time; one of them also checks the cluster.

use domain::preflight::{Check, HostFinding, KeyFinding, Obstacle, ObstacleKind, judge};
use remote::{Preflight, PreflightAnswer};
use ssh::{HostPort, SshConfig, SshError, SshPool};
use tokio::task::JoinSet;
use worker::{CallError, SshLink};

use crate::config::ClusterConfig;

/// Opens new connections: open ones are not used, and pauses after failures are ignored.
pub(super) async fn run(config: &ClusterConfig) -> Vec<Check> {
    let key = key(&config.ssh);
    let links: Vec<(HostPort, SshLink)> = config
        .ssh
        .hosts
        .iter()
        .map(|host| {
            let alone = SshConfig { hosts: vec![host.clone()], sessions: 1, ..config.ssh.clone() };
            (host.clone(), SshLink::new(config.cluster.name.clone(), SshPool::start(alone)))
        })
        .collect();
    let mut tries = JoinSet::new();
    for (index, (_, link)) in links.iter().enumerate() {
        // The preferred host checks the cluster; another one only if it fails.
        let (link, command) = (link.clone(), question(config, index == 0));
        tries.spawn(async move { (index, link.try_call(&command).await) });
    }
    let mut found: Vec<Option<Result<PreflightAnswer, CallError>>> = links.iter().map(|_| None).collect();
    while let Some(tried) = tries.join_next().await {
        if let Ok((index, answer)) = tried {
            found[index] = Some(answer);
        }
    }
    let is_deep = |one: &Option<Result<PreflightAnswer, CallError>>| matches!(one, Some(Ok(answer)) if answer.deep.is_some());
    if !found.iter().any(is_deep)
        && let Some(index) = found.iter().position(|one| matches!(one, Some(Ok(_))))
    {
        found[index] = Some(links[index].1.try_call(&question(config, true)).await);
    }
    let findings: Vec<HostFinding> = links
        .iter()
        .zip(found)
        .map(|((host, _), found)| HostFinding {
            host: host.to_string(),
            found: found.unwrap_or(Err(CallError::Ssh(SshError::Closed))).map_err(|error| obstacle(&error)),
        })
        .collect();
    for (_, link) in links {
        link.pool().clone().close().await;
    }
    judge(&config.cluster, &key, &findings)
}

fn question(config: &ClusterConfig, deep: bool) -> Preflight {
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
                mend: "See what a non-interactive login prints and whether its bash works: ssh HOST bash -c true"
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

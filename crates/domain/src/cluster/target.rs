//! A named target from the configuration, as far as decisions about jobs need it.

use std::{fmt, str::FromStr};

use serde_with::{DeserializeFromStr, SerializeDisplay};
use slurm::{Account, PartitionList, RemotePath, UserName};

use crate::{
    cluster::{
        mount::Mount,
        policy::{BatchSettings, ImageSettings, RetrySettings},
        resources::Resources,
    },
    violation::Violation,
};

/// A cluster's name in the configuration and in every answer.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, SerializeDisplay, DeserializeFromStr)]
pub struct ClusterName(String);

/// A text that cannot name a cluster.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a cluster name is 1 to 64 of a-z, 0-9, `_`, `-` and `.`, beginning with a letter or a digit")]
pub struct InvalidClusterName;

impl ClusterName {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for ClusterName {
    type Err = InvalidClusterName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | '-' | '.');
        let begins = text.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit());
        if begins && text.len() <= 64 && text.chars().all(plain) {
            Ok(Self(text.to_owned()))
        } else {
            Err(InvalidClusterName)
        }
    }
}

impl fmt::Display for ClusterName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a job needs to know of the cluster it runs on.
#[derive(Debug, Clone)]
pub struct Cluster {
    pub name: ClusterName,
    pub user: UserName,
    /// The login hosts' names, without ports: TAO's workspaces are matched against them.
    pub hosts: Vec<String>,
    /// Where specs, scripts, logs and results of this user live on the shared file system.
    pub base_dir: RemotePath,
    pub account: Option<Account>,
    pub partitions: Option<PartitionList>,
    pub mounts: Vec<Mount>,
    /// What a request that says nothing gets.
    pub resources: Resources,
    /// The longest wall time a request may ask for, in hours.
    pub max_time_hours: f64,
    pub images: ImageSettings,
    pub retries: RetrySettings,
    pub batch: BatchSettings,
}

/// What a request says about where it wants to run.
#[derive(Debug, Clone, Copy, Default)]
pub struct ClusterChoice<'a> {
    pub cluster_name: Option<&'a str>,
    /// `cloud_metadata.slurm_user` of a TAO workspace.
    pub slurm_user: Option<&'a str>,
    /// `cloud_metadata.slurm_hostname` of a TAO workspace.
    pub slurm_hostnames: &'a [String],
}

/// Finds the cluster a request means: by name, else by TAO's workspace details, else the first configured.
///
/// A request only ever chooses among configured clusters; it never makes us connect to a host that it names.
pub fn choose_cluster<'c>(
    clusters: &'c [Cluster],
    choice: ClusterChoice<'_>,
) -> Result<&'c Cluster, Violation> {
    let known = || clusters.iter().map(|c| c.name.as_str()).collect::<Vec<_>>().join(", ");
    if let Some(name) = choice.cluster_name {
        let named = clusters.iter().find(|cluster| cluster.name.as_str() == name).ok_or_else(|| {
            let detail =
                format!("no cluster of that name is configured; the configured ones are: {}", known());
            Violation::new("/backend_details/cluster_name", "unknown_cluster", detail)
        })?;
        let other_user = choice.slurm_user.is_some_and(|user| user != named.user.as_str());
        if other_user || !choice.slurm_hostnames.iter().all(|host| named.hosts.contains(host)) {
            return Err(Violation::new(
                "/backend_details/cluster_name",
                "contradiction",
                "has another user or other login hosts than cloud_metadata says; leave one of them out",
            ));
        }
        return Ok(named);
    }
    if let Some(user) = choice.slurm_user {
        let serves = |cluster: &&Cluster| {
            cluster.user.as_str() == user
                && !choice.slurm_hostnames.is_empty()
                && choice.slurm_hostnames.iter().all(|host| cluster.hosts.contains(host))
        };
        return clusters.iter().find(serves).ok_or_else(|| {
            let detail = format!(
                "no configured cluster has this user and these login hosts; name one of: {}",
                known()
            );
            Violation::new("/cloud_metadata/slurm_hostname", "unknown_cluster", detail)
        });
    }
    clusters.first().ok_or_else(|| {
        Violation::new("/backend_details/cluster_name", "unknown_cluster", "no cluster is configured")
    })
}

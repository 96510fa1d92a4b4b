//! The configured clusters, as far as decisions about jobs need them.

use serde_with::{DeserializeFromStr, SerializeDisplay};
use slurm::{Account, PartitionList, RemotePath, UserName, text_type};

use crate::{
    cluster::{
        mount::Mount,
        policy::{BatchSettings, ImageSettings, RetrySettings, SubmitSettings},
        resources::Resources,
        rpc_budget::RpcBudget,
    },
    violation::Violation,
};

/// A cluster's name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, SerializeDisplay, DeserializeFromStr)]
pub struct ClusterName(String);

/// A text that is not a valid cluster name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a cluster name is 1 to 64 of a-z, 0-9, `_`, `-` and `.`, starting with a letter or a digit")]
pub struct InvalidClusterName;

text_type!(ClusterName, InvalidClusterName);

impl ClusterName {
    fn check(text: &str) -> Result<String, InvalidClusterName> {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | '-' | '.');
        let begins = text.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit());
        let is_name = begins && text.len() <= 64 && text.chars().all(plain);
        is_name.then(|| text.to_owned()).ok_or(InvalidClusterName)
    }
}

/// The configuration of a cluster that its jobs use.
#[derive(Debug, Clone)]
pub struct Cluster {
    pub name: ClusterName,
    pub user: UserName,
    /// The login hosts' names, without ports. TAO's workspaces are matched against them.
    pub hosts: Vec<String>,
    /// The directory on the shared file system for specs, scripts, logs and results.
    pub base_dir: RemotePath,
    pub account: Option<Account>,
    pub partitions: Option<PartitionList>,
    pub mounts: Vec<Mount>,
    /// Directories of the nodes that the login host does not have: what a job needs below them is not checked.
    pub node_local: Vec<RemotePath>,
    /// The defaults of a request.
    pub resources: Resources,
    /// The longest wall time that a request may have, in hours.
    pub max_time_hours: f64,
    pub images: ImageSettings,
    pub retries: RetrySettings,
    pub batch: BatchSettings,
    pub submit: SubmitSettings,
    /// How many requests Slurm's daemons accept from us; none: no limit.
    pub rpc_budget: Option<RpcBudget>,
}

/// A cluster's identity: where its jobs are, and whose they are. A cluster with another identity is another cluster,
/// whatever its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterIdentity {
    pub user: UserName,
    /// The login hosts, each with its port.
    pub hosts: Vec<String>,
    pub base_dir: RemotePath,
}

impl ClusterIdentity {
    /// The names of the settings in which `new` is another cluster; empty when it is the same.
    ///
    /// Login hosts change over a cluster's life. As long as one of them stays, it is the same cluster and its jobs are
    /// found there.
    pub fn differs_from(&self, new: &Self) -> Vec<&'static str> {
        let same_host = self.hosts.iter().any(|host| new.hosts.contains(host));
        let settings = [
            ("user", self.user == new.user),
            ("hosts", same_host),
            ("base_results_dir", self.base_dir == new.base_dir),
        ];
        settings.into_iter().filter(|(_, same)| !same).map(|(name, _)| name).collect()
    }
}

/// The base directory for a configured results directory: results go into `results` below the base, so a directory
/// that is itself named `results` is that one. TAO has three conflicting rules for this, and its own jobs can wait
/// forever for a status in another place.
pub fn base_of(results_dir: RemotePath) -> RemotePath {
    match results_dir.parent() {
        Some(parent) if results_dir.file_name() == "results" => parent,
        _ => results_dir,
    }
}

/// Selects the cluster of a request: by name, else by TAO's workspace details, else the first configured.
///
/// A request chooses only among configured clusters. The service never connects to a host that a request names.
pub(crate) fn choose_cluster<'c>(
    clusters: &'c [Cluster],
    name: Option<&str>,
    user: Option<&str>,
    hosts: &[String],
) -> Result<&'c Cluster, Violation> {
    let known = || clusters.iter().map(|c| c.name.as_str()).collect::<Vec<_>>().join(", ");
    if let Some(name) = name {
        let named = clusters.iter().find(|cluster| cluster.name.as_str() == name).ok_or_else(|| {
            let detail = format!(
                "is {}, which is not a configured cluster; the configured clusters are: {}",
                slurm::shown(name),
                known()
            );
            Violation::new("/backend_details/cluster_name", "unknown_cluster", detail)
        })?;
        let other_user = user.is_some_and(|user| user != named.user.as_str());
        if other_user || !hosts.iter().all(|host| named.hosts.contains(host)) {
            return Err(Violation::new(
                "/backend_details/cluster_name",
                "contradiction",
                "contradicts cloud_metadata, which has another user or other login hosts; leave one of them out",
            ));
        }
        return Ok(named);
    }
    if let Some(user) = user {
        let serves = |cluster: &&Cluster| {
            cluster.user.as_str() == user
                && !hosts.is_empty()
                && hosts.iter().all(|host| cluster.hosts.contains(host))
        };
        return clusters.iter().find(serves).ok_or_else(|| {
            let detail = format!(
                "no configured cluster has this user and these login hosts; the configured clusters are: {}",
                known()
            );
            Violation::new("/cloud_metadata/slurm_hostname", "unknown_cluster", detail)
        });
    }
    clusters.first().ok_or_else(|| {
        Violation::new("/backend_details/cluster_name", "unknown_cluster", "no cluster is configured")
    })
}

#[cfg(test)]
mod tests {
    use test_case::test_case;

    use super::*;

    fn identity(user: &str, hosts: &[&str], base_dir: &str) -> ClusterIdentity {
        ClusterIdentity {
            user: user.parse().unwrap(),
            hosts: hosts.iter().map(|host| (*host).to_owned()).collect(),
            base_dir: base_dir.parse().unwrap(),
        }
    }

    #[test]
    fn a_cluster_is_the_same_while_a_login_host_the_user_and_the_directory_stay() {
        let known = identity("tao", &["login1:22", "login2:22"], "/lustre/tao");
        let same = |new: &ClusterIdentity| known.differs_from(new);
        assert!(same(&known).is_empty());
        assert!(same(&identity("tao", &["login3:22", "login2:22"], "/lustre/tao")).is_empty());
        assert_eq!(
            same(&identity("tao", &["login1:2222"], "/lustre/tao")),
            ["hosts"],
            "another port is another host"
        );
        assert_eq!(
            same(&identity("ann", &["login9:22"], "/lustre/ann")),
            ["user", "hosts", "base_results_dir"]
        );
    }

    #[test_case("/lustre/tao", "/lustre/tao" ; "a base")]
    #[test_case("/lustre/tao/results", "/lustre/tao" ; "its results")]
    #[test_case("/lustre/tao/results/", "/lustre/tao" ; "with a slash")]
    #[test_case("/lustre/tess", "/lustre/tess" ; "a name of the same letters")]
    #[test_case("/results", "/results" ; "one without a parent is a base")]
    #[test_case("/lustre/my-results", "/lustre/my-results" ; "a name that only ends so")]
    fn results_are_below_one_base(configured: &str, base: &str) {
        assert_eq!(base_of(configured.parse().unwrap()).as_str(), base);
    }
}

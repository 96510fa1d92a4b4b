//! What a cluster is known by: where its jobs are, and who they belong to there.

use slurm::{RemotePath, UserName};

/// A cluster with another identity is another cluster, whatever its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterIdentity {
    pub user: UserName,
    /// The login hosts, each with its port.
    pub hosts: Vec<String>,
    pub base_dir: RemotePath,
}

impl ClusterIdentity {
    /// The settings, by the names of their keys, in which `new` is another cluster; none when it is the same.
    ///
    /// Login hosts come and go over a cluster's life. As long as one of them stays it is the same cluster, and jobs that
    /// are on it are found there.
    pub fn differs_from(&self, new: &Self) -> Vec<&'static str> {
        let mut in_what = Vec::new();
        if self.user != new.user {
            in_what.push("user");
        }
        if !self.hosts.iter().any(|host| new.hosts.contains(host)) {
            in_what.push("hosts");
        }
        if self.base_dir != new.base_dir {
            in_what.push("base_results_dir");
        }
        in_what
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(user: &str, hosts: &[&str], base_dir: &str) -> ClusterIdentity {
        ClusterIdentity {
            user: user.parse().unwrap(),
            hosts: hosts.iter().map(|host| (*host).to_owned()).collect(),
            base_dir: base_dir.parse().unwrap(),
        }
    }

    #[test]
    fn it_is_the_same_cluster_as_long_as_a_login_host_stays_and_user_and_directory_are_the_same() {
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
}

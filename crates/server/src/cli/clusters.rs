//! The arguments of `cluster`, `preflight` and `usage`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use domain::ClusterName;

use super::{Moment, ServerArgs};

#[derive(Debug, Subcommand)]
pub(crate) enum ClusterCommand {
    /// List the clusters: their state, login hosts and jobs
    List(ServerArgs),
    /// List the partitions of a cluster: their limits, GPUs and the states of their nodes
    Partitions(OfClusterArgs),
    /// Store a cluster in the service's database; needs the scope admin
    ///
    /// Example: tao-slurm cluster add dgx-2 --host login1.example.org --user svc-tao --ssh-key dgx --host-keys keys.txt
    Add(ClusterAddArgs),
}

#[derive(Debug, Args)]
pub(crate) struct OfClusterArgs {
    /// Name of the cluster [default: the service's default cluster]
    pub(crate) cluster: Option<ClusterName>,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ClusterAddArgs {
    /// Name of the cluster
    pub(crate) name: ClusterName,
    /// Login host, with its port if that is not 22; repeatable, the preferred one first
    #[arg(long)]
    pub(crate) host: Vec<String>,
    /// Login name on the cluster
    #[arg(long)]
    pub(crate) user: Option<String>,
    /// File name of a private key in the service's key directory
    #[arg(long, value_name = "NAME")]
    pub(crate) ssh_key: Option<String>,
    /// File with the public keys of the login hosts, as ssh-keyscan(1) prints them
    #[arg(long, value_name = "FILE")]
    pub(crate) host_keys: Option<PathBuf>,
    /// Default partition; repeatable
    #[arg(long)]
    pub(crate) partition: Vec<String>,
    /// Default Slurm account
    #[arg(long)]
    pub(crate) account: Option<String>,
    /// Directory on the cluster for scripts, logs and results
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) base_results_dir: Option<String>,
    /// JSON or YAML file with further settings; `-` reads standard input
    #[arg(long, short)]
    pub(crate) file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

#[derive(Debug, Args)]
pub(crate) struct UsageArgs {
    /// A line for each cluster, owner, partition, status, rule, or value of a label: label:team
    #[arg(long, short, default_value = "owner", value_name = "GROUP")]
    pub(crate) by: String,
    /// The window begins here: a duration such as 7d, a date, or a time (RFC 3339)
    #[arg(long, default_value = "7d", value_name = "TIME")]
    pub(crate) since: Moment,
    /// The window ends here [default: now]
    #[arg(long, value_name = "TIME")]
    pub(crate) until: Option<Moment>,
    /// Only jobs on this cluster; repeatable
    #[arg(long)]
    pub(crate) cluster: Vec<ClusterName>,
    /// Only jobs of this owner; needs the scope admin for others than yourself; repeatable
    #[arg(long)]
    pub(crate) owner: Vec<String>,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

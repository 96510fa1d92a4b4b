//! The port to calls that contact a cluster: this crate does not know SSH.

use std::pin::Pin;

use domain::{ClusterName, preflight::Check};
use remote::{InstallCredentials, TestOnly, TestOnlyAnswer};

/// An answer that the cluster may take seconds for.
pub type ClusterAnswer<'a, T> = Pin<Box<dyn Future<Output = Result<T, ClusterUnavailable>> + Send + 'a>>;

/// Contacts a cluster for a waiting caller.
pub trait ClusterOps: Send + Sync + 'static {
    /// Tests everything that jobs need. Failures are in the checks; an error means that no check ran.
    fn preflight<'a>(&'a self, cluster: &'a ClusterName) -> ClusterAnswer<'a, Vec<Check>>;

    /// Adds an entry to the Enroot credentials of the cluster's user.
    fn install_credentials<'a>(
        &'a self,
        cluster: &'a ClusterName,
        command: InstallCredentials,
    ) -> ClusterAnswer<'a, ()>;

    /// Asks Slurm to check a script, and which paths exist.
    fn test_only<'a>(
        &'a self,
        cluster: &'a ClusterName,
        command: TestOnly,
    ) -> ClusterAnswer<'a, TestOnlyAnswer>;
}

/// Why a cluster did not carry out a request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ClusterUnavailable {
    /// Another caller has sent the same request.
    #[error("the request is already running for another caller")]
    Busy,
    /// The cluster did not answer, or refused the request.
    #[error("{detail}")]
    Unanswered {
        /// The reason, for the caller; it contains no secret.
        detail: String,
    },
}

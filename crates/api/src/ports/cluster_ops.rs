//! What callers ask of a cluster itself, through a trait, because this crate does not know SSH.

use std::pin::Pin;

use domain::{ClusterName, preflight::Check};
use remote::{InstallCredentials, TestOnly, TestOnlyAnswer};

/// An answer that a cluster takes its time for.
pub type ClusterAnswer<'a, T> = Pin<Box<dyn Future<Output = Result<T, ClusterUnavailable>> + Send + 'a>>;

/// Speaks to a cluster for a caller who waits.
pub trait ClusterOps: Send + Sync + 'static {
    /// Tries everything that jobs will need. What fails is in the checks; an error means that nothing was tried.
    fn preflight<'a>(&'a self, cluster: &'a ClusterName) -> ClusterAnswer<'a, Vec<Check>>;

    /// Puts an entry into enroot's credentials of our user there.
    fn install_credentials<'a>(
        &'a self,
        cluster: &'a ClusterName,
        command: InstallCredentials,
    ) -> ClusterAnswer<'a, ()>;

    /// Asks what Slurm would say to a script, and which paths exist.
    fn test_only<'a>(
        &'a self,
        cluster: &'a ClusterName,
        command: TestOnly,
    ) -> ClusterAnswer<'a, TestOnlyAnswer>;
}

/// Why a cluster did not do what it was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ClusterUnavailable {
    /// It is being asked the same by somebody else.
    #[error("somebody else asks for it already")]
    Busy,
    /// It did not answer, or refused.
    #[error("{detail}")]
    Unanswered {
        /// Why, in words for the caller; no secret is in it.
        detail: String,
    },
}
